"""Streams for long: a thousand small batches with maintenance, and random changes from lake to lake with restarts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock import Table
from support import effort
from support.catalogs import Catalog, SQLiteCatalog
from support.streams import NOW, finished, run

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


CHANGES = (
    "INSERT INTO t SELECT i, 'n' || i FROM range({a}, {a} + {n}) r(i)",
    "INSERT INTO t VALUES ({a}, NULL)",
    "UPDATE t SET {name} = 'u{a}' WHERE {id} % {n} = 0",
    "UPDATE t SET {id} = {id} + 1000",
    "DELETE FROM t WHERE {id} % {n} = 1",
    "DELETE FROM t WHERE {id} < {a}",
)
RENAMES = {"id": "key", "name": "title"}
UPKEEP = (
    "CALL ducklake_flush_inlined_data('lk')",
    "CALL lk.merge_adjacent_files()",
    "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
)


@dataclass(frozen=True)
class Statement:
    """A text, or the column that gets its other name."""

    text: str
    a: int = 0
    n: int = 0


@dataclass(frozen=True)
class Crash:
    """At which batch the driver dies, on which side of the lake's commit, and what changes until it is back."""

    batch: int
    is_after: bool
    meanwhile: tuple[Statement, ...]


@dataclass(frozen=True)
class Round:
    """Changes, and a run of the stream that reads them, in batches of so many rows."""

    changes: tuple[Statement, ...]
    most: int | None
    crash: Crash | None


class Changing:
    """The table that changes, and what its columns are called now."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self.names = catalog, {"id": "id", "name": "name"}

    def change(self, statements: tuple[Statement, ...]) -> None:
        with self.catalog.reference() as reference:
            for one in statements:
                reference.execute(self._sql(one))

    def _sql(self, one: Statement) -> str:
        if one.text not in self.names:
            return one.text.format(a=one.a, n=one.n, **self.names)
        now = self.names[one.text]
        other = RENAMES[one.text] if now == one.text else one.text
        self.names[one.text] = other
        return f"ALTER TABLE t RENAME COLUMN {now} TO {other}"

    def rows(self) -> list[tuple[Any, ...]]:
        with self.catalog.reference() as reference:
            return sorted(reference.rows(f"SELECT rowid, {self.names['id']}, {self.names['name']} FROM t"))


numbers = {"a": st.integers(0, 60), "n": st.integers(2, 40)}
changes = st.builds(Statement, st.sampled_from((*CHANGES, *RENAMES)), **numbers)
anything = changes | st.builds(Statement, st.sampled_from(UPKEEP))
# DuckDB's merges give rows other ids that a snapshot has which is on its way in parts: docs/streaming.md.
crashes = st.builds(Crash, st.integers(0, 4), st.booleans(), st.lists(changes, max_size=2).map(tuple))
rounds = st.lists(
    st.builds(Round, st.lists(anything, max_size=4).map(tuple), st.none() | st.integers(1, 30), st.none() | crashes),
    min_size=1,
    max_size=4,
)


class DiedError(Exception):
    """The driver did."""


@pytest.mark.slow
@settings(max_examples=effort.tries(5, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(rounds)
def test_a_copy_by_a_stream_equals_its_source(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, steps: list[Round]
) -> None:
    """Whatever changes, whatever the limits, and whatever the moment at which the stream dies and starts again."""
    place = tmp_path_factory.mktemp("copied")
    catalog = SQLiteCatalog(place)
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER, name VARCHAR)")
    source, target = Changing(catalog), f"ducklake:sqlite:{place}/target.sqlite"
    with (
        penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake,
        penstock.attach(target, data_path=f"{place}/target/", spark=spark) as copies,
    ):
        copy = copies.create_table("copy", "row BIGINT, id INTEGER, name STRING")

        def follow(most: int | None, crash: Crash | None) -> None:
            written = count()

            def write(rows: DataFrame, batch: int) -> None:
                dies = crash is not None and next(written) == crash.batch
                if dies and not crash.is_after:
                    raise DiedError
                with copies.write_once(stream="copy", batch=batch) as found:
                    if found.is_new:
                        apply(rows, copy)
                if dies:
                    raise DiedError

            run(lake.table("t").read_stream(changes=True, max_rows_per_trigger=most), place / "c", write)

        for step in steps:
            source.change(step.changes)
            try:
                follow(step.most, step.crash)
            except StreamingQueryException as error:
                if step.crash is None or "DiedError" not in str(error):
                    raise
                source.change(step.crash.meanwhile)
                follow(step.most, None)
            assert sorted(tuple(row) for row in copy.read().collect()) == source.rows(), steps


SOURCE = ("row", "id", "name", "change_type")


def apply(rows: DataFrame, copy: Table) -> None:
    """The last change of each row in a batch."""
    order = Window.partitionBy("rowid").orderBy(
        F.desc("snapshot_id"), F.desc(F.col("change_type") != "update_preimage")
    )
    newest = rows.withColumn("n", F.row_number().over(order)).where("n = 1")
    source = newest.select(F.col("rowid").alias("row"), *rows.columns[3:], "change_type").toDF(*SOURCE)
    values = {"row": "source.row", "id": "source.id", "name": "source.name"}
    merge: Any = copy.merge(source, on="row").when_matched_delete("source.change_type = 'delete'")
    merge.when_matched_update(values).when_not_matched_insert(values, "source.change_type <> 'delete'").execute()


@pytest.mark.slow
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
