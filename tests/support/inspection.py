"""Lakes as inspection sees them: opened without Spark, at one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.catalog.opening import Catalog as OpenCatalog
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown
from support.catalogs import Catalog


@contextmanager
def opened(catalog: Catalog) -> Iterator[OpenCatalog]:
    """The catalog, open until the end of the block."""
    found = open_catalog(catalog.uri, AttachOptions(create_if_not_exists=False))
    try:
        yield found
    finally:
        found.database.close()


def shown(catalog: OpenCatalog, version: int | None = None) -> Shown:
    """The lake at a version, by default the newest."""
    newest = latest_snapshot(catalog.database).id if version is None else version
    return Shown(catalog.database, At(newest), catalog.data_path)


def table(at: Shown, name: str, schema: str = "main") -> TableInfo:
    return objects.find_table(at.database, at.at, at.data_path, schema, name)
