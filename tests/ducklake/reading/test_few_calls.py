"""How few calls into the JVM a read makes: the same number however many columns a table has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from support.calls import calls_counted
from support.catalogs import Catalog, SQLiteCatalog

FEW = 8  # calls of a read, whatever it is of
COLUMNS = {
    "plain": ("BIGINT", "VARCHAR", "DOUBLE", "DATE"),
    "converted": ("UUID", "TIMESTAMP_NS", "UUID[]", "STRUCT(a INTEGER, b UUID)", "MAP(UUID, TIMESTAMP_NS)", "INTERVAL"),
}
NARROW, WIDE = 2, 48


@pytest.fixture(autouse=True)
def no_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets that other tests of this process have reached: what is known of each is put together for every scan."""
    monkeypatch.setattr("penstock.spark.stores.known_stores", dict)


def _made(catalog: Catalog, kind: str, rows: int, **parameters: object) -> None:
    """A narrow and a wide table of each kind."""
    with catalog.build(**parameters) as lake:
        for width in (NARROW, WIDE):
            types = [COLUMNS[kind][place % len(COLUMNS[kind])] for place in range(width)]
            columns = ", ".join(f"c{place} {type}" for place, type in enumerate(types))
            lake.execute(f"CREATE TABLE t{width} (id INTEGER, {columns})")
            values = ", ".join("NULL" for _ in types)
            lake.execute(f"INSERT INTO t{width} SELECT i, {values} FROM range({rows}) r(i)")


def _calls(work: Callable[[], object]) -> int:
    work()
    with calls_counted() as calls:
        work()
    return len(calls)


@pytest.mark.parametrize("row_ids", [False, True])
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("inlined", [False, True])
def test_a_read_makes_few_calls(tmp_path: Path, spark: SparkSession, kind: str, inlined: bool, row_ids: bool) -> None:
    catalog = SQLiteCatalog(tmp_path)
    _made(catalog, kind, 3, data_inlining_row_limit=10 if inlined else 0)
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        reads = [
            partial(lake.table(f"t{width}").read, row_ids=row_ids, nanoseconds="truncate") for width in (NARROW, WIDE)
        ]
        narrow, wide = (_calls(read) for read in reads)
        assert narrow == wide <= FEW + row_ids  # a reader of ours numbers the rows: may executors know it?
        assert [read().count() for read in reads] == [3, 3]


def test_deletes_make_calls_of_their_own_but_none_a_column(tmp_path: Path, spark: SparkSession) -> None:
    catalog = SQLiteCatalog(tmp_path)
    _made(catalog, "plain", 3, data_inlining_row_limit=0)
    with catalog.reference(data_inlining_row_limit=0) as duckdb:
        for width in (NARROW, WIDE):
            duckdb.execute(f"DELETE FROM t{width} WHERE id = 1")
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        reads = [lake.table(f"t{width}").read for width in (NARROW, WIDE)]
        narrow, wide = (_calls(read) for read in reads)
        assert narrow == wide
        assert [sorted(row.id for row in read().collect()) for read in reads] == [[0, 2], [0, 2]]
