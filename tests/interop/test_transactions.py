"""Transactions: many statements become one snapshot or none, and see themselves and nobody else until then."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake
from penstock.ducklake.catalog.commits.commit import RetryPolicy
from penstock.ducklake.catalog.commits.staged_files import add_files
from penstock.ducklake.transaction import Transaction
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile
from penstock.schema.types import Type
from support.catalogs import Catalog
from support.effort import tries
from support.reference import METADATA
from support.writers import Writer
from support.writing import attached, files_of, leaving_nothing

pytestmark = pytest.mark.every_catalog


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def numbers(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "id int")


def ids(lake: Lake, table: str) -> list[int]:
    return sorted(row.id for row in lake.table(table).read().select("id").collect())


def changes(lake: Lake) -> dict[str, list[str]]:
    return lake.snapshots().orderBy("snapshot_id").collect()[-1].changes  # type: ignore[no-any-return]


def data_files(lake: Lake, *tables: str) -> set[str]:
    return {row.data_file for table in tables for row in lake.table(table).files().collect()}


def test_reads_inside_see_the_statements_before_them_and_one_snapshot_comes_out(
    catalog: Catalog, spark: SparkSession
) -> None:
    many, few = list(range(100, 130)), [1, 2]
    with attached(catalog, spark) as lake:
        lake.create_table("t", numbers(spark, *many))
        lake.table("t").append(numbers(spark, *few))
        lake.create_table("gone", "id INT")
        before = lake.current_snapshot()
        kept: dict[str, tuple[DataFrame, list[Any]]] = {}

        def look(name: str, frame: DataFrame) -> list[Any]:
            kept[name] = (frame, rows(frame))
            return kept[name][1]

        with lake.transaction(author="me", message='it\'s "m"', extra_info="{}") as transaction:
            t = lake.table("t")
            t.append(numbers(spark, 3))
            assert len(look("inlined", t.read())) == 33
            assert ids(lake, "t") == [1, 2, 3, *many]
            t.append(numbers(spark, *range(200, 230)))
            assert (229, 62) in look("appended", t.read(row_ids=True))
            t.add_column("note STRING DEFAULT 'none'")
            t.append(spark.sql("SELECT 4 AS id, NULL AS note"))
            altered = look("altered", t.read().where("id < 100 OR id = 200"))
            assert altered == [(1, "none"), (2, "none"), (200, "none"), (3, "none"), (4, None)]
            u = lake.create_table("u", numbers(spark, *many)).rename("v").rename("w")
            assert look("renamed", u.read()) == [(value,) for value in many]
            with pytest.raises(penstock.NotFoundError):
                lake.table("u").read()
            t.overwrite(spark.sql("SELECT 5 AS id, 'five' AS note"))
            assert look("overwritten", t.read(row_ids=True)) == [(5, "five", 64)]
            lake.drop_table("gone")
            lake.create_table("gone", "other STRING").append(spark.sql("SELECT 'new'"))
            assert look("created again", lake.table("gone").read()) == [("new",)]
            lake.create_table("nothing", numbers(spark, *many)).drop()
            lake.create_schema("nowhere")
            lake.drop_schema("nowhere")
            assert lake.current_snapshot() == before
            assert transaction.snapshot is None
            for name, (frame, expected) in kept.items():
                assert rows(frame) == expected, name

        snapshot = lake.current_snapshot()
        assert transaction.snapshot == snapshot
        assert snapshot.id == before.id + 1
        assert (snapshot.author, snapshot.commit_message, snapshot.commit_extra_info) == ("me", 'it\'s "m"', "{}")
        assert {
            kind: sorted(values) for kind, values in changes(lake).items() if "created" in kind or "drop" in kind
        } == {
            "tables_created": ["main.gone", "main.w"],
            "tables_dropped": ["2"],
        }
        on_disk = {f"{catalog.data_path}{path}" for path in files_of(catalog)}
        assert on_disk == data_files(lake, "w") | {row[0] for row in lake.table("t").files(version=before.id).collect()}
        for name in ("inlined", "renamed", "overwritten", "created again"):
            assert rows(kept[name][0]) == kept[name][1], name
        assert ids(lake, "w") == many
    with catalog.reference() as reference:
        assert reference.rows("SELECT id, note, rowid FROM t") == [(5, "five", 64)]
        assert reference.rows("SELECT count(*), min(id), max(id) FROM w") == [(30, 100, 129)]
        assert reference.rows("FROM gone") == [("new",)]
        assert reference.rows(f"SELECT count(*) FROM t AT (VERSION => {before.id})") == [(32,)]


def test_commits_of_others_are_not_seen_inside_and_are_kept(catalog: Catalog, spark: SparkSession) -> None:
    with attached(catalog, spark) as lake, attached(catalog, spark) as other:
        lake.create_table("t", numbers(spark, *range(20)))
        lake.create_table("dropped", "id INT")
        with lake.transaction():
            first = lake.table("t").read()
            other.table("t").append(numbers(spark, 101))
            other.table("t").append(numbers(spark, *range(300, 320)))
            other.create_table("theirs", "id INT")
            other.drop_table("dropped")
            assert ids(lake, "t") == list(range(20))
            lake.table("t").append(numbers(spark, 102))
            lake.table("t").append(numbers(spark, *range(400, 420)))
            inside = lake.table("t").read()
            shown = inside.count(), lake.table("dropped").read().count()
            assert shown == (41, 0)
            with pytest.raises(penstock.NotFoundError):
                lake.table("theirs").read()
        assert first.count() == 20
        assert inside.count() == 41
        with_ids = lake.table("t").read(row_ids=True).collect()
        assert len(with_ids) == 62
        assert sorted(row.rowid for row in with_ids) == list(range(62))
        assert lake.current_snapshot().id == other.current_snapshot().id
        [before, after] = lake._attachment.catalog.database.query(
            "SELECT row_id_start FROM ducklake_data_file WHERE begin_snapshot > 1 ORDER BY data_file_id"
        )
        assert (before, after) == ((21,), (42,))


def test_a_statement_that_fails_leaves_the_transaction_to_go_on(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    with attached(sqlite_catalog, spark) as lake:
        t = lake.create_table("t", "id INT NOT NULL")
        with lake.transaction():
            t.append(numbers(spark, *range(20)))
            written = files_of(sqlite_catalog)
            bad = spark.range(0, 60, 1, 2).selectExpr("CASE WHEN id < 59 THEN CAST(id AS INT) END AS id")
            with pytest.raises(penstock.InvalidError, match="id"):
                t.append(bad, distribution="none")
            with pytest.raises(penstock.InvalidError, match="id"):
                t.overwrite(bad)
            with pytest.raises(penstock.InvalidError):
                lake.create_table("t", numbers(spark, 1))
            with pytest.raises(penstock.NotFoundError):
                lake.drop_table("missing")
            assert files_of(sqlite_catalog) == written
            assert ids(lake, "t") == list(range(20))
            t.append(numbers(spark, 20))
        assert ids(lake, "t") == list(range(21))
        assert changes(lake) == {"tables_inserted_into": ["1"], "inlined_insert": ["1"]}


def test_an_exception_leaves_no_snapshot_and_no_file(catalog: Catalog, spark: SparkSession) -> None:
    with attached(catalog, spark) as lake:
        t = lake.create_table("t", numbers(spark, *range(20)))
        with leaving_nothing(catalog, lake, "enough", KeyError), lake.transaction():
            t.append(numbers(spark, *range(20)))
            t.overwrite(numbers(spark, 1))
            t.add_column("more INT")
            lake.create_table("u", numbers(spark, *range(20)))
            raise KeyError("enough")
        assert ids(lake, "t") == list(range(20))
        t.append(numbers(spark, 20))
    with catalog.reference() as reference:
        assert reference.rows("SELECT count(*), max(rowid) FROM t") == [(21, 20)]


def test_commit_and_roll_back_end_a_transaction_once(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        t = lake.create_table("t", "id INT")
        refused = pytest.raises(penstock.InvalidError, match="no more statements and no second end")

        def ended(transaction: Transaction) -> None:
            before, files = lake.current_snapshot(), files_of(file_catalog)
            for more in (
                lambda: t.append(numbers(spark, *range(20))), lambda: t.delete(), lambda: t.read(),
                lambda: lake.create_table("u", "id INT"), transaction.commit, transaction.roll_back,
            ):  # fmt: skip
                with refused:
                    more()
            assert (lake.current_snapshot(), files_of(file_catalog)) == (before, files)

        with lake.transaction() as committed:
            t.append(numbers(spark, *range(20)))
            assert committed.commit() == committed.snapshot == lake.current_snapshot()
            ended(committed)
            assert t.read(version=committed.snapshot.id).count() == 20
        with pytest.raises(KeyError), lake.transaction() as kept:  # noqa: PT012 - after the commit
            t.append(numbers(spark, *range(20, 40)))
            kept.commit()
            raise KeyError
        with lake.transaction() as undone:
            t.append(numbers(spark, *range(100, 120)))
            undone.roll_back()
            ended(undone)
        assert undone.snapshot is None
        with lake.transaction() as outrun:
            t.delete("id = 1")
            lake._attachment.catalog.database.execute("INSERT INTO ducklake_snapshot SELECT 99, now(), 9, 9, 9")
            with pytest.raises(penstock.ConflictError):
                outrun.commit()
            ended(outrun)
        lake._attachment.catalog.database.execute("DELETE FROM ducklake_snapshot WHERE snapshot_id = 99")
        assert lake.current_snapshot().id == 3
        assert ids(lake, "t") == list(range(40))
        assert len(files_of(file_catalog)) == 2
        for transaction in (committed, undone):
            with refused:
                transaction.commit()


def test_no_change_makes_no_snapshot(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    with attached(sqlite_catalog, spark) as lake:
        lake.create_table("t", "id INT")
        before = lake.current_snapshot()
        with lake.transaction() as transaction:
            assert ids(lake, "t") == []
        assert transaction.snapshot == before
        with lake.transaction():
            table = lake.create_table("s", numbers(spark, *range(20)), comment="c", partitioned_by=["id"])
            table.add_column("more INT")
            table.set_sorted_by("id")
            table.rename("r").drop()
            lake.create_view("v", "SELECT 1 AS a")
            lake.rename_view("v", "v2")
            lake.drop_view("v2")
        assert lake.current_snapshot() == before
        assert files_of(sqlite_catalog) == set()
        with lake.transaction():
            lake.table("t").rename("u").rename("w")
        assert changes(lake) == {"tables_created": ["main.w"]}


def test_who_may_commit(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    with attached(sqlite_catalog, spark) as lake:
        lake.create_table("t", "id INT")
        with lake.transaction():
            with pytest.raises(penstock.InvalidError, match="inside a transaction"), lake.transaction():
                pass
            lake.create_table("new", "id INT")
            with pytest.raises(penstock.InvalidError, match="after the transaction"):
                lake.set_option("parquet_compression", "zstd", table="new")
        lake.set_option("require_commit_message", True)
        with leaving_nothing(sqlite_catalog, lake, "require_commit_message"):
            lake.table("t").append(numbers(spark, *range(20)))
        with lake.transaction(author="me"):
            assert ids(lake, "t") == []
        with leaving_nothing(sqlite_catalog, lake, "require_commit_message.*set_commit_message"), lake.transaction():
            lake.table("t").append(numbers(spark, *range(20)))
        with lake.transaction(message="because"):
            lake.table("t").append(numbers(spark, 1))
        assert lake.current_snapshot().commit_message == "because"
        with lake.transaction(author="me", extra_info="gone") as transaction:
            lake.table("t").append(numbers(spark, 2))
            with pytest.raises(penstock.InvalidError, match="set_commit_message"):
                transaction.commit()
            transaction.set_commit_message(author="é", message="late")
            made = transaction.commit()
            with pytest.raises(penstock.InvalidError, match="was committed"):
                transaction.set_commit_message(message="too late")
        assert (made.author, made.commit_message, made.commit_extra_info) == ("é", "late", None)
        assert lake.current_snapshot() == made
        lake.set_option("require_commit_message", False)
    with attached(sqlite_catalog, spark, max_retry_count=3, retry_wait_ms=5, retry_backoff=2) as lake:
        assert lake._attachment.retries == RetryPolicy(3, 5, 2)
    for parameters in ({"read_only": True}, {"snapshot_version": 1}):
        with attached(sqlite_catalog, spark, **parameters) as lake:
            for write in (lake.transaction().__enter__, lambda: lake.table("t").append(numbers(spark, 1))):
                with pytest.raises(penstock.InvalidError, match="cannot be changed"):
                    write()


def test_the_last_snapshot_that_a_lake_committed(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    """As the extension's, side by side."""
    with sqlite_catalog.reference() as reference:

        def theirs() -> Any:
            return reference.value("SELECT id FROM lk.last_committed_snapshot()")

        assert theirs() is None
        reference.execute("CREATE TABLE t (id INT)", "BEGIN", "INSERT INTO t VALUES (1)")
        assert theirs() == 1
        reference.execute("COMMIT", "BEGIN", "INSERT INTO t VALUES (1)", "ROLLBACK", "DELETE FROM t WHERE id > 9")
        assert theirs() == 2
    with attached(sqlite_catalog, spark) as lake, attached(sqlite_catalog, spark) as other:
        t = lake.table("t")
        assert lake.last_committed_snapshot() is None
        with lake.transaction() as transaction:
            t.append(numbers(spark, 2))
            assert lake.last_committed_snapshot() is None
            made = transaction.commit()
            assert lake.last_committed_snapshot() == made
        with pytest.raises(KeyError), lake.transaction():
            raise KeyError
        with lake.transaction():
            pass
        assert t.delete("id > 9") == other.current_snapshot() == made
        other.create_table("u", "id INT")
        assert lake.last_committed_snapshot() == made
        assert other.last_committed_snapshot() == lake.current_snapshot() != made


