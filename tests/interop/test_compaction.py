"""Merged and rewritten files: every snapshot and the change feed show what they did, to Penstock and the extension."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.lake import Lake
from penstock.spark import job_progress
from penstock.storage import progress
from support.catalogs import Catalog
from support.compare import History, assert_history, record
from support.reference import METADATA, Reference
from support.writing import attached, files_of, leaving_nothing

COLUMNS = 'id INTEGER, name VARCHAR, s STRUCT(x INTEGER, "y z" VARCHAR[]), f DOUBLE, d DECIMAL(38,4)'
ROWS = "i, ['a''b/=%$ 🦆', '', NULL][1 + i % 3], {'x': i, 'y z': ['é', NULL]}, ['nan', '-0.0', '1.5'][1 + i % 3], i / 8"


def insert(first: int, count: int = 20) -> str:
    return f"INSERT INTO t SELECT {ROWS} FROM range({first}, {first + count}) r(i)"


def build(catalog: Catalog, *statements: str, **parameters: object) -> History:
    """A lake of the extension, and what it shows."""
    with catalog.build(**{"data_inlining_row_limit": 0, **parameters}) as reference:
        reference.execute(f"CREATE TABLE t ({COLUMNS})", *statements)
        return record(reference, "t")


def feed(reference: Reference) -> list[str]:
    newest = reference.value("SELECT max(snapshot_id) FROM lk.snapshots()")
    return sorted(map(repr, reference.rows(f"FROM lk.table_changes('t', 0, {newest})")))


def our_feed(lake: Lake, end: int) -> list[str]:
    return sorted(map(repr, lake.table("t").changes(0, end).collect()))


def live_files(reference: Reference, what: str) -> list[tuple[Any, ...]]:
    return reference.rows(
        f"SELECT {what} FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL ORDER BY data_file_id"
    )


def assert_shows(catalog: Catalog, spark: SparkSession, history: History) -> None:
    """Both show what the extension showed before, at every snapshot that there was."""
    assert_history(catalog, spark, history)
    with catalog.reference() as reference:
        shown = record(reference, "t")
        assert {key: rows for key, rows in shown.items() if key in history} == {
            key: rows for key, rows in history.items() if key in shown
        }


def test_merge(catalog: Catalog, spark: SparkSession) -> None:
    history = build(
        catalog,
        insert(0),
        insert(100),
        "UPDATE t SET name = 'new' WHERE id < 4",  # writes a delete file for the first: it is left alone
        insert(200, 5),
        insert(300),
        "ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7",
        "INSERT INTO t SELECT *, i FROM (SELECT i, 'l', NULL, NULL, NULL FROM range(400, 410) r(i))",
        "INSERT INTO t SELECT *, NULL FROM (SELECT i, 'l', NULL, NULL, NULL FROM range(500, 510) r(i))",
    )
    with attached(catalog, spark) as lake:
        newest = lake.current_snapshot().id
        before = our_feed(lake, newest)
        [first, second] = lake.merge_adjacent_files().collect()
        assert first.asDict() == {"schema_name": "main", "table_name": "t", "files_processed": 4, "files_created": 1}
        assert second.files_processed == 2
        made = lake.current_snapshot()
        assert made.changes_made == "merge_adjacent:1,inline_flush:1"
        assert (made.id, made.schema_version) == (newest + 1, lake.snapshot_at(newest).schema_version)
        assert our_feed(lake, newest) == before
        assert lake.merge_adjacent_files().collect() == []
        assert lake.current_snapshot().id == made.id
    assert_shows(catalog, spark, history)
    with catalog.reference() as reference:
        rows = live_files(reference, "record_count, row_id_start, begin_snapshot, partial_max")
        assert rows == [(20, 0, 2, None), (49, None, 3, 6), (20, None, 8, 9)]
        scheduled = reference.rows(f"FROM {METADATA}.ducklake_files_scheduled_for_deletion")
        assert len(scheduled) == 6
        if catalog.kind == "mysql":
            return
        reference.execute(
            insert(600).replace("FROM range", ", 1 FROM range"), "CALL ducklake_merge_adjacent_files('lk')"
        )
    assert_shows(catalog, spark, history)
    with attached(catalog, spark) as lake:
        lake.cleanup_old_files(cleanup_all=True)
        assert lake.delete_orphaned_files(cleanup_all=True, dry_run=True).count() == 0
    assert_shows(catalog, spark, history)


def test_rewrite(catalog: Catalog, spark: SparkSession) -> None:
    history = build(
        catalog,
        insert(0),
        insert(100),
        "DELETE FROM t WHERE id BETWEEN 0 AND 9",
        "DELETE FROM t WHERE id = 100",
        "ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7",
        "UPDATE t SET late = 8 WHERE id BETWEEN 10 AND 12",
        "DELETE FROM t WHERE id BETWEEN 14 AND 18",
    )
    with attached(catalog, spark) as lake:
        newest = lake.current_snapshot().id
        assert lake.rewrite_data_files().collect() == []
        [line] = lake.rewrite_data_files(delete_threshold=0.9).collect()
        assert (line.files_processed, line.files_created) == (1, 1)
        made = lake.current_snapshot()
        assert made.changes_made == "rewrite_delete:1,inline_flush:1"
        assert made.id == newest + 1
        [both] = lake.table("t").rewrite_data_files(delete_threshold=0).collect()
        assert both.files_processed == 1
        rows = {row.rowid: (row.id, row.late) for row in lake.table("t").read(row_ids=True).collect()}
        assert rows == {
            row.rowid: (row.id, row.late) for row in lake.table("t").read(version=newest, row_ids=True).collect()
        }
    assert_shows(catalog, spark, history)
    with catalog.reference() as reference:
        assert reference.rows("SELECT rowid, id, late FROM t ORDER BY 1") == [
            (number, *rows[number]) for number in sorted(rows)
        ]
        if catalog.kind != "mysql":
            reference.execute("CHECKPOINT lk", "DELETE FROM t WHERE id = 13")
            assert reference.value("SELECT count(*) FROM t") == len(rows) - 1
    assert_shows(catalog, spark, history)


def test_rewrite_of_what_has_no_row_left(file_catalog: Catalog, spark: SparkSession) -> None:
    """Inlined deletes and delete files together, in a file that the extension would end only if all went at once."""
    history = build(
        file_catalog,
        insert(0),
        "CALL lk.set_option('data_inlining_row_limit', 15)",
        "DELETE FROM t WHERE id < 12",
        "DELETE FROM t WHERE id >= 12",
    )
    with attached(file_catalog, spark) as lake:
        [line] = lake.rewrite_data_files().collect()
        assert (line.files_processed, line.files_created) == (1, 0)
        assert len(lake.table("t").read().collect()) == 0
    assert_shows(file_catalog, spark, history)


def test_partitions_orders_and_choices(file_catalog: Catalog, spark: SparkSession) -> None:
    history = build(
        file_catalog,
        "ALTER TABLE t SET PARTITIONED BY (name)",
        insert(0),
        insert(100),
        insert(200),
        "ALTER TABLE t SET SORTED BY (id % 7 DESC, d)",
    )
    with attached(file_catalog, spark) as lake:
        table = lake.table("t")
        assert [row.files_processed for row in table.merge_adjacent_files(where="name = ''").collect()] == [3]
        assert [row.files_processed for row in table.merge_adjacent_files(max_compacted_files=1).collect()] == [3]
        lake.set_option("auto_compact", "false", table="t")
        assert lake.merge_adjacent_files().collect() == []
        assert lake.merge_adjacent_files("t", min_file_size=10**6).collect() == []
        assert lake.merge_adjacent_files("t", max_file_size=10).collect() == []
        assert [row.files_processed for row in lake.merge_adjacent_files("T", schema="MAIN").collect()] == [3]
        for part in (row.data_file for row in table.files().collect()):
            ids = [row[0] for row in duckdb.execute(f"SELECT id FROM '{part}'").fetchall()]
            assert ids == sorted(ids, key=lambda number: (-(number % 7), number))
            assert "/name=" in part
    assert_shows(file_catalog, spark, history)


def test_linked_and_partial_files(file_catalog: Catalog, spark: SparkSession) -> None:
    linked = f"{file_catalog.directory}/name=from the path/odd[1].parquet"
    Path(linked).parent.mkdir()
    columns = "i::TINYINT AS ID, 5 AS file_row_number, {'X': i::SMALLINT} AS s"
    duckdb.execute(f"COPY (SELECT {columns} FROM range(9) r(i)) TO '{linked}'")
    history = build(
        file_catalog,
        insert(0),
        insert(100),
        "CALL ducklake_merge_adjacent_files('lk')",
        f"CALL ducklake_add_data_files('lk', 't', '{linked}', allow_missing => true, ignore_extra_columns => true,"
        " hive_partitioning => true)",
        insert(200),
    )
    with attached(file_catalog, spark) as lake:
        [line] = lake.merge_adjacent_files().collect()
        assert line.files_processed == 3
    assert_shows(file_catalog, spark, history)
    assert Path(linked).exists(), "until it is cleaned up"


def test_encrypted_files(file_catalog: Catalog, spark: SparkSession) -> None:
    statements = (insert(0), insert(100), "DELETE FROM t WHERE id < 15", insert(200), "DELETE FROM t WHERE id = 15")
    history = build(file_catalog, *statements, encrypted=True)
    with attached(file_catalog, spark) as lake:
        assert [row.files_processed for row in lake.merge_adjacent_files().collect()] == [2]
        assert [row.files_processed for row in lake.rewrite_data_files(delete_threshold=0.5).collect()] == [1]
    assert_shows(file_catalog, spark, history)
    with file_catalog.reference() as reference:
        keys = [key for (key,) in live_files(reference, "encryption_key")]
        assert None not in keys
        assert len(set(keys)) == 2


def test_old_schema_versions_once_nobody_sees_them(file_catalog: Catalog, spark: SparkSession) -> None:
    history = build(
        file_catalog,
        insert(0),
        "ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7",
        "ALTER TABLE t RENAME name TO title",
        "ALTER TABLE t ALTER id SET TYPE BIGINT",
        "ALTER TABLE t ADD COLUMN s.more VARCHAR DEFAULT 'field'",
        "ALTER TABLE t DROP COLUMN s.x",
        "INSERT INTO t SELECT i, 'x', {'y z': [], 'more': 'm'}, 1, 1, i FROM range(100, 110) r(i)",
    )
    with attached(file_catalog, spark) as lake:
        assert lake.merge_adjacent_files().collect() == []
        lake.expire_snapshots(keep_last=1)
        [line] = lake.merge_adjacent_files().collect()
        assert line.files_processed == 2
        newest = max(version for _, version in history)
    kept = {key: rows for key, rows in history.items() if key[1] == newest}
    assert_shows(file_catalog, spark, kept)
    with file_catalog.reference(data_inlining_row_limit=0) as reference:
        reference.execute(
            "INSERT INTO t SELECT i, 'x', NULL, 1, 1, i FROM range(200, 210) r(i)",
            "CALL ducklake_merge_adjacent_files('lk')",
        )
        assert live_files(reference, "record_count") == [(40,)]
    assert_shows(file_catalog, spark, kept)


def assert_kept(catalog: Catalog, spark: SparkSession, verb: str, **arguments: Any) -> None:
    """A verb of the table changes nothing that either shows, at any snapshot."""
    with catalog.reference() as reference:
        history = record(reference, "t")
    with attached(catalog, spark) as lake:
        assert getattr(lake.table("t"), verb)(**arguments).count() > 0
    assert_shows(catalog, spark, history)


def test_fields_that_were_renamed_under_rewritten_files(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension's rewritten files begin with its snapshot, and have the fields' names of their sources."""
    rows = "SELECT i, {'a': i, 'z': 'z'} FROM range({}, {}) r(i)"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER, z VARCHAR))",
            f"INSERT INTO t {rows.replace('{}', '0', 1).replace('{}', '20', 1)}",
            "ALTER TABLE t RENAME COLUMN s.a TO b",
            "DELETE FROM t WHERE id < 15",
            "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0.5)",
            "INSERT INTO t SELECT i, {'b': i, 'z': NULL} FROM range(100, 120) r(i)",
        )
    assert_kept(file_catalog, spark, "merge_adjacent_files")


