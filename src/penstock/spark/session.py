"""Spark sessions: the settings that Penstock needs, made or checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import pyspark
from pyspark.sql import SparkSession

from penstock.errors import UnsupportedError
from penstock.spark.azure_packages import HOW_TO_ADD as AZURE_WAY
from penstock.spark.azure_packages import azure_packages
from penstock.spark.connect.sessions import check_client, is_connect, refuse_client, refuse_on_connect
from penstock.spark.contexts import running_context
from penstock.spark.jvm import install_rules
from penstock.spark.releases import check_session, required_settings
from penstock.spark.s3_packages import HOW_TO_ADD as S3_WAY
from penstock.spark.s3_packages import s3_packages
from penstock.spark.shipping import is_on_this_machine
from penstock.spark.stores import reads_azure, reads_s3

# For a session that Penstock itself starts: on one that is there already, they would change its user's other queries.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
}


def session(
    master: str = "local[2]", app_name: str = "penstock", *, s3: bool = False, azure: bool = False, **settings: str
) -> SparkSession:
    """Makes a local Spark session with the settings that Penstock needs.

    Where this process has a session already, that is the one: it gets what Penstock needs and the settings given here,
    no others.

    Args:
        master: Where Spark runs, as its `master` setting.
        app_name: The application's name.
        s3: Whether the session gets what it needs to read S3 (14 MB, which Spark fetches the first time).
        azure: Whether it gets what it needs to read Azure (1 MB).
        **settings: Spark's settings, with underscores for dots (`spark_driver_memory="8g"`) or as a mapping with
            `**{...}`.

    Returns:
        The session.

    Raises:
        UnsupportedError: S3 or Azure is asked for, and this process has a session that cannot read it; or this process
            is a client of Spark Connect.
    """
    refuse_client()
    # A JVM started in the C locale cannot open files whose names are not ASCII.
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    if is_on_this_machine(master):  # workers need what this Python has: PySpark would start the first `python3`
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_new = running_context() is None
    chosen = {key.replace("_", ".") if "." not in key else key: value for key, value in settings.items()}
    builder = SparkSession.builder.master(master).appName(app_name) if is_new else SparkSession.builder
    wanted = {**(_LOCAL if is_new else {}), **required_settings(pyspark.__version__), **chosen}
    if is_new:
        wanted |= _with_packages(chosen, *([s3_packages()] if s3 else []), *([azure_packages()] if azure else []))
    for key, value in wanted.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if is_new:
        spark.sparkContext.setLogLevel("ERROR")
    elif s3 and not reads_s3(spark):
        raise UnsupportedError(f"this process has a Spark session that cannot read S3: {S3_WAY}")
    elif azure and not reads_azure(spark):
        raise UnsupportedError(f"this process has a Spark session that cannot read Azure: {AZURE_WAY}")
    return spark


def _with_packages(*sets: Mapping[str, str]) -> dict[str, str]:
    """The packages of several sets, of which the user's own is the first."""
    names = [name for name in ("spark.jars.packages", "spark.jars.excludes") if any(name in one for one in sets)]
    return {name: ",".join(one[name] for one in sets if one.get(name)) for name in names}


def prepare(spark: SparkSession | None, *, connect: bool = False) -> SparkSession:
    """Gives the session to use, with what can be set at run time set.

    Args:
        spark: The user's choice; by default the running session, else a local one.
        connect: Whether it may be one of Spark Connect.

    Returns:
        The session.

    Raises:
        UnsupportedError: It is a Spark Connect session, and may not be one, or of another version of Spark.
    """
    chosen = spark or _running() or session()
    if connect and is_connect(chosen):
        check_client()
    else:
        refuse_on_connect(chosen, "this", "attach a DuckLake")
    check_session(chosen.version)
    for key, value in required_settings(chosen.version).items():
        if chosen.conf.get(key, None) != value:
            chosen.conf.set(key, value)
    if not is_connect(chosen):
        install_rules(chosen)
    return chosen


def _running() -> SparkSession | None:
    """The session of this thread, else the process's: a new thread has none of its own."""
    found = SparkSession.getActiveSession()
    if found is None and running_context() is not None:
        found = SparkSession.builder.getOrCreate()
    return found
