"""Deletes in files that have lost rows before: one row in the catalog, and a file that tells the snapshot of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import Lake
from penstock.ducklake.catalog.commits import replaced_deletes
from penstock.ducklake.changing import deletes
from support import effort
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_contents, assert_same_tables, query
from support.reference import METADATA, Reference
from support.writing import attached, files_of

DELETES = f"""SELECT begin_snapshot, end_snapshot, partial_max, format, delete_count
              FROM {METADATA}.ducklake_delete_file ORDER BY delete_file_id"""
CREATE = "CREATE TABLE t (id BIGINT, name VARCHAR)"
INSERT = "INSERT INTO t SELECT i, 'a''b/=%$' FROM range(40) r(i)"
STATEMENTS: list[tuple[Callable[[Lake], Any], str]] = [
    (lambda lake: lake.table("t").delete("id < 5"), "DELETE FROM t WHERE id < 5"),
    (
        lambda lake: lake.table("t").update({"name": "'new'"}, where="id < 10"),
        "UPDATE t SET name = 'new' WHERE id < 10",
    ),
    (lambda lake: lake.table("t").delete("id % 7 = 0"), "DELETE FROM t WHERE id % 7 = 0"),
    (lambda lake: lake.table("t").delete("id < 39 AND id > 9"), "DELETE FROM t WHERE id < 39 AND id > 9"),
    (lambda lake: lake.table("t").delete("id = 39"), "DELETE FROM t WHERE id = 39"),
]


KINDS = ["encrypted vectors", "inlined deletes", "vectors", "encrypted"]


def build(catalog: Catalog, **parameters: object) -> None:
    """One file of forty rows, at snapshot 2."""
    with catalog.build(**{"data_inlining_row_limit": 0, **parameters}) as reference:
        reference.execute(CREATE, INSERT)


def newest(reference: Reference) -> int:
    return int(reference.value("FROM lk.current_snapshot()"))


def shown(reference: Reference) -> list[Any]:
    """The table at every snapshot, and the feed of every span of snapshots."""
    last = newest(reference)
    rows = [query(reference, f"SELECT *, rowid FROM t AT (VERSION => {version})") for version in range(1, last + 1)]
    spans = [(first, end) for first in range(1, last + 1) for end in (first, last)]
    return rows + [query(reference, f"FROM lk.table_changes('t', {first}, {end})") for first, end in spans]


def assert_feeds(catalog: Catalog, spark: SparkSession) -> None:
    """Penstock reads the same rows and tells the same changes as the extension."""
    assert_same_tables(catalog, spark, "t")
    with catalog.reference() as reference:
        last = newest(reference)
        told = {first: query(reference, f"FROM lk.table_changes('t', {first}, {last})") for first in range(1, last + 1)}
    with attached(catalog, spark) as lake:
        for first, expected in told.items():
            assert_contents(lake.table("t").changes(first, last), expected, f"changes from {first}")


@pytest.mark.one_catalog
def test_the_catalog_and_both_feeds_are_those_of_the_extension(catalog: Catalog, spark: SparkSession) -> None:
    build(catalog)
    (catalog.directory / "twin").mkdir()
    twin = DuckDBCatalog(catalog.directory / "twin")
    build(twin)
    with twin.reference(data_inlining_row_limit=0) as reference:
        reference.execute(*(statement for _, statement in STATEMENTS))
        rows, told = reference.rows(DELETES), shown(reference)
        scheduled = reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_files_scheduled_for_deletion")
    with attached(catalog, spark, data_inlining_row_limit=0) as lake:
        for statement, _ in STATEMENTS:
            statement(lake)
    with catalog.reference() as reference:
        assert reference.rows(DELETES) == rows
        assert shown(reference) == told
        schedule = f"{METADATA}.ducklake_files_scheduled_for_deletion"
        assert reference.value(f"SELECT count(*) FROM {schedule}") == scheduled
    assert_feeds(catalog, spark)
    with attached(catalog, spark) as lake:
        gone = {row.path for row in lake.cleanup_old_files(cleanup_all=True).collect()}
        assert len(gone) == scheduled
    assert_feeds(catalog, spark)


@pytest.mark.parametrize("kind", KINDS if effort.is_full() else KINDS[1:2])
def test_every_kind(file_catalog: Catalog, spark: SparkSession, kind: str) -> None:
    """A vector cannot tell snapshots: from the second delete on, the file is a Parquet file."""
    build(file_catalog, encrypted="encrypted" in kind)
    limit = 6 if kind == "inlined deletes" else 0
    with attached(file_catalog, spark, data_inlining_row_limit=limit) as lake:
        lake.set_option("write_deletion_vectors", "vectors" in kind)
        for statement, _ in STATEMENTS:
            statement(lake)
        assert lake.table("t").read().count() == 4
    with file_catalog.reference() as reference:
        kinds = reference.rows(DELETES)
    if "vectors" in kind:
        assert {(row[2] is None, row[3]) for row in kinds} == {(False, "parquet"), (True, "puffin")}
    assert_feeds(file_catalog, spark)


@pytest.mark.one_catalog
def test_another_writer_was_faster(catalog: Catalog, spark: SparkSession) -> None:
    """The file was written for the number that the other one got: it is written once more, and the first one goes."""
    build(catalog)
    with attached(catalog, spark, data_inlining_row_limit=0) as lake, attached(catalog, spark) as other:
        lake.table("t").delete("id < 5")
        before = files_of(catalog)
        with lake.transaction():
            lake.table("t").delete("id < 8")
            lake.table("t").delete("id BETWEEN 20 AND 22")
            assert lake.table("t").read().count() == 29
            other.create_table("u", "id BIGINT")
            other.create_table("v", "id BIGINT")
        assert len(files_of(catalog) - before) == 1
        assert lake.table("t").read().count() == 29
        assert lake.table("t").read(version=3).count() == 35
        told = {(row.snapshot_id, row.id) for row in lake.table("t").changes(3).collect()}
        assert told == {(3, i) for i in range(5)} | {(6, i) for i in (5, 6, 7, 20, 21, 22)}
    assert_feeds(catalog, spark)


@pytest.mark.parametrize(
    ("written", "error"),
    [(False, OSError("the disk is full")), (True, KeyboardInterrupt("stop"))],
    ids=["a full disk", "an interrupt"],
)
def test_a_file_that_cannot_be_written_again(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, written: bool, error: BaseException
) -> None:
    """Before the file is there, or after it: nothing is committed, and nothing is left."""
    writing = replaced_deletes.write_dated_delete_file

    def fails(*arguments: Any, **named: Any) -> None:
        if written:
            writing(*arguments, **named)
        raise error

    build(file_catalog)
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake, attached(file_catalog, spark) as other:
        lake.table("t").delete("id < 5")
        before = files_of(file_catalog)
        monkeypatch.setattr(replaced_deletes, "write_dated_delete_file", fails)

        def delete_slowly() -> None:
            with lake.transaction():
                lake.table("t").delete("id < 8")
                other.create_table("u", "id BIGINT")

        with pytest.raises(type(error), match=str(error)):
            delete_slowly()
        assert files_of(file_catalog) == before
        assert lake.table("t").read().count() == 35


@pytest.mark.one_catalog
def test_a_table_that_is_dropped_after_it(catalog: Catalog, spark: SparkSession) -> None:
    """The delete file before it is still what the older snapshots need."""
    build(catalog)
    with attached(catalog, spark, data_inlining_row_limit=0) as lake:
        lake.table("t").delete("id < 5")
        with lake.transaction():
            lake.table("t").delete("id < 8")
            lake.drop_table("t")
    with attached(catalog, spark, snapshot_version=3) as lake:
        assert lake.table("t").read().count() == 35
    with catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t AT (VERSION => 3)") == 35
        assert reference.rows(DELETES) == [(3, 4, None, "parquet", 5)]


@pytest.mark.one_catalog
def test_all_rows_go_after_it(catalog: Catalog, spark: SparkSession) -> None:
    build(catalog)
    with attached(catalog, spark, data_inlining_row_limit=0) as lake:
        lake.table("t").delete("id < 5")
        with lake.transaction():
            lake.table("t").delete("id < 8")
            lake.table("t").delete()
        assert lake.table("t").read().isEmpty()
        assert lake.table("t").read(version=3).count() == 35
        assert lake.table("t").changes(4).count() == 35
    assert_feeds(catalog, spark)


@pytest.mark.parametrize("vectors", [False, True])
def test_frames_of_older_snapshots_stay(file_catalog: Catalog, spark: SparkSession, vectors: bool) -> None:
    build(file_catalog)
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        lake.set_option("write_deletion_vectors", vectors)
        table = lake.table("t")
        table.delete("id < 5")
        frame, feed = table.read(), table.changes(3)
        table.delete("id < 8")
        assert (frame.count(), feed.count()) == (35, 5)
        assert table.read().count() == 32


def test_frames_of_a_transaction_stay_when_another_writer_was_faster(
    sqlite_catalog: Catalog, spark: SparkSession
) -> None:
    build(sqlite_catalog)
    with attached(sqlite_catalog, spark, data_inlining_row_limit=0) as lake, attached(sqlite_catalog, spark) as other:
        lake.table("t").delete("id < 5")
        with lake.transaction():
            lake.table("t").delete("id < 8")
            frame = lake.table("t").read()
            other.create_table("u", "id BIGINT")
        assert frame.count() == 32


THEIRS = {
    "the same rows": "DELETE FROM t WHERE id BETWEEN 6 AND 20",
    "other rows": "DELETE FROM t WHERE id BETWEEN 20 AND 35",
    "an inlined delete of the same row": "DELETE FROM t WHERE id = 6",
    "an inlined delete of another": "DELETE FROM t WHERE id = 20",
    "update": "UPDATE t SET name = 'theirs' WHERE id BETWEEN 6 AND 20",
    "flush": "CALL ducklake_flush_inlined_data('lk')",
}
# Beside a first delete of the file and a second one; without `--full`, each with one of the two.
PAIRS = [
    (1 + (number + place) % 2, kind)
    for number, kind in enumerate(THEIRS)
    for place in range(2 if effort.is_full() else 1)
]


@pytest.mark.parametrize(("times", "kind"), PAIRS)
def test_penstock_was_first(postgres_catalog: Catalog, spark: SparkSession, kind: str, times: int) -> None:
    """Two of the extension's own writers bring rows back here, or show them twice; beside ours it is refused."""
    build(postgres_catalog)
    with postgres_catalog.reference(data_inlining_row_limit=5) as reference:
        reference.execute("DELETE FROM t WHERE id < 3")  # in the catalog, for the flush
        with attached(postgres_catalog, spark, data_inlining_row_limit=0) as lake:
            if times == 2:
                lake.table("t").delete("id BETWEEN 30 AND 36")
            reference.execute("BEGIN", THEIRS[kind])
            lake.table("t").delete("id < 12")
            expected = sorted(map(tuple, lake.table("t").read(row_ids=True).collect()))
        with pytest.raises(duckdb.Error, match=r"[Cc]onflict"):
            reference.execute("COMMIT")
    with postgres_catalog.reference() as reference:
        assert sorted(reference.rows("SELECT *, rowid FROM t")) == expected
    assert_feeds(postgres_catalog, spark)


