"""A PostgreSQL database as the metadata database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from penstock.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row, percent_style
from penstock.catalog.dialects import POSTGRES
from penstock.catalog.location import Location, redact, secrets_in
from penstock.errors import AttachError

try:
    import psycopg
except ImportError as error:  # pragma: no cover - depends on the installation
    raise AttachError("PostgreSQL catalogs need the psycopg package; pip install 'penstock[postgres]'") from error


_LOCK = "hashtext('penstock'), hashtext(coalesce(current_schema(), ''))"
_COLLISIONS = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)


class PostgresDatabase(Database):
    engine = "postgres"
    dialect = POSTGRES
    _snapshot_sql = _scratch_sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    _commit_sql = "BEGIN ISOLATION LEVEL READ COMMITTED"
    errors = (psycopg.Error,)

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        try:
            self._connection = psycopg.connect(location.target, autocommit=True, **_keywords(options))
        except psycopg.Error as error:
            raise AttachError(_refused(location, options, str(error))) from None
        if options.schema:
            self._use(options.schema, options.create)
        # Pruning tests `data_file_id NOT IN (...)`: with too little memory PostgreSQL compares pairs, not hashes.
        self._connection.execute("SET work_mem = '256MB'")
        self._connection.execute("SET jit = off")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET IntervalStyle = 'postgres'")
        if options.read_only:
            self._connection.execute("SET default_transaction_read_only = on")

    def _use(self, schema: str, create: bool) -> None:
        try:
            if create and not self._query("SELECT 1 FROM pg_namespace WHERE nspname = ?", [schema]):
                # Where another process makes it at the same moment, IF NOT EXISTS still collides.
                with suppress(psycopg.errors.UniqueViolation):
                    self._execute(f"CREATE SCHEMA IF NOT EXISTS {self.identifier(schema)}", ())
            self._query("SELECT set_config('search_path', quote_ident(?), false)", [schema])
        except psycopg.Error as error:
            self._connection.close()
            raise AttachError(f"{self.location} cannot use the schema {schema!r}: {error}") from None

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        text = percent_style(sql)
        return self._connection.execute(text, tuple(parameters)).fetchall()

    def _execute(self, sql: str, parameters: Sequence[Any]) -> None:
        self._connection.execute(percent_style(sql), tuple(parameters))

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            # Held until the transaction ends. Without it many writers of one snapshot id starve each other.
            self._query(f"SELECT pg_advisory_xact_lock({_LOCK})", ())
            yield

    def is_collision(self, error: BaseException) -> bool:
        return isinstance(error, _COLLISIONS)

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def columns(self, table: str) -> list[str]:
        sql = """SELECT column_name FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position"""
        return [name for (name,) in self.query(sql, [table])]

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        # DuckDB makes the table without quoting its columns' names, so that they are in lower case.
        names = {name.lower(): name for name in self.columns(table)}
        values = "".join(f", {self._value(column, names)}" for column in columns)
        rows = self.query(f"SELECT row_id{values} FROM {self.identifier(table)} WHERE {where}", parameters)
        texts = [False, *(column.is_text for column in columns)]
        return [
            tuple(v.decode() if t and isinstance(v, bytes) else v for t, v in zip(texts, row, strict=True))
            for row in rows
        ]

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
