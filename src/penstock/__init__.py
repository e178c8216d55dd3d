"""Penstock: lakehouse tables for Apache Spark, from Python."""

from penstock.attach import attach
from penstock.ducklake.catalog.catalog_copy import copy_catalog
from penstock.ducklake.lake_transaction import LakeTransaction
from penstock.ducklake.model.objects import MacroImplementation, MacroParameter
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.table import Table
from penstock.errors import (
    AlreadyExistsError,
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
from penstock.session import session
from penstock.spark.azure_packages import azure_packages
from penstock.spark.s3_packages import s3_packages
from penstock.spark.shipping import ship
from penstock.version import __version__

__all__ = [
    "AlreadyExistsError",
    "AttachError",
    "CatalogError",
    "ConflictError",
    "InvalidError",
    "Lake",
    "LakeTransaction",
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
    "azure_packages",
    "copy_catalog",
    "s3_packages",
    "session",
    "ship",
]
