"""Penstock: lakehouse tables for Apache Spark, from Python."""

from penstock.attaching import attach
from penstock.errors import (
    AttachError,
    CatalogError,
    ConflictError,
    InvalidError,
    NotFoundError,
    PenstockError,
    StaleReadError,
    UnsupportedError,
)
from penstock.lake import Lake
from penstock.model.objects import MacroImplementation, MacroParameter
from penstock.model.snapshots import Snapshot
from penstock.spark.session import session
from penstock.table import Table
from penstock.version import __version__

__all__ = [
    "AttachError",
    "CatalogError",
    "ConflictError",
    "InvalidError",
    "Lake",
    "MacroImplementation",
    "MacroParameter",
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
