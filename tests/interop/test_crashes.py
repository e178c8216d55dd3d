"""A writer that is killed at the worst moments leaves the last snapshot as it was, and at most files of no snapshot."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.catalog.commits.staged_files import add_inlined
from penstock.ducklake.catalog.inlined_storage import inlined_statistics
from support.catalogs import Catalog
from support.processes import READY, Child, environment
from support.reference import METADATA
from support.small_sessions import SMALL
from support.writers import ID, Writer
from support.writing import attached, files_of

pytestmark = pytest.mark.every_catalog


def victim(uri: str, data_path: str, moment: str) -> None:
    """A process of its own: a transaction with a file, rows for the catalog and a new table, which stops on its way."""
    _stop_at(moment)
    with Writer(uri, data_path) as writer, writer.transaction() as transaction:
        writer.stage_file(transaction, "t", *range(1000, 1020))
        table = writer.table(transaction, "t")
        rows = pa.table({"id": pa.array([2000], pa.int64())})
        add_inlined(transaction.staging, table.id, ID, rows, inlined_statistics(ID, rows))
        writer.stage_table(transaction, f"of_{moment}")


def _stop_at(moment: str) -> None:
    from penstock.ducklake import transaction
    from penstock.ducklake.catalog.databases import base
    from penstock.storage.parquet.files import ArrowFile

    match moment:
        case "writing":
            ArrowFile.close = _stop_before(ArrowFile.close)  # type: ignore[method-assign]
        case "written":
            transaction.commit = _stop_before(transaction.commit)
        case "committing":
            base.Database._commit = _stopping_before_commit(base.Database._commit)  # type: ignore[method-assign]
        case "committed":
            transaction.commit = _stop_after(transaction.commit)


def _stop_before(function: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(*arguments: Any) -> Any:
        _stop()
        return function(*arguments)

    return stopping


def _stop_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(*arguments: Any) -> Any:
        function(*arguments)
        _stop()

    return stopping


def _stopping_before_commit(commit: Callable[..., Any]) -> Callable[..., Any]:
    def stopping(self: Any) -> None:
        if self.query("SELECT 1 FROM ducklake_table WHERE table_name = 'of_committing'"):
            _stop()
        commit(self)

    return stopping


def _stop() -> None:
    print(READY, flush=True)
    time.sleep(600)


def files_in_catalog(catalog: Catalog) -> set[str]:
    with catalog.reference() as reference:
        return {f"main/t/{path}" for (path,) in reference.rows(f"SELECT path FROM {METADATA}.ducklake_data_file")}


def test_a_killed_writer_leaves_the_last_snapshot_and_the_next_writer_works(
    catalog: Catalog, spark: SparkSession
) -> None:
    with Writer(catalog.uri, catalog.data_path) as first:
        first.create_table("t")
        first.append_file("t", *range(20))
        first.append("t", 100)
    expected, snapshot = [*range(20), 100], 3
    for number, moment in enumerate(("writing", "written", "committing", "committed")):
        before = files_of(catalog)
        with Child.script(__file__, catalog.uri, catalog.data_path, moment) as child:
            child.is_ready()
        committed = moment == "committed"
        if committed:
            expected += [*range(1000, 1020), 2000]
            snapshot += 1
        assert len(files_of(catalog) - before) == 1
        assert len(files_of(catalog) - files_in_catalog(catalog)) == min(number + 1, 3)
        with catalog.reference() as reference:
            assert reference.value(f"SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot") == snapshot, moment
            assert reference.rows("SELECT id FROM t ORDER BY rowid") == [(value,) for value in expected], moment
            made = reference.rows(f"SELECT count(*) FROM {METADATA}.ducklake_table WHERE table_name = 'of_{moment}'")
            assert made == [(int(committed),)]
        with Writer(catalog.uri, catalog.data_path) as following:
            following.append("t", 200 + number)
            following.create_table(f"after_{moment}")
            following.append(f"after_{moment}", number)
        expected.append(200 + number)
        snapshot += 3
    with attached(catalog, spark) as lake:
        assert [row.id for row in lake.table("t").read(row_ids=True).orderBy("rowid").collect()] == expected
        assert lake.table("of_committed").read().count() == 0
        assert [row.id for row in lake.table("after_committing").read().collect()] == [2]
    with catalog.reference() as reference:
        assert reference.rows("FROM after_committing") == [(2,)]
        assert reference.value("SELECT count(DISTINCT rowid) FROM t") == len(expected)


def spark_victim(uri: str, data_path: str) -> None:
    """Killed while Spark's tasks write."""

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        Path(data_path, "ready").touch()
        time.sleep(600)

    spark = penstock.session("local[1]", **SMALL)
    rows = spark.range(0, 100_000, 1, 1).mapInArrow(slowly, "id long")
    with penstock.attach(uri, spark=spark) as lake:
        lake.table("t").append(rows)


@pytest.mark.slow
@pytest.mark.spark
def test_a_killed_spark_driver_leaves_the_last_snapshot(sqlite_catalog: Catalog) -> None:
    catalog = sqlite_catalog
    with Writer(catalog.uri, catalog.data_path) as first:
        first.create_table("t")
        first.append_file("t", *range(20))
    sign = Path(catalog.data_path, "ready")
    with subprocess.Popen([sys.executable, __file__, catalog.uri, catalog.data_path], env=environment()) as process:
        while not sign.exists():
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    sign.unlink()
    with Writer(catalog.uri, catalog.data_path) as following:
        following.append("t", 100)
    with catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t ORDER BY rowid") == [(i,) for i in (*range(20), 100)]


if __name__ == "__main__":
    (victim if len(sys.argv) > 3 else spark_victim)(*sys.argv[1:])
