"""DuckDB with its own `ducklake` extension: it makes the lakes of these tests and says what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType
from duckdb_extensions import import_extension

ALIAS = "lk"
METADATA = f"__ducklake_metadata_{ALIAS}"
EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner", "mysql_scanner", "httpfs", "spatial", "tpch")


class Reference:
    """A connection to DuckDB with one lake attached. It holds a DuckDB catalog file until `close`: Penstock waits.

    All connections share one instance, since loading its extensions takes longer than most tests.
    """

    def __init__(self, *, timezone: str = "UTC") -> None:
        self.connection = _instance().cursor()
        self.execute(f"SET TimeZone = {quote(timezone)}")

    def attach(self, uri: str, **parameters: object) -> Reference:
        """Attach the lake at `uri` as the default catalog; the parameters are DuckLake's own, in lower case."""
        options = ", ".join(f"{name.upper()} {_option(value)}" for name, value in parameters.items())
        self.execute(f"ATTACH {quote(uri)} AS {ALIAS}" + (f" ({options})" if options else ""))
        self.execute(f"USE {ALIAS}")
        return self

    def detach(self) -> None:
        self.execute("USE memory")
        self.execute(f"DETACH {ALIAS}")

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def value(self, sql: str) -> Any:
        """The one value of a query's one row."""
        [[value]] = self.rows(sql)
        return value

    def describe(self, sql: str) -> list[tuple[str, DuckDBPyType]]:
        """The names and types of a query's columns."""
        cursor = self.connection.execute(sql)
        return [(column[0], column[1]) for column in cursor.description or ()]

    def records(self, sql: str) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        cursor = self.connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def set_option(self, name: str, value: object) -> None:
        """Set a persistent option of the whole lake."""
        self.execute(f"CALL {ALIAS}.set_option({quote(name)}, {_option(value)})")

    def close(self) -> None:
        self.connection.close()
        # The instance lives on: what was attached has to be let go.
        attached = _instance().execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'"
            " AND NOT starts_with(database_name, '__ducklake_metadata')"
        )
        for (name,) in attached.fetchall():
            _instance().execute(f"DETACH {identifier(name)}")

    def __enter__(self) -> Reference:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def quote(text: str) -> str:
    """The text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names: Sequence[str]) -> str:
    return ", ".join(map(identifier, names))


def _option(value: object) -> str:
    return quote(value) if isinstance(value, str) else str(value)


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for extension in EXTENSIONS:
        import_extension(extension)
        connection.load_extension(extension)
    # The lakes are tiny: more threads would only cost time, and write rows in another order each time.
    connection.execute("SET threads = 1")
    # Large results of the change feed hang with the default.
    connection.execute("SET streaming_buffer_size = '1GB'")
    return connection
