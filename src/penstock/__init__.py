"""Penstock: lakehouse tables for Apache Spark, from Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Spark's workers end after a minute without work, and new ones import this package too: so names come when asked for.
if TYPE_CHECKING:
    from penstock.attaching import attach, register
    from penstock.ducklake.catalog.catalog_copy import copy_catalog
    from penstock.ducklake.lake_transaction import LakeTransaction
    from penstock.ducklake.model.objects import MacroImplementation, MacroParameter
    from penstock.ducklake.model.snapshots import Snapshot
    from penstock.ducklake.streaming.written_once import LakeBatch
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
    from penstock.lake_session import session
    from penstock.spark.azure_packages import azure_packages
    from penstock.spark.s3_packages import s3_packages
    from penstock.spark.shipping import ship
    from penstock.storage.progress import show_progress
    from penstock.version import __version__

_HOMES = {
    "attaching": ("attach", "register"),
    "ducklake.catalog.catalog_copy": ("copy_catalog",),
    "ducklake.lake_transaction": ("LakeTransaction",),
    "ducklake.model.objects": ("MacroImplementation", "MacroParameter"),
    "ducklake.model.snapshots": ("Snapshot",),
    "ducklake.streaming.written_once": ("LakeBatch",),
    "ducklake.table": ("Table",),
    "errors": (
        "AlreadyExistsError", "AttachError", "CatalogError", "ConflictError", "InvalidError", "NotFoundError",
        "PenstockError", "StaleReadError", "UnsupportedError",
    ),
    "lake": ("Lake",),
    "lake_session": ("session",),
    "spark.azure_packages": ("azure_packages",),
    "spark.s3_packages": ("s3_packages",),
    "spark.shipping": ("ship",),
    "storage.progress": ("show_progress",),
    "version": ("__version__",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyExistsError",
    "AttachError",
    "CatalogError",
    "ConflictError",
    "InvalidError",
    "Lake",
    "LakeBatch",
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
    "register",
    "s3_packages",
    "session",
    "ship",
    "show_progress",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"penstock.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
