"""A MySQL or MariaDB database as the metadata database."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.catalog.databases.base import ConnectOptions, Database, InlinedColumn, Row, percent_style
from penstock.catalog.dialects import MYSQL
from penstock.catalog.location import Location, redact, secrets_in
from penstock.errors import AttachError

try:
    import pymysql
except ImportError as error:  # pragma: no cover - depends on the installation
    raise AttachError("MySQL catalogs need the PyMySQL package; pip install 'penstock[mysql]'") from error

# The spellings that DuckDB's mysql extension takes, and PyMySQL's word for each.
_KEYWORDS = {
    "host": "host",
    "user": "user",
    "password": "password",
    "passwd": "password",
    "pw": "password",
    "db": "database",
    "database": "database",
    "port": "port",
    "socket": "unix_socket",
    "unix_socket": "unix_socket",
}
_SQL_MODE = "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"


class MysqlDatabase(Database):
    engine = "mysql"
    dialect = MYSQL
    begin_sql = "START TRANSACTION WITH CONSISTENT SNAPSHOT"

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        keywords = _connection_keywords(location, options.parameters)
        try:
            self._connection = pymysql.connect(**keywords, charset="utf8mb4", autocommit=True, connect_timeout=10)
        except pymysql.MySQLError as error:
            raise AttachError(_refused(location, options, str(error))) from None
        self._query(f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00'", ())
        if options.schema:
            self._query(f"USE {self.identifier(options.schema)}", ())
        if options.read_only:
            self._query("SET SESSION TRANSACTION READ ONLY", ())

    def _query(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(percent_style(sql) if parameters else sql, tuple(parameters) or None)
            return list(cursor.fetchall())

    def _run(self, sql: str) -> None:
        self._query(sql, ())

    def _close(self) -> None:
        self._connection.close()

    def tables(self, prefix: str) -> set[str]:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
        return {name for (name,) in self.query(sql) if name.startswith(prefix)}

    def inlined_text(
        self, table: str, columns: Sequence[InlinedColumn], where: str, parameters: Sequence[Any]
    ) -> list[Row]:
        values = "".join(f", {self._value(column)}" for column in columns)
        return self.query(f"SELECT row_id{values} FROM {self.identifier(table)} WHERE {where}", parameters)

    def _value(self, column: InlinedColumn) -> str:
        name = self.identifier(column.name)
        if column.is_blob:
            return name
        # The text of a FLOAT has six digits, that of a DOUBLE all of them.
        return f"CAST(CAST({name} AS DOUBLE) AS CHAR)" if column.type == "float32" else f"CAST({name} AS CHAR)"

    def time_parameter(self, value: datetime) -> datetime:
        return value.astimezone(UTC).replace(tzinfo=None)


def _connection_keywords(location: Location, parameters: Mapping[str, str]) -> dict[str, Any]:
    keywords: dict[str, Any] = {}
    try:
        pairs = [part.partition("=") for part in shlex.split(location.target)]
    except ValueError:
        pairs = [("", "", "")]
    for key, separator, value in [*pairs, *((key, "=", value) for key, value in parameters.items())]:
        name = _KEYWORDS.get(key.lower())
        if name is None or not separator:
            known = ", ".join(sorted(_KEYWORDS))
            raise AttachError(
                f"{location} is not a MySQL location: write KEY=VALUE pairs separated by spaces, with {known}"
            )
        keywords[name] = int(value) if name == "port" else value
    return keywords


def _refused(location: Location, options: ConnectOptions, reason: str) -> str:
    for secret in (*secrets_in(location.target), *options.parameters.values()):
        reason = reason.replace(secret, "***")
    return f"{location} cannot be reached: MySQL says {redact(reason)!r}; check host, port, user and database"
