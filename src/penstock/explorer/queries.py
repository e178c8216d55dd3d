"""Runs queries over the lake, each in a process of its own that reads the lake and can do nothing else."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown
from penstock.errors import AttachError, InvalidError, PenstockError, UnsupportedError
from penstock.explorer.lake_source import LakeSource, View
from penstock.explorer.query_rules import ALIAS, LakeNames, checked_query
from penstock.explorer.query_worker import QueryTask
from penstock.explorer.worker_processes import answered
from penstock.storage.duckdb_sql import duckdb_quoted, text_literal
from penstock.storage.options import StorageOptions, known_stores
from penstock.storage.paths import is_local
from penstock.storage.stores import Store, store_kind, store_of

_SCANNERS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner", "mysql": "mysql_scanner"}
_MOST_OTHER_FILES = 10_000
_AT_ONCE = 2
_NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "DECIMAL", "FLOAT", "DOUBLE",
)  # fmt: skip
_PATIENCE = 5.0  # seconds that a query waits for others


@dataclass(frozen=True)
class Rows:
    """Rows as DuckDB or Spark prints them: None is NULL. `more` says whether there are others."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False
    seconds: float = 0.0

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns are of numbers."""
        return tuple(kind.partition("(")[0].upper() in _NUMBERS for kind in self.types)


@dataclass(frozen=True)
class Limits:
    """What a query may take."""

    seconds: float = 30.0
    megabytes: int = 1000
    rows: int = 200
    letters: int = 2000


class Queries(Protocol):
    """What runs queries: DuckDB, or Spark."""

    engine: str

    def sample(self, view: View, table: TableInfo, offset: int, count: int) -> Rows:
        """Some rows of a table at the snapshot that is looked at."""

    def changes(self, view: View, table: TableInfo, first: int, last: int, offset: int, count: int) -> Rows:
        """Some of the rows that a span of snapshots changed, oldest first."""

    def select(self, view: View, sql: str) -> Rows:
        """The first rows of a query that somebody wrote, over the snapshot that is looked at."""


@dataclass
class DuckdbQueries:
    """Queries by DuckDB. The catalog's file is held for reading while one runs, as by any reader."""

    source: LakeSource
    limits: Limits = field(default_factory=Limits)
    engine: str = "DuckDB"
    _turns: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_AT_ONCE))

    def sample(self, view: View, table: TableInfo, offset: int, count: int) -> Rows:
        """Some rows of a table at the snapshot that is looked at."""
        name = ".".join(map(duckdb_quoted, (ALIAS, table.schema.name, table.name)))
        sql = f"SELECT * FROM {name} AT (VERSION => {view.snapshot.id}) LIMIT {count + 1} OFFSET {offset}"
        return self._run(view, sql, count, table=table)

    def changes(self, view: View, table: TableInfo, first: int, last: int, offset: int, count: int) -> Rows:
        """Some of the rows that a span of snapshots changed, oldest first."""
        then = table_at(view, table, last)
        given = ", ".join([*map(text_literal, (ALIAS, then.schema.name, then.name)), str(first), str(last)])
        sql = f"""SELECT * FROM ducklake_table_changes({given})
                  ORDER BY snapshot_id, rowid, change_type LIMIT {count + 1} OFFSET {offset}"""
        return self._run(view, sql, count, table=table)

    def select(self, view: View, sql: str) -> Rows:
        """The first rows of a query that somebody wrote, over the snapshot that is looked at."""
        return self._run(view, checked_query(sql, LakeNames.of(view.shown)), self.limits.rows, view.attached_version)

    def _run(
        self, view: View, sql: str, count: int, version: int | None = None, table: TableInfo | None = None
    ) -> Rows:
        task = self._task(view, sql, count, version, table)
        answer = self._answer(task)
        if "error" in answer:
            raise self._failure(answer["error"], lacks_files=len(task.files) >= _MOST_OTHER_FILES)
        rows = [tuple(_cut(value, answer["letters"]) for value in row) for row in answer["rows"]]
        return Rows(
            tuple(answer["names"]), tuple(answer["types"]), tuple(rows[:count]), len(rows) > count, answer["seconds"]
        )

    def _task(self, view: View, sql: str, count: int, version: int | None, table: TableInfo | None = None) -> QueryTask:
        view.use_store()
        folders, files = _readable(view.shown, table)
        location = self.source.location
        own = (*folders, location.target) if location.is_remote else folders
        elsewhere = [path for path in (*own, *files) if not is_local(path)]
        extensions = ["ducklake", *(_SCANNERS[e] for e in [location.engine] if e in _SCANNERS)]
        if elsewhere or _is_encrypted(view):
            extensions.append("httpfs")
        kinds = ["s3"]
        if any(store_kind(path) == "azure" for path in own):  # a single file there is no reason to refuse all queries
            extensions.append("azure")
            kinds.append("azure")
        for extension in extensions:
            _install(extension)
        attach = _attach_sql(self.source, version)
        limits, stores = self.limits, _stores_of(elsewhere, kinds)
        return QueryTask(
            sql, attach, tuple(extensions), folders, files, stores, count, limits.letters, limits.megabytes
        )

    def _answer(self, task: QueryTask) -> Mapping[str, Any]:
        with self._turn():
            return answered(task, self.limits.seconds)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=_PATIENCE):
            raise InvalidError(f"{_AT_ONCE} queries are running already; try again when one has ended")
        try:
            yield
        finally:
            self._turns.release()

    def _failure(self, said: str, lacks_files: bool = False) -> PenstockError:
        said = self.source.without_secrets(said)
        if lacks_files and "file system operations are disabled" in said:
            return UnsupportedError(
                f"more than {_MOST_OTHER_FILES:,} of the files that this is about were added from other folders, and "
                "not all of them can be opened here; ask with `penstock sql`, or start the explorer with --spark"
            )
        if "lock" in said.lower() and "conflicting" in said.lower():
            return AttachError(held_elsewhere(self.source))
        return InvalidError(f"DuckDB says: {said}")


