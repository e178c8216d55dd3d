"""The four places where a DuckLake can keep its catalog, and how the tests make a lake in each."""

from __future__ import annotations

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from support.reference import Reference, identifier, identifiers, quote
from support.servers import MariaDBServer, PostgresServer


class Catalog(ABC):
    """Where one lake of one test lives: `uri` is what both DuckDB's ATTACH and `penstock.attach` take."""

    kind: ClassVar[str]
    # Whether rows of nested types, NaN, infinities and fractions of a second can be kept in the catalog.
    inlines_every_value: ClassVar[bool] = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data_path = f"{directory}/data/"

    @property
    @abstractmethod
    def uri(self) -> str: ...

    @property
    def target(self) -> str:
        """The metadata database as its own connector names it."""
        return self.uri.removeprefix(f"ducklake:{self.kind}:").removeprefix("ducklake:")

    def tamper(self, *statements: str) -> None:
        """Change the finished catalog's tables behind the extension's back."""
        with Reference() as reference:
            reference.execute(
                f"ATTACH {quote(self.target)} AS metadata (TYPE {self.kind})", "USE metadata", *statements
            )

    @contextmanager
    def build(self, *, timezone: str = "UTC", **parameters: object) -> Iterator[Reference]:
        """The extension attached for writing; what it made is in the catalog when the block ends."""
        with self.reference(timezone=timezone, **parameters) as reference:
            yield reference

    @contextmanager
    def reference(self, *, timezone: str = "UTC", **parameters: object) -> Iterator[Reference]:
        """The extension attached to the finished lake."""
        with Reference(timezone=timezone) as reference:
            yield reference.attach(self.uri, **{"data_path": self.data_path, **parameters})


class DuckDBCatalog(Catalog):
    kind = "duckdb"

    @property
    def uri(self) -> str:
        return f"ducklake:{self.directory}/lake.ducklake"


class SQLiteCatalog(Catalog):
    kind = "sqlite"

    @property
    def uri(self) -> str:
        return f"ducklake:sqlite:{self.directory}/lake.sqlite"

    def tamper(self, *statements: str) -> None:
        # Written as it is said: DuckDB's connector would print timestamps in another form than the extension does.
        with closing(sqlite3.connect(self.target)) as connection, connection:
            for statement in statements:
                connection.execute(statement)


class PostgresCatalog(Catalog):
    kind = "postgres"

    def __init__(self, directory: Path, server: PostgresServer) -> None:
        super().__init__(directory)
        self.database = server.create_database()
        self._uri = f"ducklake:postgres:{server.connection_string(self.database)}"

    @property
    def uri(self) -> str:
        return self._uri


class MySQLCatalog(Catalog):
    """A MySQL catalog, which the extension can read but hardly write.

    Its MySQL connector has no UPDATE or DELETE with a join, so that the extension fails at the second insert into a
    table, at every change of an inlined row, at most ALTERs, at flush and at expiry (`test_mysql.py` pins all of it).
    So the lake is made in a DuckDB file and its catalog tables are then copied into MySQL through that same connector.
    From there the extension and Penstock both read it.
    """

    kind = "mysql"
    inlines_every_value = False

    def __init__(self, directory: Path, server: MariaDBServer) -> None:
        super().__init__(directory)
        self.database = server.create_database()
        self._uri = f"ducklake:mysql:{server.connection_string(self.database)}"

    @property
    def uri(self) -> str:
        return self._uri

    @contextmanager
    def build(self, *, timezone: str = "UTC", **parameters: object) -> Iterator[Reference]:
        staged = DuckDBCatalog(self.directory)
        with staged.build(timezone=timezone, **parameters) as reference:
            yield reference
        self._publish(Path(staged.uri.removeprefix("ducklake:")), parameters)

    def _publish(self, staged: Path, parameters: dict[str, object]) -> None:
        with self.reference(**parameters) as reference:
            reference.detach()
            reference.execute(f"ATTACH {quote(str(staged))} AS staged (READ_ONLY)")
            tables = _catalog_tables(reference)
            # From here on a question for the tables of one database would be asked of all that the server has.
            reference.execute(f"ATTACH {quote(self.target)} AS published (TYPE mysql)")
            present = {name for (name,) in reference.rows("FROM mysql_query('published', 'SHOW TABLES')")}
            for table in tables:
                if table not in present:
                    self._publish_inlined(reference, table)
                elif reference.value(f"SELECT count(*) FROM staged.{table}"):
                    columns = [name for name, _ in reference.describe(f"FROM staged.{table}")]
                    reference.execute(
                        f"DELETE FROM published.{table}",
                        f"INSERT INTO published.{table} ({identifiers(columns)}) FROM staged.{table}",
                    )

    @staticmethod
    def _publish_inlined(reference: Reference, table: str) -> None:
        """MySQL has no nested types: their values are kept as DuckDB's text, as in PostgreSQL and SQLite."""
        columns = ", ".join(
            f"{identifier(name)}::VARCHAR AS {identifier(name)}" if _NESTED.search(str(kind)) else identifier(name)
            for name, kind in reference.describe(f"FROM staged.{table}")
        )
        reference.execute(f"CREATE TABLE published.{table} AS SELECT {columns} FROM staged.{table}")


def _catalog_tables(reference: Reference) -> list[str]:
    rows = reference.rows(
        "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'ducklake%' AND database_name = 'staged'"
    )
    return [name for (name,) in rows]


_NESTED = re.compile(r"\[|^STRUCT|^MAP|^VARIANT")
