"""A PostgreSQL database as the metadata database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row, percent_style
from penstock.catalog.dialects import POSTGRES
from penstock.catalog.location import Location, redact, secrets_in
from penstock.errors import AttachError

try:
    import psycopg
except ImportError as error:  # pragma: no cover - depends on the installation
    raise AttachError("PostgreSQL catalogs need the psycopg package; pip install 'penstock[postgres]'") from error


class PostgresDatabase(Database):
    engine = "postgres"
    dialect = POSTGRES
    begin_sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        try:
            self._connection = psycopg.connect(location.target, autocommit=True, **_keywords(options))
        except psycopg.Error as error:
            raise AttachError(_refused(location, options, str(error))) from None
        if options.schema:
            self._connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", (options.schema,))
        # Pruning tests `data_file_id NOT IN (...)`: with too little memory PostgreSQL compares pairs, not hashes.
        self._connection.execute("SET work_mem = '256MB'")
        self._connection.execute("SET jit = off")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET IntervalStyle = 'postgres'")
        if options.read_only:
            self._connection.execute("SET default_transaction_read_only = on")

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        text = percent_style(sql)
        return self._connection.execute(text, tuple(parameters)).fetchall()

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        names = self._column_names(table)
        values = "".join(f", {self._value(column, names)}" for column in columns)
        rows = self.query(f"SELECT row_id{values} FROM {self.identifier(table)} WHERE {where}", parameters)
        texts = [False, *(column.is_text for column in columns)]
        return [
            tuple(v.decode() if t and v is not None else v for t, v in zip(texts, row, strict=True)) for row in rows
        ]

    def _column_names(self, table: str) -> dict[str, str]:
        """The columns' real names by their lower-case ones: DuckDB makes the table without quoting them."""
        columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        return {name.lower(): name for (name,) in self.query(f"{columns} AND table_name = ?", [table])}

    def _value(self, column: InlinedColumn, names: Mapping[str, str]) -> str:
        """Text and blobs are kept as BYTEA, because PostgreSQL's text cannot hold a NUL."""
        name = self.identifier(names.get(column.name.lower(), column.name))
        return name if column.is_text or column.is_blob else f"{name}::text"


def _keywords(options: ConnectOptions) -> dict[str, Any]:
    return {"connect_timeout": "10", **options.parameters} if options.parameters else {}


def _refused(location: Location, options: ConnectOptions, reason: str) -> str:
    for secret in (*secrets_in(location.target), *options.parameters.values()):
        reason = reason.replace(secret, "***")
    return (
        f"{location} cannot be reached: PostgreSQL says {redact(reason.strip())!r}; check host, port, user and database"
    )