def test_fields_that_were_renamed_by_the_transaction_that_wrote_them(
    file_catalog: Catalog, spark: SparkSession
) -> None:
    rows = spark.sql("SELECT CAST(id AS INT) AS id, named_struct('a', CAST(id AS INT), 'z', 'z') AS s FROM range(20)")
    with attached(file_catalog, spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        with lake.transaction():
            table = lake.create_table("t", "id INT, s STRUCT<a: INT, z: STRING>")
            table.append(rows)
            table.rename_column("s.a", "b")
        lake.table("t").append(rows)
    assert_kept(file_catalog, spark, "merge_adjacent_files")
    with attached(file_catalog, spark) as lake:
        assert len(lake.table("t").read().where("s.b IS NULL").collect()) == 0


def test_linked_files_that_are_not_what_their_paths_say(file_catalog: Catalog, spark: SparkSession) -> None:
    """A folder that is no partition, and a name that is a pattern for the file beside it."""
    folder = file_catalog.directory / "id=5"
    folder.mkdir()
    for name, first in (("data[1].parquet", 0), ("data1.parquet", 777)):
        duckdb.execute(f"COPY (SELECT i::INTEGER AS id FROM range({first}, {first} + 3) r(i)) TO '{folder}/{name}'")
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (100)")
    with attached(file_catalog, spark) as lake:
        lake.table("t").add_files(f"{folder}/data[1].parquet", hive_partitioning=False)
        assert lake.table("t").merge_adjacent_files().count() == 1
        assert sorted(row.id for row in lake.table("t").read().collect()) == [0, 1, 2, 100]
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t ORDER BY id") == [(0,), (1,), (2,), (100,)]


@pytest.mark.parametrize("verb", ["merge_adjacent_files", "rewrite_data_files", "flush_inlined_data"])
def test_nan_in_any_row_group(file_catalog: Catalog, spark: SparkSession, verb: str) -> None:
    """What COPY tells of NaN is that of the last row group: the extension's own inserts have it wrong."""
    rows = "SELECT CAST(id AS INT), IF(id = 5, double('nan'), 1D), array(double(id % 2)) FROM range({})"
    with attached(file_catalog, spark) as lake:
        lake.set_option("parquet_row_group_size", 2048)
        lake.set_option("data_inlining_row_limit", 10_000 if verb == "flush_inlined_data" else 0)
        table = lake.create_table("t", "id INT, f DOUBLE, l ARRAY<DOUBLE>")
        table.append(spark.sql(rows.format(5000)))
        table.append(spark.sql(rows.format("5000, 10000")))
        if verb == "rewrite_data_files":
            table.delete("id < 3 OR id > 9996")
    assert_kept(file_catalog, spark, verb, **({"delete_threshold": 0} if verb == "rewrite_data_files" else {}))
    with attached(file_catalog, spark) as lake:
        assert [row.id for row in lake.table("t").read().where("f > 5").collect()] == [5]
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t WHERE f > 5") == [(5,)]
        assert reference.rows("SELECT id FROM t WHERE f = 'nan'::DOUBLE") == [(5,)]


def test_inlined_deletes_beside_delete_files_that_were_replaced(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER)", "INSERT INTO t FROM range(50)", "DELETE FROM t WHERE id IN (1, 2)"
        )
    with attached(file_catalog, spark) as lake:
        lake.table("t").delete("id BETWEEN 10 AND 19")
        lake.table("t").delete("id BETWEEN 20 AND 29")
        lake.table("t").append(spark.sql("SELECT 1000"))
    assert_kept(file_catalog, spark, "flush_inlined_data")
    assert_kept(file_catalog, spark, "rewrite_data_files", delete_threshold=0.1)


