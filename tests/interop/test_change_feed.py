"""The change feed: what `table_changes`, `table_insertions` and `table_deletions` of the extension give, row for row.

Where the extension is wrong it is right before: maintenance must not change what was fed, so its word is taken from
before a flush, a merge or a rewrite, or from the same statements on inlined rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import Contents, assert_contents, query
from support.plans import files_read
from support.reference import METADATA, Reference

FEEDS = ("changes", "insertions", "deletions")
Asked = tuple[str, int, int]
Fed = dict[Asked, Contents]
TABLE = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'n' || i FROM range(20) r(i)",
    "INSERT INTO t SELECT i, NULL FROM range(20, 40) r(i)",
)
CHANGES = (
    "DELETE FROM t WHERE id % 7 = 0",
    "DELETE FROM t WHERE id IN (1, 2, 21)",
    "UPDATE t SET name = 'quo''te /=%$ 🦆' WHERE id BETWEEN 15 AND 24",
    "UPDATE t SET name = '' WHERE id IN (3, 16)",
    "MERGE INTO t USING (SELECT 17 AS id UNION ALL SELECT 99) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL)",
    "DELETE FROM t WHERE id < 20",
    "DELETE FROM t",
    "INSERT INTO t VALUES (1, 'again')",
)


def newest(reference: Reference) -> int:
    version: int = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
    return version


def spans(last: int, first: int = 1) -> set[Asked]:
    """Every snapshot from the first on by itself, and a few longer spans."""
    middle = (first + last) // 2
    singles = {("changes", n, n) for n in range(first, last + 1)}
    return singles | {
        ("changes", 0, last),
        ("changes", 0, middle),
        ("insertions", middle, last),
        ("deletions", 0, last),
    }


def fed(reference: Reference, asked: Iterable[Asked], table: str = "t") -> Fed:
    """What the extension feeds. Two of its functions give the snapshot and the row id only to those who ask."""
    return {
        (feed, start, end): query(
            reference,
            f"SELECT {'' if feed == 'changes' else 'snapshot_id, rowid, '}*"
            f" FROM ducklake_table_{feed}('lk', 'main', '{table}', {start}, {end})",
        )
        for feed, start, end in asked
    }


def assert_fed(catalog: Catalog, spark: SparkSession, expected: Fed, table: str = "t") -> None:
    def compare(asked: Asked, contents: Contents) -> None:
        assert_contents(feed_of(lake, table, *asked), contents, f"{asked[0]} of {table} from {asked[1]} to {asked[2]}")

    assert any(contents.rows for contents in expected.values()), "the extension fed nothing at all"
    with (
        penstock.attach(catalog.uri, read_only=True, spark=spark) as lake,
        ThreadPoolExecutor(max_workers=2) as pool,
    ):
        for comparison in [pool.submit(compare, *item) for item in expected.items()]:
            comparison.result()


def feed_of(lake: penstock.Lake, table: str, feed: str, start: int, end: int) -> DataFrame:
    frame: DataFrame = getattr(lake.table(table), feed)(start, end, nanoseconds="truncate")
    return frame


@pytest.mark.parametrize("inlined", [0, 4, 100])
def test_statements(file_catalog: Catalog, spark: SparkSession, inlined: int) -> None:
    """Delete files and files ended whole; a mixture with inlined rows and deletes; inlined rows alone."""
    with file_catalog.build(data_inlining_row_limit=inlined) as reference:
        reference.execute(*TABLE, *CHANGES)
        expected = fed(reference, spans(newest(reference), 4))
    assert_fed(file_catalog, spark, expected)


def test_on_every_catalog(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=4) as reference:
        reference.execute(*TABLE, *CHANGES)
        last = newest(reference)
        asked = {(feed, *span) for feed in FEEDS for span in ((0, last), (5, 7))}
        expected = fed(reference, asked)
        reference.execute("CALL ducklake_flush_inlined_data('lk')", "CALL ducklake_merge_adjacent_files('lk')")
    assert_fed(catalog, spark, expected)


def test_after_flush_and_merge(file_catalog: Catalog, spark: SparkSession) -> None:
    """Neither is a change, and rows keep the snapshots that changed them."""
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO t VALUES (4, 'd')",
            "DELETE FROM t WHERE id = 2",
            "UPDATE t SET name = 'changed' WHERE id = 3",
            "DELETE FROM t WHERE id = 4",
            "INSERT INTO t SELECT i, 'file' FROM range(10, 20) r(i)",
            "INSERT INTO t SELECT i, 'file' FROM range(20, 30) r(i)",
        )
        expected = fed(reference, spans(newest(reference)))
        reference.execute(
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_merge_adjacent_files('lk')",
            "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
        )
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_data_file WHERE partial_max IS NOT NULL") > 0
        merged = newest(reference)
        reference.execute("INSERT INTO t VALUES (100, 'after')")
        expected |= fed(reference, [("insertions", merged + 1, merged + 1)])
    assert_fed(file_catalog, spark, expected)
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        for version in range(9, merged + 1):
            assert lake.table("t").changes(version, version).isEmpty()


def test_deletes_in_flushed_and_merged_files(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension gives these deletes the snapshot that inserted the row, or that changed it before."""
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "UPDATE t SET name = 'changed' WHERE id = 3",
            "CALL ducklake_flush_inlined_data('lk')",
            "DELETE FROM t WHERE id = 3",
        )
        assert (3, 2, "update_preimage", 3, "changed") in reference.rows("FROM lk.table_changes('t', 0, 5)")
        reference.execute(
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            "INSERT INTO t SELECT i, 'x' FROM range(10, 14) r(i)",
            "INSERT INTO t SELECT i, 'x' FROM range(20, 24) r(i)",
            "CALL ducklake_merge_adjacent_files('lk')",
            "DELETE FROM t WHERE id = 21",
        )
        [contents] = fed(reference, [("deletions", 0, 9)]).values()
        assert (7, 8, 21, "x") in contents.rows
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        t = lake.table("t")
        assert _rows(t.changes(3, 5)) == {
            (3, 2, "update_preimage", 3, "c"),
            (3, 2, "update_postimage", 3, "changed"),
            (5, 2, "delete", 3, "changed"),
        }
        assert _rows(t.changes(9, 9)) == {(9, 8, "delete", 21, "x")}
        assert _rows(t.deletions(0)) == {(3, 2, 3, "c"), (5, 2, 3, "changed"), (9, 8, 21, "x")}


