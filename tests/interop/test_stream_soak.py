"""Streams for long: a thousand small batches with maintenance, and random changes from lake to lake with restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock import Table
from support import effort
from support.catalogs import Catalog, SQLiteCatalog
from support.streams import NOW, finished, forget_last_batch, run

BATCHES, ROWS = 1000, 5


@pytest.mark.slow
def test_a_thousand_small_batches(sqlite_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "arrivals"
    folder.mkdir()
    for batch in range(BATCHES):
        ids = range(batch * ROWS, (batch + 1) * ROWS)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})
        pq.write_table(rows, folder / f"{batch:05}.parquet")
    stream = spark.readStream.schema("id BIGINT, name STRING").option("maxFilesPerTrigger", 1).parquet(str(folder))
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        lake.set_option("expire_older_than", "1 second")
        lake.set_option("delete_older_than", "1 second")
        table = lake.create_table("t", "id BIGINT, name STRING")
        query = table.write_stream(stream, checkpoint=str(tmp_path / "c"), maintain=50, trigger=NOW)
        assert query.awaitTermination(1800)
        assert table.files().count() <= 5
        assert len(list(Path(sqlite_catalog.data_path).rglob("*.parquet"))) <= 20
        assert lake.snapshots().count() <= 200
        assert lake.streams().collect()[0].batch == BATCHES - 1
    with sqlite_catalog.reference() as reference:
        assert reference.rows("SELECT count(*), count(DISTINCT id), sum(id) FROM t") == [
            (BATCHES * ROWS, BATCHES * ROWS, sum(range(BATCHES * ROWS)))
        ]
        for name, most in (("ducklake_tag", 210), ("ducklake_snapshot_changes", 210), ("ducklake_data_file", 60)):
            assert reference.value(f"SELECT count(*) FROM __ducklake_metadata_lk.{name}") <= most, name


STATEMENTS = (
    "INSERT INTO t SELECT i, 'n' || i FROM range({a}, {a} + {n}) r(i)",
    "INSERT INTO t VALUES ({a}, NULL)",
    "UPDATE t SET name = 'u{a}' WHERE id % {n} = 0",
    "UPDATE t SET id = id + 1000",
    "DELETE FROM t WHERE id % {n} = 1",
    "DELETE FROM t WHERE id < {a}",
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL lk.merge_adjacent_files()",
    "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
)
statements = st.builds(
    lambda text, a, n: text.format(a=a, n=n), st.sampled_from(STATEMENTS), st.integers(0, 60), st.integers(2, 40)
)
rounds = st.lists(
    st.tuples(st.lists(statements, max_size=4), st.none() | st.integers(1, 30), st.booleans()), min_size=1, max_size=4
)


@pytest.mark.slow
@settings(max_examples=effort.tries(5, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(rounds)
def test_a_copy_by_a_stream_equals_its_source(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[str], int | None, bool]]
) -> None:
    """Whatever changes, whatever the limits, and whether the last batch is repeated or not."""
    place = tmp_path_factory.mktemp("copied")
    catalog = SQLiteCatalog(place)
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER, name VARCHAR)")
    target = f"ducklake:sqlite:{place}/target.sqlite"
    with (
        penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake,
        penstock.attach(target, data_path=f"{place}/target/", spark=spark) as copies,
    ):
        copy = copies.create_table("copy", "row BIGINT, id INTEGER, name STRING")

        def write(rows: DataFrame, batch: int) -> None:
            with copies.write_once(stream="copy", batch=batch) as found:
                if found.is_new:
                    apply(rows, copy)

        for changes, most, repeated in steps:
            with catalog.reference() as reference:
                reference.execute(*changes)
            stream = lake.table("t").read_stream(changes=True, max_rows_per_trigger=most)
            run(stream, place / "c", write)
            if repeated and (place / "c" / "commits").exists() and any((place / "c" / "commits").glob("[0-9]*")):
                forget_last_batch(place / "c")
                run(lake.table("t").read_stream(changes=True), place / "c", write)
            with catalog.reference() as reference:
                shown = sorted(reference.rows("SELECT rowid, id, name FROM t"))
            assert sorted(tuple(row) for row in copy.read().collect()) == shown, steps


def apply(rows: DataFrame, copy: Table) -> None:
    """The last change of each row in a batch."""
    order = Window.partitionBy("rowid").orderBy(
        F.desc("snapshot_id"), F.desc(F.col("change_type") != "update_preimage")
    )
    newest = rows.withColumn("n", F.row_number().over(order)).where("n = 1")
    source = newest.selectExpr("rowid AS row", "id", "name", "change_type")
    values = {"row": "source.row", "id": "source.id", "name": "source.name"}
    merge: Any = copy.merge(source, on="row").when_matched_delete("source.change_type = 'delete'")
    merge.when_matched_update(values).when_not_matched_insert(values, "source.change_type <> 'delete'").execute()


def test_the_last_change_of_a_row_counts(spark: SparkSession, sqlite_catalog: Catalog, tmp_path: Path) -> None:
    """The same for one history, in every run of the tests."""
    with sqlite_catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)", "INSERT INTO t SELECT i, 'x' FROM range(40) r(i)"
        )
    with penstock.attach(sqlite_catalog.uri, data_path=sqlite_catalog.data_path, spark=spark) as lake:
        copy = lake.create_table("copy", "row BIGINT, id INTEGER, name STRING")
        stream = lake.table("t").read_stream(changes=True, max_rows_per_trigger=60)
        for changes in (
            (),
            ("UPDATE t SET id = id + 100", "DELETE FROM t WHERE id % 3 = 0", "UPDATE t SET name = 'y'"),
        ):
            with sqlite_catalog.reference() as reference:
                reference.execute(*changes)
            writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "c"))
            finished(writer.foreachBatch(lambda rows, _: apply(rows, copy)).trigger(**NOW).start())
            with sqlite_catalog.reference() as reference:
                shown = sorted(reference.rows("SELECT rowid, id, name FROM t"))
            assert sorted(tuple(row) for row in copy.read().collect()) == shown