def test_each_thread_has_its_own_transaction(sqlite_catalog: Catalog, spark: SparkSession) -> None:
    with attached(sqlite_catalog, spark) as lake:
        lake.create_table("t", "id INT")

        def write(start: int) -> Sequence[int]:
            with lake.transaction(message=str(start)):
                lake.table("t").append(numbers(spark, *range(start, start + 20)))
                lake.table("t").append(numbers(spark, start + 20))
                return ids(lake, "t")

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(write, (0, 100))) == [list(range(21)), list(range(100, 121))]
        assert ids(lake, "t") == [*range(21), *range(100, 121)]
        assert lake.current_snapshot().id == 3


def test_deletes_inside_reach_what_the_transaction_added_whatever_others_add(
    sqlite_catalog: Catalog, spark: SparkSession
) -> None:
    with attached(sqlite_catalog, spark) as lake, attached(sqlite_catalog, spark) as other:
        t = lake.create_table("t", numbers(spark, 1, 2))
        with lake.transaction():
            t.append(numbers(spark, 3, 4, 5))
            assert ids(lake, "t") == [1, 2, 3, 4, 5]
            other.table("t").append(numbers(spark, 100, 101, 102, 103))
            t.delete("id = 4")
            assert ids(lake, "t") == [1, 2, 3, 5]
        assert ids(lake, "t") == [1, 2, 3, 5, 100, 101, 102, 103]