def test_rewritten_files(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension feeds a rewrite as an update of every row that is left; it changes nothing, merged later or not."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*TABLE, "DELETE FROM t WHERE id < 15", "DELETE FROM t WHERE id = 16")
        last = newest(reference)
        expected = fed(reference, spans(last))
        reference.execute("CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.5)")
        assert reference.rows(f"FROM lk.table_changes('t', {last + 1}, {last + 1})")
        wider = {(feed, first, last + 1): rows for (feed, first, end), rows in expected.items() if end == last}
        reference.execute(
            "INSERT INTO t VALUES (100, 'after')",
            "CALL ducklake_merge_adjacent_files('lk')",
            "DELETE FROM t WHERE id = 17",
        )
    assert_fed(file_catalog, spark, expected | wider)
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        after = lake.table("t").changes(last + 1)
        assert _rows(after) == {(last + 2, 40, "insert", 100, "after"), (last + 4, 17, "delete", 17, "n17")}


def test_rows_that_their_own_transaction_deletes(file_catalog: Catalog, spark: SparkSession) -> None:
    """No snapshot shows them. The extension agrees on inlined rows, but feeds those of files as updated."""
    statements = (
        "CREATE TABLE t (id INTEGER, name VARCHAR)",
        "INSERT INTO t SELECT i, 'a' FROM range(3) r(i)",
        "BEGIN",
        "INSERT INTO t SELECT i, 'b' FROM range(10, 13) r(i)",
        "DELETE FROM t WHERE id IN (1, 12)",
        "UPDATE t SET name = 'first' WHERE id = 2",
        "UPDATE t SET name = 'second' WHERE id = 2",
        "COMMIT",
        "BEGIN",
        "UPDATE t SET name = 'third'",
        "DELETE FROM t WHERE id = 0",
        "COMMIT",
        "BEGIN",
        "DELETE FROM t WHERE id = 2",
        "COMMIT",
    )
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*statements)
        reference.detach()
        reference.attach(f"ducklake:{file_catalog.directory}/inlined.ducklake", data_inlining_row_limit=100)
        reference.execute(*statements)
        expected = fed(reference, [("changes", 0, 5), ("changes", 3, 3), ("insertions", 3, 5), ("deletions", 4, 4)])
    assert_fed(file_catalog, spark, expected)


def test_columns_of_the_end(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=3) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR, s STRUCT(a INTEGER))",
            "INSERT INTO t SELECT i, 'n' || i, {'a': i} FROM range(10) r(i)",
            "INSERT INTO t VALUES (20, 'small', NULL)",
            "ALTER TABLE t ADD COLUMN extra DECIMAL(38, 2) DEFAULT 0.5",
            "UPDATE t SET extra = 1.5 WHERE id IN (2, 20)",
            "ALTER TABLE t DROP COLUMN name",
            "DELETE FROM t WHERE id % 2 = 0",
            "ALTER TABLE t RENAME extra TO name",
            "ALTER TABLE t ALTER id TYPE BIGINT",
            "ALTER TABLE t ADD COLUMN s.b UUID DEFAULT '00000000-0000-0000-0000-000000000001'",
            "INSERT INTO t SELECT i, {'a': NULL, 'b': uuid()}, i FROM range(100, 105) r(i)",
            "DELETE FROM t WHERE id IN (1, 101)",
            "DELETE FROM t",
        )
        expected = fed(reference, spans(newest(reference), 5))
    assert_fed(file_catalog, spark, expected)