def test_sorted_by_a_column_that_is_younger_than_files(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER)", "INSERT INTO t FROM range(5)", "INSERT INTO t FROM range(10, 15)",
            "ALTER TABLE t ADD COLUMN b INTEGER", "ALTER TABLE t SET SORTED BY (b DESC)",
            "INSERT INTO t SELECT i, i FROM range(20, 25) r(i)", "INSERT INTO t SELECT i, -i FROM range(30, 35) r(i)",
        )  # fmt: skip
    assert_kept(file_catalog, spark, "merge_adjacent_files")


def test_files_of_forgotten_versions_are_compacted_again(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER))",
            "INSERT INTO t SELECT i, {'a': i} FROM range(50) r(i)",
            "ALTER TABLE t ADD COLUMN s.b INTEGER DEFAULT 7",
            "INSERT INTO t SELECT i, {'a': i, 'b': i} FROM range(50, 100) r(i)",
        )
    with attached(file_catalog, spark) as lake:
        lake.expire_snapshots(keep_last=1)
    assert_kept(file_catalog, spark, "merge_adjacent_files")
    with attached(file_catalog, spark) as lake:
        lake.table("t").delete("id < 90")
    assert_kept(file_catalog, spark, "rewrite_data_files", delete_threshold=0.1)