def test_files_that_cannot_be_deleted_do_not_undo_a_commit(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with attached(duckdb_catalog, spark) as lake:
        t = lake.create_table("t", "id INT")
        with lake.transaction():
            t.append(numbers(spark, *range(20)))
            [taken_back] = Path(duckdb_catalog.data_path).rglob("*.parquet")
            t.overwrite(numbers(spark, *range(40)))
            taken_back.unlink()
            (taken_back / "in the way").mkdir(parents=True)
        assert ids(lake, "t") == list(range(40))


FILES = tries(1_000, 10_000)


def test_thousands_of_files_are_one_commit(catalog: Catalog) -> None:
    columns = tuple(Column(i, f"c{i}", Type("int64" if i % 2 else "varchar"), 0) for i in range(1, 17))
    files = [
        WrittenFile(
            f"ducklake-{n}.parquet", record_count=2, size=10, footer_size=5,
            columns=tuple(ColumnStatistics(c.id, 3, 2, 0, str(n), str(n + 1)) for c in columns),
        )
        for n in range(FILES)
    ]  # fmt: skip
    with Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t", columns)
        with writer.transaction() as transaction:
            add_files(transaction.staging, writer.table(transaction, "t").id, None, files)
            shown = transaction.shown().database.value("SELECT count(*) FROM ducklake_file_column_stats")
            assert shown == 16 * FILES
    with catalog.reference() as reference:
        assert reference.rows("SELECT count(*), count(DISTINCT data_file) FROM ducklake_list_files('lk', 't')") == [
            (FILES, FILES)
        ]
        assert reference.rows(f"SELECT record_count, next_row_id FROM {METADATA}.ducklake_table_stats") == [
            (2 * FILES, 2 * FILES)
        ]
        bounds = f"SELECT min_value, max_value FROM {METADATA}.ducklake_table_column_stats ORDER BY column_id LIMIT 2"
        assert reference.rows(bounds) == [("0", str(FILES)), ("0", str(FILES - 1))]
        statistics = f"SELECT count(*), sum(min_value::INT) FROM {METADATA}.ducklake_file_column_stats"
        assert reference.rows(statistics) == [(16 * FILES, 16 * sum(range(FILES)))]