def test_types_partitions_and_awkward_names(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=2) as reference:
        reference.execute(
            'CREATE TABLE t (id INTEGER, "a b`c" DOUBLE, ts TIMESTAMP_NS, v INTERVAL, l VARCHAR[], d DATE,'
            " _penstock_x INT)",
            "ALTER TABLE t SET PARTITIONED BY (year(d))",
            "INSERT INTO t SELECT i, CASE i WHEN 1 THEN 'NaN'::DOUBLE WHEN 2 THEN -0.0 END,"
            " TIMESTAMP_NS '1969-12-31 23:59:59.999999999', INTERVAL 1 MONTH, ['', NULL],"
            " make_date(1960 + i, 1, 1), i FROM range(4) r(i)",
            "INSERT INTO t VALUES (9, 'inf', NULL, NULL, [], '9999-12-31', 1)",
            "UPDATE t SET l = NULL WHERE id IN (1, 9)",
            "DELETE FROM t WHERE id IN (2, 9)",
        )
        expected = fed(reference, [("changes", 0, 6), ("deletions", 5, 6), ("insertions", 4, 5)])
    assert_fed(file_catalog, spark, expected)


def test_columns_that_are_named_as_the_feeds_own(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (change_type VARCHAR, snapshot_id INTEGER)",
            "INSERT INTO t VALUES ('x', 70), ('y', 71)",
            "UPDATE t SET change_type = 'z' WHERE snapshot_id = 70",
        )
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        changes = lake.table("t").changes(3)
        assert changes.columns == ["snapshot_id", "rowid", "change_type", "change_type", "snapshot_id"]
        assert _rows(changes) == {(3, 0, "update_preimage", "x", 70), (3, 0, "update_postimage", "z", 70)}


