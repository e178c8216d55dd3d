"""Gives the catalog's tables the indexes that large lakes need."""

from __future__ import annotations

from contextlib import nullcontext

from penstock.ducklake.catalog.catalog_tables import INDEXES, CatalogIndex
from penstock.ducklake.catalog.databases import Database
from penstock.errors import CatalogError


def create_indexes(database: Database) -> None:
    """Make all indexes, where a lake is made. A file of DuckDB's gets none: they make its changes dear."""
    for index in INDEXES if database.uses_indexes else ():
        database.create_index(index.name, index.table, index.columns)


def missing_indexes(database: Database) -> list[CatalogIndex]:
    """The indexes that a lake lacks; none where its database needs none."""
    there = database.indexes() if database.uses_indexes else {index.name for index in INDEXES}
    return [index for index in INDEXES if index.name not in there]


def optimize_catalog(database: Database) -> list[CatalogIndex]:
    """Make the indexes that a lake lacks, and give them back. Those that are made stay where the next one fails."""
    if not database.uses_indexes:
        return []
    try:
        made = [index for index in INDEXES if _made(database, index)]
        database.refresh_planner()
    except CatalogError as error:
        held = "; others hold its tables: call optimize_catalog again later" if database.is_collision(error) else ""
        raise CatalogError(
            f"the catalog's indexes cannot all be made, and the lake works as before: {error}{held}"
        ) from error.__cause__
    return made


def _made(database: Database, index: CatalogIndex) -> bool:
    """Whether the index was missing. Each is a transaction of its own, so that other writers wait for one only."""
    with database.turn(), database.transaction() if database.transactional_ddl else nullcontext():
        missing = index.name not in database.indexes()
        if missing:
            database.create_index(index.name, index.table, index.columns)
    return missing
