"""`penstock.session`: a Spark session that knows lakes by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from pyspark.sql import SparkSession

from penstock.attaching import attach, register
from penstock.ducklake.catalog.named_lakes.configuration import SCHEME, is_name
from penstock.errors import InvalidError
from penstock.spark import session as spark_session


def session(
    master: str = "local[2]",
    app_name: str = "penstock",
    *,
    lakes: Mapping[str, str] | Sequence[str] | None = None,
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
        lakes: Lakes to attach, by the names that SQL calls them: `{"sales": "ducklake:sales.ducklake"}`; or names of
            lakes in `penstock.toml` or the environment: `["sales", "stock"]`.
        s3: Whether the session gets what it needs to read S3: 14 MB, which Spark fetches the first time.
        azure: Whether it gets what it needs to read Azure: 1 MB.
        **settings: Spark's settings, with underscores for dots (`spark_driver_memory="8g"`) or as a mapping with
            `**{...}`.

    Returns:
        The session.

    Raises:
        AttachError: A lake cannot be attached; then none of them is.
        InvalidError: The lakes are neither locations by names nor names.
        UnsupportedError: S3 or Azure is asked for, and this process has a session already that cannot read it; or this
            process is a client of Spark Connect.
    """
    locations = _locations(lakes or {})
    spark = spark_session.session(master, app_name, s3=s3, azure=azure, **settings)
    register(spark)
    with ExitStack() as attached:
        for name, uri in locations.items():
            attached.callback(attach(uri, name=name, spark=spark).close)
        attached.pop_all()
    return spark


def _locations(lakes: Mapping[str, str] | Sequence[str]) -> Mapping[str, str]:
    """Where lakes are, by their names."""
    if isinstance(lakes, Mapping):
        return lakes
    if isinstance(lakes, str) or not all(is_name(name) for name in lakes):
        raise InvalidError(
            'lakes is a list of names, ["sales"], or a mapping of names to locations, '
            '{"sales": "ducklake:sales.ducklake"}'
        )
    return {name: f"{SCHEME}{name}" for name in lakes}