def held_elsewhere(source: LakeSource) -> str:
    """What to say where another process writes to the catalog's file."""
    return (
        f"{source} is held by another process, which writes to it; reload the page when that has ended, or keep the "
        "catalog in SQLite or PostgreSQL, which many can use at once"
    )


def _cut(value: str | None, letters: int) -> str | None:
    return value if value is None or len(value) <= letters else value[:letters] + "…"


def _attach_sql(source: LakeSource, version: int | None) -> str:
    options, location = source.options, source.location
    said = ["READ_ONLY"]
    if options.data_path:
        said += [f"DATA_PATH {text_literal(options.data_path)}"]
        said += ["OVERRIDE_DATA_PATH"] if options.override_data_path else []
    if options.metadata_schema:
        said.append(f"METADATA_SCHEMA {text_literal(options.metadata_schema)}")
    if options.metadata_parameters:
        pairs = ", ".join(f"{text_literal(n)}: {text_literal(v)}" for n, v in options.metadata_parameters.items())
        said.append(f"METADATA_PARAMETERS MAP {{{pairs}}}")
    if version is not None:
        said.append(f"SNAPSHOT_VERSION {version}")
    kind = "" if location.engine == "duckdb" else f"{location.engine}:"
    return f"ATTACH {text_literal(f'ducklake:{kind}{location.target}')} AS {ALIAS} ({', '.join(said)})"


def table_at(view: View, table: TableInfo, version: int) -> TableInfo:
    """A table as it was called at another snapshot. Raises InvalidError where it was not there."""
    for found in objects.tables(view.shown.database, At(version), view.shown.data_path):
        if found.id == table.id:
            return found
    raise InvalidError(
        f"{table.name} was not there at snapshot {version}: it was made later, or dropped before; choose another span"
    )


def _readable(shown: Shown, asked: TableInfo | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders that a lake's files are in, and files of a table, or all, that were added from elsewhere.

    Of very many such files those that the snapshot shows come first, and not all are told.
    """
    tables = objects.tables(shown.database, shown.at, shown.data_path)
    folders = {shown.data_path, *(table.path for table in tables if not table.path.startswith(shown.data_path))}
    files: set[str] = set()
    for table in ("ducklake_data_file", "ducklake_delete_file"):
        own = "" if asked is None else f" AND d.table_id = {asked.id}"
        sql = f"""SELECT d.path FROM {table} d WHERE d.path_is_relative = ?{own}
                  ORDER BY CASE WHEN {shown.at.visible("d")} THEN 0 ELSE 1 END LIMIT {_MOST_OTHER_FILES}"""
        files.update(path for (path,) in shown.database.query(sql, [False]))
    return tuple(folders), tuple(path for path in files if not path.startswith(tuple(folders)))


def _stores_of(paths: Iterable[str], kinds: Container[str]) -> dict[Store, StorageOptions] | None:
    """The buckets of these paths with their keys, and no others that this process knows."""
    used = {store_of(path) for path in paths}
    kept = {s: options for s, options in known_stores().items() if s in used and s.kind in kinds}
    return kept or None


def _is_encrypted(view: View) -> bool:
    return any(option.name == "encrypted" and option.value == "true" for option in view.catalog.options())


@cache
def _install(extension: str) -> None:
    try:
        from duckdb_extensions import import_extension

        import_extension(extension)
    except ImportError:
        raise UnsupportedError(
            f"rows are read by DuckDB with its extension {extension}; pip install 'penstock[explorer]', or start the "
            "explorer with --spark"
        ) from None
