"""Tells Spark Connect sessions from classic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PACKAGE = "pyspark.sql.connect."


def is_connect(of: SparkSession | DataFrame | Column) -> bool:
    """Whether something of Spark's is of a Spark Connect session."""
    return type(of).__module__.startswith(_PACKAGE)


def check_client() -> None:
    """Raise an UnsupportedError where `pyspark.sql.functions` makes columns of classic sessions, in this process."""
    from pyspark.sql.utils import is_remote

    if not is_remote():
        raise UnsupportedError(
            "this process has Spark Connect sessions beside classic ones, and PySpark's functions make columns for "
            "the classic ones; use a process of its own, with SparkSession.builder.remote(...)"
        )


def refuse_on_connect(spark: SparkSession, what: str, instead: str) -> None:
    """Raise an UnsupportedError on a Spark Connect session, where something needs Spark's own JVM."""
    if is_connect(spark):
        raise UnsupportedError(
            f"{what} needs the JVM of Spark's driver, which a Spark Connect session does not reach; {instead}, or use "
            "a classic session"
        )


def refuse_client() -> None:
    """Raise an UnsupportedError in a process whose sessions are of Spark Connect, where a classic one is to be made."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise UnsupportedError(
            "this process is a client of Spark Connect, which makes no sessions of its own; "
            "SparkSession.builder.remote(...) makes one of a server, and penstock.attach takes it"
        )


def client_of(spark: SparkSession) -> Any:
    """What a Spark Connect session talks to its server with."""
    return getattr(spark, "client")  # noqa: B009 - the classic session has none, which is the type that PySpark tells