OURS: dict[str, Callable[[Lake], Any]] = {
    "inlined deletes": lambda lake: lake.table("t").delete("id IN (7, 8)"),
    "flush": lambda lake: lake.flush_inlined_data(),
}


@pytest.mark.parametrize("times", [1, 2] if effort.is_full() else [2])
@pytest.mark.parametrize("ours", OURS)
def test_their_delete_file_beside_deletes_in_the_catalog(
    postgres_catalog: Catalog, spark: SparkSession, ours: str, times: int
) -> None:
    build(postgres_catalog)
    with postgres_catalog.reference(data_inlining_row_limit=5) as reference:
        if times == 2:
            reference.execute("DELETE FROM t WHERE id BETWEEN 30 AND 36")
        reference.execute("DELETE FROM t WHERE id < 3", "BEGIN", "DELETE FROM t WHERE id BETWEEN 6 AND 20")
        with attached(postgres_catalog, spark, data_inlining_row_limit=5) as lake:
            OURS[ours](lake)
            expected = sorted(map(tuple, lake.table("t").read(row_ids=True).collect()))
        with pytest.raises(duckdb.Error, match=r"[Cc]onflict"):
            reference.execute("COMMIT")
    with postgres_catalog.reference() as reference:
        assert sorted(reference.rows("SELECT *, rowid FROM t")) == expected


