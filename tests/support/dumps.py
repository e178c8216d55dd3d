"""Everything that a catalog's tables are and hold, as the database itself tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.ducklake.catalog.databases import ConnectOptions, Database, connect
from penstock.ducklake.catalog.location import parse_location
from support.catalogs import Catalog, DuckDBCatalog, MySQLCatalog, PostgresCatalog, SQLiteCatalog

_SHAPES = {
    "duckdb": """SELECT column_name, data_type, is_nullable, (SELECT list(constraint_type ORDER BY constraint_type)
                 FROM duckdb_constraints() k WHERE k.table_oid = c.table_oid
                 AND list_contains(constraint_column_names, column_name))
                 FROM duckdb_columns() c WHERE table_name = '{0}' ORDER BY column_index""",
    "sqlite": "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{0}') ORDER BY cid",
    "postgres": """SELECT column_name, data_type, is_nullable, (SELECT string_agg(
                   pg_get_constraintdef(oid), ' ' ORDER BY 1) FROM pg_constraint WHERE conrelid = '{0}'::regclass)
                   FROM information_schema.columns WHERE table_name = '{0}' ORDER BY ordinal_position""",
    "mysql": "SHOW CREATE TABLE {0}",
}


@contextmanager
def opened(catalog: Catalog) -> Iterator[Database]:
    with closing(connect(parse_location(catalog.uri), ConnectOptions())) as database:
        yield database


def shapes(catalog: Catalog) -> dict[str, Any]:
    """The columns of each table of the catalog, with types and constraints, but without indexes of Penstock's."""
    with opened(catalog) as database:
        sql = _SHAPES[database.engine]
        return {
            table: [tuple(map(_without_indexes, row)) for row in database.query(sql.format(table))]
            for table in sorted(database.tables("ducklake_"))
        }


def _without_indexes(value: Any) -> Any:
    return re.sub(r",\s+KEY .penstock_\w+. \([^)]*\)", "", value) if isinstance(value, str) else value


def rows(catalog: Catalog) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table of the catalog."""
    with opened(catalog) as database:
        return {
            table: sorted(database.query(f"SELECT * FROM {table}"), key=repr)
            for table in sorted(database.tables("ducklake_"))
        }


@contextmanager
def twin(catalog: Catalog, directory: Path, request: pytest.FixtureRequest) -> Iterator[Catalog]:
    """A second, empty place of the same kind."""
    directory.mkdir()
    match catalog:
        case PostgresCatalog():
            yield PostgresCatalog(directory, request.getfixturevalue("postgres_server"))
        case MySQLCatalog():
            server = request.getfixturevalue("mysql_server")
            other = MySQLCatalog(directory, server)
            yield other
            server.drop_database(other.database)
        case SQLiteCatalog():
            yield SQLiteCatalog(directory)
        case _:
            yield DuckDBCatalog(directory)
