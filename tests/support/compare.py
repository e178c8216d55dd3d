"""The judgement of the interop tests: at every snapshot, Penstock shows what DuckDB's extension shows.

Most of these tests make the same lake in four databases. The first of them is read by Spark. For the others it is
enough that the catalog says the same about the same files (`ingredients`) and the extension shows the same rows: Spark
would only do the same again. Where anything differs, Spark reads that one too; with `pytest --full` it reads all. Of
long histories, every second version is read without it.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from zlib import crc32

import duckdb
import pytest
from duckdb.sqltypes import DuckDBPyType
from pyspark.sql import DataFrame, SparkSession

import penstock
from support import effort
from support.catalogs import Catalog
from support.hostile_values import canonical, spark_type
from support.ingredients import ingredients
from support.reference import ALIAS, METADATA, Reference, identifier


@dataclass(frozen=True)
class TableName:
    """A table of a lake, by its real name; `str` is how it is written, for DuckDB and for `Lake.table` alike."""

    table: str
    schema: str = "main"

    def __str__(self) -> str:
        return f"{identifier(self.schema)}.{identifier(self.table)}"


@dataclass(frozen=True)
class Contents:
    """What a query of the extension gave: column names, DuckDB types, and rows of canonical values in no order."""

    columns: tuple[tuple[str, DuckDBPyType], ...]
    rows: Counter[tuple[Any, ...]]


class Judgements:
    """Comparisons that were made and passed, by all that their outcome depends on."""

    def __init__(self) -> None:
        self._passed: set[bytes] = set()

    def passed(self, *what: object) -> bool:
        return not effort.is_full() and self._digest(what) in self._passed

    def keep(self, *what: object) -> None:
        self._passed.add(self._digest(what))

    @staticmethod
    def _digest(what: tuple[object, ...]) -> bytes:
        return sha256(repr(what).encode("utf-8", "surrogatepass")).digest()


judgements = Judgements()
_SHORT = 5  # versions
History = dict[tuple[TableName, int], Contents | None]


def assert_same_tables(
    catalog: Catalog, spark: SparkSession, *tables: str | TableName, row_ids: bool = True, **parameters: Any
) -> None:
    """Compare the tables at every snapshot that touched them, and at the newest."""
    with catalog.reference() as reference:
        history = record(reference, *tables, row_ids=row_ids)
    assert_history(catalog, spark, history, row_ids=row_ids, **parameters)


def record(reference: Reference, *tables: str | TableName, row_ids: bool = True) -> History:
    """What the extension shows at every snapshot that touched the tables; None where there is no such table."""
    names = [table if isinstance(table, TableName) else TableName(table) for table in tables]
    return {
        (name, version): _contents_at(reference, name, version, row_ids)
        for name in names
        for version in _versions(reference, name)
    }


def assert_history(
    catalog: Catalog, spark: SparkSession, history: History, *, row_ids: bool = True, **parameters: Any
) -> None:
    """Attach Penstock once and compare it with what was recorded, two queries at a time."""
    assert any(history.values()), "the extension showed no table at all"

    def compare(name: TableName, version: int, expected: Contents | None) -> None:
        if expected is None:
            with pytest.raises(penstock.NotFoundError):
                lake.table(str(name)).read(version=version)
            return
        table = lake.table(str(name))
        made_of = ingredients(table, version, catalog.directory, row_ids=row_ids)
        session = [spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.codegen.wholeStage")]
        depends_on = (session, made_of, expected.columns, sorted(map(repr, expected.rows.elements())))
        if not judgements.passed(*depends_on):
            frame = table.read(version=version, row_ids=row_ids, nanoseconds="truncate")
            assert_contents(frame, expected, f"{name} at version {version}")
            judgements.keep(*depends_on)

    with (
        penstock.attach(catalog.uri, read_only=True, spark=spark, **parameters) as lake,
        ThreadPoolExecutor(max_workers=2) as pool,
    ):
        for comparison in [pool.submit(compare, *key, history[key]) for key in _judged(history)]:
            comparison.result()


def _judged(history: History) -> list[tuple[TableName, int]]:
    """What is compared: without `--full`, of a table's long history its ends and every second version between."""
    if effort.is_full():
        return list(history)
    chosen = []
    for table in dict.fromkeys(name for name, _ in history):
        versions = sorted(version for name, version in history if name == table)
        first = crc32(f"{table} {versions}".encode()) % 2
        between = versions[1:-1] if len(versions) <= _SHORT else versions[1:-1][first::2]
        chosen += [(table, version) for version in dict.fromkeys([versions[0], *between, versions[-1]])]
    return chosen


