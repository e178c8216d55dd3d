"""Compaction beside another writer: what the extension did while Penstock compacted, and the other way round.

Where the reference loses rows (two of its own writers do), here one of the two is refused, or starts again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.ducklake.changing import deletes
from penstock.ducklake.maintenance import compaction, inlined_flush
from penstock.errors import ConflictError
from penstock.lake import Lake
from support import effort
from support.catalogs import Catalog
from support.reference import Reference
from support.writing import attached, files_of

START = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'a' FROM range(0, 20) r(i)",
    "INSERT INTO t SELECT i, 'b' FROM range(100, 120) r(i)",
    "INSERT INTO t SELECT i, 'c' FROM range(200, 220) r(i)",
    "DELETE FROM t WHERE id BETWEEN 200 AND 215",
    "INSERT INTO t VALUES (1000, 'inlined'), (1001, 'inlined')",
    "DELETE FROM t WHERE id = 1000",
)
OTHERS = {
    "insert": ("INSERT INTO t SELECT i, 'd' FROM range(300, 320) r(i)",),
    "inlined insert": ("INSERT INTO t VALUES (2000, 'x')",),
    "delete file": ("DELETE FROM t WHERE id BETWEEN 0 AND 9",),
    "second delete file": ("DELETE FROM t WHERE id BETWEEN 207 AND 219 AND id < 219",),
    "update": ("UPDATE t SET name = 'new' WHERE id BETWEEN 0 AND 9",),
    "inlined delete": ("DELETE FROM t WHERE id = 5",),
    "inlined delete beside a delete file": ("DELETE FROM t WHERE id = 216",),
    "inlined delete of an inlined row": ("DELETE FROM t WHERE id = 1001",),
    "alter": ("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",),
    "partition": ("ALTER TABLE t SET PARTITIONED BY (name)",),
    "merge": ("CALL ducklake_merge_adjacent_files('lk')",),
    "rewrite": ("CALL ducklake_rewrite_data_files('lk', delete_threshold => 0.5)",),
    "flush": ("CALL ducklake_flush_inlined_data('lk')",),
}
VERBS: dict[str, Callable[[Lake], Any]] = {
    "merge": lambda lake: lake.merge_adjacent_files(),
    "rewrite": lambda lake: lake.rewrite_data_files(delete_threshold=0.5),
    "flush": lambda lake: lake.flush_inlined_data(),
}


def pairs(others: list[str]) -> list[tuple[str, str]]:
    """Each verb beside each of the others; without `--full`, each of these with one of the verbs."""
    every = [(verb, other) for other in others for verb in VERBS]
    return every if effort.is_full() else [pair for n, pair in enumerate(every) if n % 3 == n // 3 % 3]


def build(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(*START)


def contents(reference: Reference) -> list[tuple[Any, ...]]:
    return sorted(reference.rows("SELECT rowid, * FROM t"))


def our_contents(lake: Lake) -> list[tuple[Any, ...]]:
    rows = lake.table("t").read(row_ids=True).collect()
    return sorted((row.rowid, *(value for name, value in row.asDict().items() if name != "rowid")) for row in rows)


def before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let somebody act once, after the files are written and before they are committed."""
    waiting = [act]

    def acting(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if waiting:
                waiting.pop()()
            return original(*arguments)

        return call

    monkeypatch.setattr(compaction, "read_sources", acting(compaction.read_sources))
    monkeypatch.setattr(inlined_flush, "stage_flushed_rows", acting(inlined_flush.stage_flushed_rows))


@pytest.mark.parametrize(("verb", "other"), pairs(list(OTHERS)))
def test_the_extension_was_first(
    sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, verb: str, other: str
) -> None:
    build(sqlite_catalog)
    expected: list[tuple[Any, ...]] = []

    def act() -> None:
        with sqlite_catalog.reference(data_inlining_row_limit=5) as reference:
            reference.execute(*OTHERS[other])
            expected.extend(contents(reference))

    before_the_commit(monkeypatch, act)
    with attached(sqlite_catalog, spark) as lake:
        VERBS[verb](lake)
        assert expected, "nobody acted"
        assert our_contents(lake) == expected
        lake.checkpoint()
        assert our_contents(lake) == expected
        lake.expire_snapshots(keep_last=1)
        lake.cleanup_old_files(cleanup_all=True)
        assert our_contents(lake) == expected
    with sqlite_catalog.reference() as reference:
        assert contents(reference) == expected
        files = reference.rows("SELECT data_file, delete_file FROM ducklake_list_files('lk', 't')")
    named = {path.removeprefix(sqlite_catalog.data_path) for row in files for path in row if path}
    assert files_of(sqlite_catalog) == named, "what was written for nothing is gone"


def refusal(reference: Reference) -> str | None:
    """What the extension says to its COMMIT, if it does not come through."""
    try:
        reference.execute("COMMIT")
    except duckdb.Error as error:
        return str(error)
    return None


@pytest.mark.parametrize(("verb", "other"), pairs([name for name in OTHERS if name not in VERBS]))
def test_penstock_was_first(postgres_catalog: Catalog, spark: SparkSession, verb: str, other: str) -> None:
    build(postgres_catalog)
    with postgres_catalog.reference(data_inlining_row_limit=5) as reference:
        before = contents(reference)
        reference.execute("BEGIN", *OTHERS[other])
        wanted = contents(reference)
        with attached(postgres_catalog, spark) as lake:
            assert VERBS[verb](lake).count() > 0
        refused = refusal(reference)
    if refused:
        assert "conflict" in refused.lower()
        wanted = before
    with postgres_catalog.reference() as reference:
        found = contents(reference)
        assert [row[1:] for row in found] == [row[1:] for row in wanted]
    with attached(postgres_catalog, spark) as lake:
        assert our_contents(lake) == found


def test_a_dropped_table(sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    build(sqlite_catalog)

    def act() -> None:
        with sqlite_catalog.reference() as reference:
            reference.execute("DROP TABLE t")

    before_the_commit(monkeypatch, act)
    before = files_of(sqlite_catalog)
    with attached(sqlite_catalog, spark) as lake:
        assert lake.table("t").merge_adjacent_files().collect() == []
    assert files_of(sqlite_catalog) == before


CHANGES: dict[str, Callable[[Lake], Any]] = {
    "delete": lambda lake: lake.table("t").delete("id = 1001"),
    "update": lambda lake: lake.table("t").update({"name": "'new'"}, "id = 1001"),
    "delete of a file's row": lambda lake: lake.table("t").delete("id BETWEEN 0 AND 9"),
}


@pytest.mark.parametrize(
    ("verb", "change"),
    list(product(VERBS, CHANGES) if effort.is_full() else zip(VERBS, reversed(CHANGES), strict=True)),
)
def test_rows_that_moved_while_a_statement_looked_for_them(
    sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, verb: str, change: str
) -> None:
    """Between the job that finds the rows and the look at where they are: the statement must not do nothing."""
    build(sqlite_catalog)
    removal_of_changed = deletes.removal_of_changed

    def late(*arguments: Any) -> Any:
        VERBS[verb](other)
        return removal_of_changed(*arguments)

    monkeypatch.setattr(deletes, "removal_of_changed", late)
    with attached(sqlite_catalog, spark) as lake, attached(sqlite_catalog, spark) as other:
        before = our_contents(lake)
        with pytest.raises(ConflictError):
            CHANGES[change](lake)
        assert our_contents(lake) == before
        files = {row.data_file for row in lake.table("t").files().collect()}
        lake.expire_snapshots(keep_last=1)
        lake.cleanup_old_files(cleanup_all=True)
    named = {path.removeprefix(sqlite_catalog.data_path) for path in files}
    assert named <= files_of(sqlite_catalog)
    with sqlite_catalog.reference() as reference:
        assert contents(reference) == before