@pytest.mark.parametrize("order", ["", "ALTER TABLE t SET SORTED BY (_penstock_v0 DESC)"])
def test_columns_that_are_called_what_we_call_ours(file_catalog: Catalog, spark: SparkSession, order: str) -> None:
    names = ("_penstock_pos", "_penstock_v0", "_penstock_row_id", "row_id", "file_row_number", "file_index", "source")
    others = [name for name in names if name != "row_id"]  # which the extension refuses to inline
    columns = ", ".join(f"{name} INTEGER" for name in others)
    values = ", ".join(f"(100 - i) * {place + 1}" for place in range(len(others)))
    with file_catalog.build(data_inlining_row_limit=10) as reference:
        reference.execute(
            f"CREATE TABLE t ({columns})", *([order] if order else []),
            f"INSERT INTO t SELECT {values} FROM range(8) r(i)", "DELETE FROM t WHERE _penstock_pos = 95",
            f"INSERT INTO t SELECT {values} FROM range(30, 60) r(i)",
            f"INSERT INTO t SELECT {values} FROM range(60, 90) r(i)",
        )  # fmt: skip
    assert_kept(file_catalog, spark, "flush_inlined_data")
    assert_kept(file_catalog, spark, "merge_adjacent_files")


def test_encrypted_files_with_fields(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.build(data_inlining_row_limit=0, encrypted=True) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, s STRUCT(a INTEGER))",
            "INSERT INTO t SELECT i, {'a': i} FROM range(20) r(i)",
            "INSERT INTO t SELECT i, {'a': i} FROM range(20, 40) r(i)",
            "DELETE FROM t WHERE id < 15",
            "ALTER TABLE t RENAME COLUMN s.a TO b",
        )
    assert_kept(file_catalog, spark, "rewrite_data_files", delete_threshold=0.1)