def query(reference: Reference, sql: str) -> Contents:
    """What the extension answers to a query."""
    answer = reference.connection.execute(sql)
    columns = tuple((column[0], column[1]) for column in answer.description or ())
    projection = [_projected(name, kind) for name, kind in columns]
    if projection == [identifier(name) for name, _ in columns]:
        rows = answer.fetchall()
    else:
        rows = reference.rows(f"SELECT {', '.join(projection)} FROM ({sql})")
    return Contents(columns, Counter(_canonical_row(row, columns) for row in rows))


def assert_contents(frame: DataFrame, expected: Contents, what: str = "the query") -> None:
    """The DataFrame has the columns, types and rows that the extension gave."""
    promised = [(name, spark_type(kind)) for name, kind in expected.columns]
    actual = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    assert actual == promised, f"columns of {what}"
    rows = Counter(_canonical_row(tuple(row), expected.columns) for row in frame.collect())
    missing, surplus = list((expected.rows - rows).elements()), list((rows - expected.rows).elements())
    if missing or surplus:
        names = [name for name, _ in expected.columns]
        pytest.fail(f"{what}: {_difference(names, missing, surplus)}", pytrace=False)


def _contents_at(reference: Reference, name: TableName, version: int, row_ids: bool) -> Contents | None:
    source = f"{name} AT (VERSION => {version})"
    try:
        return query(reference, f"SELECT *{', rowid' if row_ids else ''} FROM {source}")
    except duckdb.CatalogException:
        return None


def _versions(reference: Reference, name: TableName) -> list[int]:
    """The snapshots that made, changed or dropped a table of this name, and the newest one."""
    tables = reference.rows(
        f"SELECT schema_name, table_name, table_id, t.begin_snapshot, t.end_snapshot FROM {METADATA}.ducklake_table t"
        f" JOIN {METADATA}.ducklake_schema s USING (schema_id)"
    )
    # Chosen here and not in the query: DuckDB's MySQL connector finds no names with a backslash.
    lives = [life for schema, table, *life in tables if (schema, table) == (name.schema, name.table)]
    assert lives, f"the lake never had a table {name}"
    ids = {str(table_id) for table_id, _, _ in lives}
    changes = dict(reference.rows(f"SELECT snapshot_id, changes FROM {ALIAS}.snapshots()"))
    touched = {v for v, made in changes.items() if any(ids & set(values) for values in (made or {}).values())}
    touched.update(v for _, begin, end in lives for v in (begin, end) if v in changes)
    return sorted(touched | {max(changes)})


def _projected(name: str, kind: DuckDBPyType) -> str:
    """A column as the reference is asked for it, where Python's type for it would lose something.

    A timedelta has no months, so intervals come in parts. A datetime has no nanoseconds, and DuckDB rounds them towards
    1970; Penstock cuts them off, so that order is kept.
    """
    column = identifier(name)
    if kind.id == "timestamp_ns":
        return f"make_timestamp((epoch_ns({column}) - (epoch_ns({column}) % 1000 + 1000) % 1000) // 1000) AS {column}"
    if kind.id != "interval":
        return column
    months = f"(year({column}) * 12 + month({column}))::INT"
    days = f"day({column})::INT"
    micros = f"(hour({column}) * 3600000000 + minute({column}) * 60000000 + microsecond({column}))::BIGINT"
    parts = f"{{'months': {months}, 'days': {days}, 'microseconds': {micros}}}"
    return f"CASE WHEN {column} IS NOT NULL THEN {parts} END AS {column}"


def _canonical_row(row: tuple[Any, ...], columns: tuple[tuple[str, DuckDBPyType], ...]) -> tuple[Any, ...]:
    return tuple(canonical(value, kind) for value, (_, kind) in zip(row, columns, strict=True))


def _difference(names: list[str], missing: list[tuple[Any, ...]], surplus: list[tuple[Any, ...]]) -> str:
    """What to look at first: the cells that differ in a pair of rows that are most alike, else a row of each side."""
    counts = f"{len(missing)} rows lacking, {len(surplus)} too many"
    if not missing or not surplus:
        return f"{counts}, such as {(missing or surplus)[0]}"
    ours = max(surplus, key=lambda row: sum(a == b for a, b in zip(row, missing[0], strict=True)))
    cells = [f"{n}: DuckDB {a!r}, Penstock {b!r}" for n, a, b in zip(names, missing[0], ours, strict=True) if a != b]
    return f"{counts}\n" + "\n".join(cells)