@pytest.mark.parametrize(("times", "kind"), PAIRS)
def test_the_extension_was_first(postgres_catalog: Catalog, spark: SparkSession, kind: str, times: int) -> None:
    build(postgres_catalog)
    with attached(postgres_catalog, spark, data_inlining_row_limit=0) as lake:
        with postgres_catalog.reference(data_inlining_row_limit=5) as reference:
            reference.execute("DELETE FROM t WHERE id < 3")
            if times == 2:
                reference.execute("DELETE FROM t WHERE id BETWEEN 30 AND 36")

            def delete_slowly() -> None:
                with lake.transaction():
                    lake.table("t").delete("id < 12")
                    reference.execute(THEIRS[kind])

            with pytest.raises(penstock.ConflictError):
                delete_slowly()
            expected = sorted(reference.rows("SELECT *, rowid FROM t"))
        assert sorted(map(tuple, lake.table("t").read(row_ids=True).collect())) == expected
    assert_same_tables(postgres_catalog, spark, "t")


def test_a_merge_between_the_scan_and_its_job_is_a_conflict(
    sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the user's own DataFrames it is a stale read; of the statement's own it is not the user who read too late."""
    build(sqlite_catalog)
    with attached(sqlite_catalog, spark) as lake, attached(sqlite_catalog, spark) as other:
        lake.table("t").append(lake.table("t").read())
        find_rows = deletes.find_rows

        def late(*arguments: Any) -> Any:
            other.merge_adjacent_files()
            return find_rows(*arguments)

        monkeypatch.setattr(deletes, "find_rows", late)
        with pytest.raises(penstock.ConflictError, match="replaced by another writer"):
            lake.table("t").delete("id < 5")
        assert lake.table("t").read().count() == 80