FLUSHED = (
    "INSERT INTO t VALUES (1, 'a''b/=%$ 🦆', {'x': 1, 'y z': ['é', NULL]}, '-0.0', 12345678901234567890.5), (2, '', "
    "NULL, 'nan', NULL), (3, NULL, NULL, NULL, -0.0001)",
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET name = 'new' WHERE id = 3",
    "INSERT INTO t SELECT i, 'f', NULL, i, i FROM range(100, 150) r(i)",
    "DELETE FROM t WHERE id IN (100, 101)",
    "DELETE FROM t WHERE id BETWEEN 110 AND 129",
    "DELETE FROM t WHERE id = 130",
    "ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7",
    "INSERT INTO t VALUES (4, 'late', NULL, NULL, NULL, 8)",
    "UPDATE t SET late = 9 WHERE id = 1",
)


@pytest.mark.parametrize(
    "settings",
    ["", pytest.param("ALTER TABLE t SET PARTITIONED BY (name, bucket(2, id))", marks=pytest.mark.one_catalog)],
)
@pytest.mark.parametrize("catalog", ["duckdb", "sqlite", "postgres"], indirect=True)  # in MySQL, it inlines nothing
def test_flush(catalog: Catalog, spark: SparkSession, settings: str) -> None:
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(f"CREATE TABLE t ({COLUMNS})", *([settings] if settings else []), *FLUSHED)
        history = record(reference, "t")
    with attached(catalog, spark) as lake:
        newest = lake.current_snapshot().id
        before = our_feed(lake, newest)
        [line] = lake.flush_inlined_data().collect()
        assert line.asDict() == {"schema_name": "main", "table_name": "t", "rows_flushed": 6}
        assert lake.current_snapshot().id == newest + 1
        assert lake.current_snapshot().changes_made == "deleted_from_table:1,inline_flush:1,merge_adjacent:1"
        assert our_feed(lake, newest) == before
        assert lake.flush_inlined_data().collect() == []
        assert lake.current_snapshot().id == newest + 1
    assert_shows(catalog, spark, history)
    with catalog.reference() as reference:
        rows = reference.rows(f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables WHERE table_id = 1")
        assert len(rows) == 1
        assert reference.value(f"SELECT count(*) FROM {METADATA}.{rows[0][0]}") == 0
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_inlined_delete_1") == 0
        assert None not in [start for (start,) in live_files(reference, "begin_snapshot")]
        reference.execute("CHECKPOINT lk", "INSERT INTO t VALUES (5, 'more', NULL, NULL, NULL, 1)")
        assert reference.value("SELECT count(*) FROM t WHERE id = 5") == 1
    assert_shows(catalog, spark, history)
    with attached(catalog, spark) as lake:
        lake.checkpoint()
        lake.cleanup_old_files(cleanup_all=True)
    assert_shows(catalog, spark, history)


TYPES = {
    "n": ("TIMESTAMP_NS", "'2020-01-01 00:00:00.123456789'", "'1677-09-22 00:00:00.000000001'"),
    "u": ("UBIGINT", "18446744073709551615", "0"),
    "h": ("HUGEINT", "5", "-7"),
    "g": ("INTERVAL", "INTERVAL '3 months 2 days 5 seconds'", "INTERVAL '0 days'"),
    "l": ("STRUCT(a UUID)[]", "[{'a': '00000000-0000-0000-0000-00000000001a'}, NULL]", "[]"),
    "m": ("MAP(VARCHAR, DECIMAL(38,10))", "MAP {'k': 1234567890123456789012345678.0000000001}", "MAP {}"),
    "b": ("BLOB", "'\\x00\\xFF'::BLOB", "''::BLOB"),
    "j": ("JSON", "'{\"a\": [1]}'", "'null'"),
    "z": ("TIMETZ", "'10:00:00+00'", "'23:59:59.999999+00'"),
    "w": ("TIMESTAMPTZ", "'1900-01-01 00:00:00.000001+00'", "'9999-12-31 23:59:59+00'"),
    "d": ("DATE", "'9999-12-31'", "'1969-12-31'"),
    "f": ("FLOAT", "'nan'", "'-inf'"),
}


def test_flush_and_merge_every_type(file_catalog: Catalog, spark: SparkSession) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items())
    values = [", ".join(value[place] for value in TYPES.values()) for place in (1, 2)]
    with file_catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(
            f"CREATE TABLE t ({columns})",
            f"INSERT INTO t VALUES ({values[0]})",
            f"INSERT INTO t VALUES ({values[1]}), ({', '.join(['NULL'] * len(TYPES))})",
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            f"INSERT INTO t VALUES ({values[1]})",
            f"INSERT INTO t VALUES ({values[0]})",
            "CALL lk.set_option('data_inlining_row_limit', 5)",
        )
        history = record(reference, "t")
    with attached(file_catalog, spark) as lake:
        assert [row.rows_flushed for row in lake.table("t").flush_inlined_data().collect()] == [3]
    assert_shows(file_catalog, spark, history)
    with attached(file_catalog, spark) as lake:
        assert [row.files_processed for row in lake.table("t").merge_adjacent_files().collect()] == [3]
    assert_shows(file_catalog, spark, history)


