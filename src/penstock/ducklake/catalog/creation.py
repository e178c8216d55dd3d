"""Creates lakes: the tables of a catalog and its first snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from penstock.ducklake.catalog.catalog_tables import FORMAT_VERSION, INDEXES, TABLES, CatalogColumn, CatalogTable
from penstock.ducklake.catalog.databases import ConnectOptions, Database, Row, connect
from penstock.ducklake.catalog.indexes import create_indexes
from penstock.ducklake.catalog.location import Location
from penstock.errors import AttachError, CatalogError, PenstockError
from penstock.version import __version__


def has_lake(database: Database) -> bool:
    """Whether the catalog is there, and not just some of its tables."""
    return "ducklake_metadata" in database.tables("ducklake_metadata") and bool(
        database.query("SELECT 1 FROM ducklake_metadata WHERE \"key\" = 'version'")
    )


def create_lake(database: Database, data_path: str, encrypted: bool) -> None:
    """Make the tables, snapshot 0 and its schema `main`, all at once.

    Does nothing where a lake is, or another process makes one at the same moment.
    """
    try:
        if not database.transactional_ddl:
            _create_tables(database, "IF NOT EXISTS ")
        with database.transaction():
            if has_lake(database):
                return
            if database.transactional_ddl:
                _create_tables(database)
                create_indexes(database)
            _insert_first_rows(database, data_path, encrypted)
    except CatalogError as error:
        if not has_lake(database):
            raise AttachError(f"no lake can be created at {database.location}: {error.__cause__}") from error


def create_file(location: Location, how: ConnectOptions, fill: Callable[[Database], None]) -> bool:
    """Make the file of a new lake, whole or not at all; False, and nothing, where another process was faster."""
    if location.target == ":memory:":
        raise AttachError(f"{location} would be gone with this process; name a file")
    if location.is_remote:
        raise AttachError(f"no lake can be created at {location}: what is elsewhere is only read; name a file here")
    target = Path(os.path.realpath(location.target))  # also that of a link that leads to no file yet
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".penstock-") as place:
            draft = replace(location, target=str(Path(place) / target.name))
            try:
                with closing(connect(draft, replace(how, create=True))) as database:
                    fill(database)
                    database.complete_file()
            except PenstockError as error:
                message = str(error).replace(draft.target, location.target)
                raise type(error)(message) from error.__cause__
            return _put(draft.target, str(target))
    except OSError as error:
        raise AttachError(
            f"there is no DuckLake at {location}, and none can be created there: {error.strerror}; "
            f"check that the directory {target.parent} exists and can be written to"
        ) from None


def _put(draft: str, target: str) -> bool:
    try:
        # Unlike a renaming, this never replaces the lake of another process.
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.exists(target):
            return False
        os.rename(draft, target)
    return True


def _create_tables(database: Database, condition: str = "") -> None:
    for table in TABLES.values():
        database.execute(create_statement(database, table, condition))


def create_statement(database: Database, table: CatalogTable, condition: str = "", *, exact: bool = False) -> str:
    """The CREATE TABLE statement of a catalog table; where it cannot be taken back, with the table's indexes."""
    clauses = [column_clause(database, column, exact=exact) for column in table.columns]
    if not database.transactional_ddl:  # so that no right but CREATE is needed, and no table is ever without
        clauses += [f"KEY {one.name} ({', '.join(one.columns)})" for one in INDEXES if one.table == table.name]
    return f"CREATE TABLE {condition}{table.name} ({', '.join(clauses)})"


def column_clause(database: Database, column: CatalogColumn, *, exact: bool = False) -> str:
    """A column's name, type and constraint as the database writes them."""
    types = {**database.column_types, **database.exact_types} if exact else database.column_types
    kind = types.get(column.type, column.type.upper())
    return f"{database.identifier(column.name)} {kind} {column.constraint}".rstrip()


def _insert_first_rows(database: Database, data_path: str, encrypted: bool) -> None:
    metadata = {
        "version": FORMAT_VERSION,
        "created_by": f"Penstock {__version__}",
        "data_path": data_path,
        "encrypted": "true" if encrypted else "false",
    }
    rows: dict[str, list[Row]] = {
        "ducklake_snapshot": [(0, datetime.now(UTC), 0, 1, 0)],
        "ducklake_snapshot_changes": [(0, 'created_schema:"main"', None, None, None)],
        "ducklake_metadata": [(key, value, None, None) for key, value in metadata.items()],
        "ducklake_schema": [(0, str(uuid4()), 0, None, "main", "main/", True)],
    }
    for table, values in rows.items():
        database.insert(table, TABLES[table].column_names, values)
