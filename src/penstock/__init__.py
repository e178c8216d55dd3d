"""Penstock: lakehouse tables for Apache Spark, from Python."""

from penstock.errors import AttachError, NotFoundError, PenstockError, StaleReadError, UnsupportedError
from penstock.lake import Lake, attach
from penstock.model.snapshots import Snapshot
from penstock.spark.session import session
from penstock.table import Table
from penstock.version import __version__

__all__ = [
    "AttachError",
    "Lake",
    "NotFoundError",
    "PenstockError",
    "Snapshot",
    "StaleReadError",
    "Table",
    "UnsupportedError",
    "__version__",
    "attach",
    "session",
]