def test_deletion_vectors(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.set_option("write_deletion_vectors", True)
        reference.execute(*TABLE, "DELETE FROM t WHERE id IN (1, 5, 25)", "UPDATE t SET name = 'u' WHERE id = 6")
        reference.execute("DELETE FROM t WHERE id < 20")
        expected = fed(reference, [("changes", 0, 6), ("changes", 6, 6), ("deletions", 4, 5)])
    # The vector of the update took the place of the first one, in the catalog too: nobody knows when 1 and 5 went.
    assert expected["deletions", 4, 5].rows.keys() == {(4, 25, 25, None), *((5, i, i, f"n{i}") for i in (1, 5, 6))}
    assert_fed(file_catalog, spark, expected)


def test_encrypted_lake(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(encrypted=True, data_inlining_row_limit=3) as reference:
        reference.execute(*TABLE, *CHANGES[:4])
        last = newest(reference)
        expected = fed(reference, [*((feed, 0, last) for feed in FEEDS), ("changes", 5, 6), ("changes", 4, 4)])
        reference.execute("CALL ducklake_flush_inlined_data('lk')")
    assert_fed(file_catalog, spark, expected)


def test_added_files(file_catalog: Catalog, spark: SparkSession) -> None:
    path = file_catalog.directory / "added.parquet"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t VALUES (1, 'a')",
            f"COPY (SELECT 'n' || i AS name, i::INTEGER AS id FROM range(5) r(i)) TO '{path}'",
            f"CALL ducklake_add_data_files('lk', 't', '{path}')",
            "DELETE FROM t WHERE name = 'n3'",
            "UPDATE t SET name = 'u' WHERE id = 1",
        )
        expected = fed(reference, spans(newest(reference), 2))
    assert_fed(file_catalog, spark, expected)


def test_bounds(catalog: Catalog, spark: SparkSession) -> None:
    """A start that is a time is the first snapshot from then on, an end the last until then."""
    first = datetime(2024, 3, 10, 6, tzinfo=UTC)
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", *(f"INSERT INTO t VALUES ({i})" for i in range(2, 6)))
    catalog.tamper(
        *(
            f"UPDATE ducklake_snapshot SET snapshot_time = '{first + timedelta(hours=v):%Y-%m-%d %H:%M:%S}+00'"
            f" WHERE snapshot_id = {v}"
            for v in range(6)
        )
    )
    moments = [first + timedelta(hours=h, seconds=s) for h in (2, 4) for s in (-1, 0, 1)]
    pairs = [(start, end) for start in moments[:3] for end in moments[3:]]
    with catalog.reference() as reference:
        expected = [
            query(reference, f"FROM lk.table_changes('t', TIMESTAMPTZ '{start}', TIMESTAMPTZ '{end}')")
            for start, end in pairs
        ]
    with penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        t = lake.table("t")
        for (start, end), contents in zip(pairs, expected, strict=True):
            assert_contents(t.changes(start, end), contents, f"changes from {start} to {end}")
        assert _rows(t.changes(str(first + timedelta(hours=4)), 5)) == _rows(t.changes(4))
        assert t.insertions(5, 4).isEmpty()
        assert t.insertions(0, 1).isEmpty()
        for start, end, named in ((77, 5, "start.*77"), (2, 78, "end.*78"), ("2030-01-01", 5, "start.*2030")):
            with pytest.raises(penstock.NotFoundError, match=named):
                t.changes(start, end)
        with pytest.raises(penstock.NotFoundError, match=r"end.*1999"):
            t.changes(0, "1999-01-01")
        with pytest.raises(penstock.NotFoundError, match=r"\bt\b"):  # which was not there yet
            t.changes(0, 0)


def test_expired_snapshots(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            *TABLE,
            *CHANGES[:3],
            "CALL ducklake_expire_snapshots('lk', versions => [1, 2, 5])",
            "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
        )
        expected = fed(reference, [(feed, *span) for feed in FEEDS for span in ((0, 6), (3, 4))])
    assert_fed(file_catalog, spark, expected)
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        for start, end, bound in ((5, 6, "start"), (0, 5, "end")):
            with pytest.raises(penstock.NotFoundError, match=f"the {bound} .*snapshot 5 .*expired"):
                lake.table("t").changes(start, end)


@pytest.mark.compiled
@pytest.mark.classic
def test_one_snapshot_of_many(file_catalog: Catalog, spark: SparkSession) -> None:
    """Only the files that the span changed are read, and of them only those that a filter can match."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER, part INTEGER)", "ALTER TABLE t SET PARTITIONED BY (part)")
        for start in range(0, 50, 10):
            reference.execute(f"INSERT INTO t SELECT i, i % 2 FROM range({start}, {start + 10}) r(i)")
        reference.execute("DELETE FROM t WHERE id IN (2, 13)", "DELETE FROM t WHERE id IN (4, 20)")
        reference.execute("DELETE FROM t WHERE id = 15")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        t = lake.table("t")
        data, deletes = "ducklake main.t", "ducklake delete files"
        assert files_read(t.insertions(4, 4)) == {data: 2}
        assert files_read(t.insertions(3, 5).where("id = 29")) == {data: 1}
        assert files_read(t.insertions(0).where("snapshot_id = 4")) == {data: 2}
        assert files_read(t.changes(0, 7)) == {data: 10}
        # The file of 13 was deleted from before and after: that is what its delete file says, so it is not read.
        assert _rows(t.deletions(9, 9).select("id")) == {(4,), (20,)}
        assert files_read(t.deletions(9, 9)) == {data: 2, deletes: 3}
        assert files_read(t.changes(10, 10)) == {data: 1, deletes: 1}
        assert files_read(t.deletions(8).where("part = 1")) == {data: 1, deletes: 3}


def test_a_frame_outlives_maintenance(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    with sqlite_catalog.build(data_inlining_row_limit=4) as reference:
        reference.execute(*TABLE, *CHANGES[:4], "INSERT INTO t VALUES (50, 'inlined')")
        last = newest(reference)
    with penstock.attach(sqlite_catalog.uri, read_only=True, spark=spark) as lake:
        feed = lake.table("t").changes(0, last)
        before = _rows(feed)
        with sqlite_catalog.reference() as reference:
            reference.execute(
                "DELETE FROM t WHERE id IN (22, 50)",
                "CALL ducklake_flush_inlined_data('lk')",
                "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.1)",
            )
        assert _rows(feed) == before == _rows(lake.table("t").changes(0, last))


def test_inside_a_transaction(file_catalog: Catalog, spark: SparkSession) -> None:
    """Only what was committed before."""
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        t = lake.create_table("t", "id INT")
        t.append(spark.range(50).selectExpr("int(id)"))
        with lake.transaction():
            t.append(spark.range(50, 60).selectExpr("int(id)"))
            feed = t.changes(0)
            assert feed.count() == 50
        assert feed.count() == 50
        assert t.changes(0).count() == 60


def _rows(frame: DataFrame) -> set[tuple[Any, ...]]:
    rows = Counter(tuple(row) for row in frame.collect())
    assert all(count == 1 for count in rows.values())
    return set(rows)
