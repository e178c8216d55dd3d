"""Keeps the metadata in a PostgreSQL database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from penstock.ducklake.catalog.catalog_tables import INDEXES
from penstock.ducklake.catalog.databases.base import InlinedColumn, Row, percent_style, refuse_unknown
from penstock.ducklake.catalog.databases.server import ServerDatabase
from penstock.ducklake.catalog.dialects import POSTGRES
from penstock.errors import AttachError

try:
    import psycopg
    from psycopg.conninfo import make_conninfo
except ImportError as error:  # pragma: no cover - depends on the installation
    raise AttachError("PostgreSQL catalogs need the psycopg package; pip install 'penstock[postgres]'") from error


_LOCK = "hashtext('penstock'), hashtext(coalesce(current_schema(), ''))"
_COLLISIONS = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)


_FEW_VALUES = 500
_CONNECT_SECONDS = "10"
_LOCK_SECONDS = 120


class PostgresDatabase(ServerDatabase):
    """A PostgreSQL database as the metadata database."""

    engine = "postgres"
    product = "PostgreSQL"
    dialect = POSTGRES
    _snapshot_sql = _scratch_sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    _commit_sql = "BEGIN ISOLATION LEVEL READ COMMITTED"
    _indexes_sql = "SELECT indexname FROM pg_catalog.pg_indexes WHERE schemaname = current_schema()"
    errors = (psycopg.Error,)
    _joins_whole = False  # whether the planner was told to, in this transaction

    def _connect(self, *, create: bool) -> None:
        try:
            self._connection = psycopg.connect(self._conninfo(), autocommit=True)
            if self.options.schema:
                self._use(self.options.schema, create)
            # Pruning tests `data_file_id NOT IN (...)`: with too little memory PostgreSQL compares pairs, not hashes.
            self._execute("SET work_mem = '256MB'", ())
            self._execute("SET jit = off", ())
            self._execute("SET TimeZone = 'UTC'", ())
            self._execute("SET IntervalStyle = 'postgres'", ())
            # The server may not know for long that a client is gone which held what others wait for.
            [(given,)] = self._query("SELECT current_setting('lock_timeout')", ())
            self._lock_timeout = given if given != "0" else f"{_LOCK_SECONDS}s"
            self._set_lock_wait(None)
            if self.options.read_only:
                self._execute("SET default_transaction_read_only = on", ())
            [(self._schema,)] = self._query("SELECT current_schema()", ())
        except psycopg.Error as error:
            raise self._unreachable(error) from None

    def _set_lock_wait(self, seconds: int | None) -> None:
        wait = self._lock_timeout if seconds is None else f"{seconds}s"
        self._query("SELECT set_config('lock_timeout', ?, false)", (wait,))

    def _conninfo(self) -> str:
        """The location and the parameters; for what neither says, libpq looks at its environment."""
        given = self.options.parameters
        known = {item.keyword.decode() for item in psycopg.pq.Conninfo.get_defaults()}
        refuse_unknown(
            self.location,
            [name for name in given if name not in known],
            "what libpq does: host, port, dbname, user, password, sslmode and so on",
        )
        text = make_conninfo(self.location.target, **given)
        if "connect_timeout" in text or "PGCONNECT_TIMEOUT" in os.environ:
            return text
        return make_conninfo(text, connect_timeout=_CONNECT_SECONDS)

    def _use(self, schema: str, create: bool) -> None:
        try:
            if create and not self._query("SELECT 1 FROM pg_namespace WHERE nspname = ?", [schema]):
                # Where another process makes it at the same moment, IF NOT EXISTS still collides.
                with suppress(psycopg.errors.UniqueViolation):
                    self._execute(f"CREATE SCHEMA IF NOT EXISTS {self.identifier(schema)}", ())
                    self._made_schema = schema
            self._query("SELECT set_config('search_path', quote_ident(?), false)", [schema])
        except psycopg.Error as error:
            self._connection.close()
            raise AttachError(f"{self.location} cannot use the schema {schema!r}: {error}") from None

    def _fetched(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        text = percent_style(sql)
        return self._connection.execute(text, tuple(parameters)).fetchall()

    def _run(self, sql: str, parameters: Sequence[Any]) -> None:
        self._connection.execute(percent_style(sql), tuple(parameters))

    @contextmanager
    def _cursor(self, sql: str) -> Iterator[psycopg.ServerCursor[Row]]:
        with self._connection.cursor(name="penstock_rows") as cursor:
            yield cursor.execute(percent_style(sql))

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if len(rows) * len(columns) <= _FEW_VALUES:  # COPY takes two round trips, and this one
            places = f"({', '.join(['%s'] * len(columns))})"
            into = f"INSERT INTO {table} ({', '.join(columns)})".replace("%", "%%")
            values = [value for row in rows for value in row]
            self._connection.execute(f"{into} VALUES {', '.join([places] * len(rows))}", values)
            return
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def joining(self) -> Iterator[None]:
        with self.consistent():  # holds the lock
            told = self._joins_whole
            if not told:
                # Of rows that came since the planner last counted it expects a few at most, and loops over them.
                self.execute("SET LOCAL enable_nestloop = off")
                self._joins_whole = True
            try:
                yield
            finally:
                if not told:
                    self._joins_whole = False
                    with suppress(*self.errors):  # after one the transaction ends, and takes the setting with it
                        self._execute("SET LOCAL enable_nestloop TO DEFAULT", ())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            # Held until the transaction ends. Without it many writers of one snapshot id starve each other.
            self.query(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield

    def _is_collision(self, error: BaseException) -> bool:
        return isinstance(error, _COLLISIONS)

    def _is_broken(self, error: Exception) -> bool:
        return self._connection.closed

    def _may_create(self) -> bool:
        return bool(self.value("SELECT has_schema_privilege(current_schema(), 'CREATE')"))

    def _is_denied(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.InsufficientPrivilege)

    def _needed_right(self, error: Exception) -> str:
        told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        role, table = self._connection.info.user, re.search(r"ducklake_\w+", told or "")
        if table is None:
            return (
                f"the role {role} may not make tables; GRANT CREATE ON SCHEMA {self._schema} TO {role}, "
                "or keep no rows in the catalog: attach with data_inlining_row_limit=0"
            )
        if "must be owner" in (told or ""):
            return f"the role {role} does not own {table[0]}, and only its owner may do that; do it as the owner"
        return (
            f"the role {role} has no right on {table[0]}; GRANT {self._rights} ON {self._schema}.{table[0]} TO {role}, "
            f"and for tables that are made later, as the role that makes them, ALTER DEFAULT PRIVILEGES IN SCHEMA "
            f"{self._schema} GRANT {self._rights} ON TABLES TO {role}"
        )

    def refresh_planner(self) -> None:
        for table in sorted({index.table for index in INDEXES}):
            self.execute(f"ANALYZE {table}")

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        # Not of information_schema, which hides what this role has no right on.
        sql = """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'f')"""
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def columns(self, table: str) -> list[str]:
        sql = """SELECT a.attname FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
        return [name for (name,) in self.query(sql, [self.identifier(table)])]

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