def test_checkpoint(file_catalog: Catalog, spark: SparkSession) -> None:
    history = build(file_catalog, insert(0), insert(100), "DELETE FROM t WHERE id < 19", insert(200), insert(300))
    with attached(file_catalog, spark) as lake:
        lake.table("t").append(spark.sql("SELECT 1, 'x', NULL, NULL, NULL"))
        done = {row.step: row["count"] for row in lake.checkpoint().collect()}
        assert done == {
            "flush_inlined_data": 1,
            "expire_snapshots": 0,
            "rewrite_data_files": 1,
            "merge_adjacent_files": 5,
            "cleanup_old_files": 0,
            "delete_orphaned_files": 0,
        }
        assert lake.table("t").files().count() == 1
    assert_shows(file_catalog, spark, history)


def test_what_goes_wrong_changes_nothing(file_catalog: Catalog, spark: SparkSession) -> None:
    build(file_catalog, insert(0), insert(100))
    with attached(file_catalog, spark) as lake:
        for wrong, text in (
            ({"max_file_size": 0}, "max_file_size cannot be 0"),
            ({"max_compacted_files": 0}, "max_compacted_files cannot be 0"),
            ({"min_file_size": -1}, "min_file_size cannot be -1"),
            ({"min_file_size": 5, "max_file_size": 5}, "less than max_file_size"),
        ):
            with leaving_nothing(file_catalog, lake, text):
                lake.merge_adjacent_files(**wrong)
        with leaving_nothing(file_catalog, lake, "from 0 to 1"):
            lake.rewrite_data_files(delete_threshold=1.5)
        with leaving_nothing(file_catalog, lake, "main.nothing", penstock.NotFoundError):
            lake.merge_adjacent_files("nothing")
        with leaving_nothing(file_catalog, lake, "no schema nothing", penstock.NotFoundError):
            lake.rewrite_data_files(schema="nothing")
        with lake.transaction(), leaving_nothing(file_catalog, lake, "part of a transaction"):
            lake.table("t").merge_adjacent_files()
    with attached(file_catalog, spark, read_only=True) as lake, pytest.raises(penstock.InvalidError, match="read_only"):
        lake.merge_adjacent_files()
    before = files_of(file_catalog)
    lost = next(path for path in before if path.endswith(".parquet"))
    (Path(file_catalog.data_path) / lost).rename(file_catalog.directory / "away")
    with attached(file_catalog, spark) as lake, pytest.raises(penstock.PenstockError, match="cannot be read"):
        lake.merge_adjacent_files()
    assert files_of(file_catalog) == before - {lost}


