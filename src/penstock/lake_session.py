"""`penstock.session`: a Spark session that knows lakes by their names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from pyspark.sql import SparkSession

from penstock.attaching import attach, register
from penstock.spark import session as spark_session


def session(
    master: str = "local[2]",
    app_name: str = "penstock",
    *,
    lakes: Mapping[str, str] | None = None,
    s3: bool = False,
    azure: bool = False,
    **settings: str,
) -> SparkSession:
    """Makes a local Spark session with the settings that Penstock needs.

    Where this process has a session already, that is the one: it gets what Penstock needs and the settings given here,
    no others.

    Args:
        master: Where Spark runs, as its `master` setting.
        app_name: The application's name.
        lakes: Lakes to attach, by the names that SQL calls them: `{"sales": "ducklake:sales.ducklake"}`.
        s3: Whether the session gets what it needs to read S3: 14 MB, which Spark fetches the first time.
        azure: Whether it gets what it needs to read Azure: 1 MB.
        **settings: Spark's settings, with underscores for dots (`spark_driver_memory="8g"`) or as a mapping with
            `**{...}`.

    Returns:
        The session.

    Raises:
        AttachError: A lake cannot be attached; then none of them is.
        UnsupportedError: S3 or Azure is asked for, and this process has a session already that cannot read it; or this
            process is a client of Spark Connect.
    """
    spark = spark_session.session(master, app_name, s3=s3, azure=azure, **settings)
    register(spark)
    with ExitStack() as attached:
        for name, uri in (lakes or {}).items():
            attached.callback(attach(uri, name=name, spark=spark).close)
        attached.pop_all()
    return spark