def test_a_terminal_is_told_how_far_a_merge_is(
    file_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    build(file_catalog, *(insert(20 * n) for n in range(6)))
    for module in (progress, job_progress):
        monkeypatch.setattr(module, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(job_progress, "_SECONDS", 0.02)
    monkeypatch.setattr(progress._Setting, "shown", True)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with attached(file_catalog, spark) as lake:
        lake.merge_adjacent_files()
    shown = terminal.getvalue()
    assert re.search(r"merge_adjacent_files main\.t: +\d+%\|.*\| \d/6 files \[.*, [\d,]+ of [\d,]+ rows\]", shown)
    assert re.search(r"merge_adjacent_files main\.t: 100%\|#+\| 6/6 files \[", shown)


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_flush_waits_for_nobody_who_has_read_inlined_rows(
    kind: str, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    """Emptied tables are forgotten, and dropped by a later flush, if nobody holds them then."""
    catalog = request.getfixturevalue(f"{kind}_catalog")
    with attached(catalog, spark, data_inlining_row_limit=10) as lake, attached(catalog, spark) as other:
        table = lake.create_table("t", "id BIGINT")
        for number in range(3):
            table.append(spark.range(number, number + 1), by_name=True)
            table.add_column(f"c{number} INT")
        database, reading = lake._attachment.catalog.database, other._attachment.catalog.database
        made = database.tables("ducklake_inlined_data_1_")
        assert len(made) == 4
        assert lake.flush_inlined_data().collect()[0].rows_flushed == 3
        assert database.tables("ducklake_inlined_data_1_") == made
        table.append(spark.sql("SELECT 9L, 1, 2, 3"))
        with reading.consistent():
            for name in made:
                reading.query(f"SELECT * FROM {reading.identifier(name)}")
            assert lake.flush_inlined_data().collect()[0].rows_flushed == 1
            assert len(table.read().collect()) == 4
        table.append(spark.sql("SELECT 10L, 1, 2, 3"))
        lake.flush_inlined_data()
        assert len(database.tables("ducklake_inlined_data_1_")) == 1
        assert len(table.read().collect()) == 5
