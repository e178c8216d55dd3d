"""Files whose partition columns are missing or wrong, and what backfill makes of them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.delta
from penstock.delta.format.actions import AddFile
from support.delta_judges import by_deltalake, by_duckdb, data_files, in_order


def test_a_file_that_contradicts_the_log(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(
        str(tmp_path / "t"), "id INT, region STRING", partitioned_by=["region"], materialize_partition_columns=True,
        spark=spark,
    )  # fmt: skip
    table.append(spark.sql("SELECT 1 AS id, 'EU' AS region"))
    [file] = data_files(tmp_path / "t")
    rows = pq.read_table(tmp_path / "t" / file)
    size = (tmp_path / "t" / file).stat().st_size
    pq.write_table(rows.set_column(1, "region", [["US"]]), tmp_path / "t" / file)
    commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    commit.write_text(commit.read_text().replace(f'"size":{size}', f'"size":{(tmp_path / "t" / file).stat().st_size}'))
    assert table.read().collect() == [(1, "EU")]
    assert by_deltalake(table.path) == by_duckdb(table.path) == [(1, "EU")]
    [finding] = table.verify().findings
    assert (finding.kind, finding.column) == ("differs", "region")
    table.backfill()
    assert table.verify().ok
    assert table.read().where("region = 'EU'").collect() == [(1, "EU")]


def test_all_that_is_found_is_repaired(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(
        str(tmp_path / "t"), "id INT, n INT, day DATE, ts TIMESTAMP", partitioned_by=["n", "day", "ts"],
        materialize_partition_columns=True, spark=spark,
    )  # fmt: skip
    row = "1 AS n, date'2026-01-02' AS day, timestamp'2026-01-02 03:04:05' AS ts"
    table.append(spark.sql(f"SELECT explode(array(1, 2)) AS id, {row}").coalesce(1))
    [file] = data_files(tmp_path / "t")
    day, ts = dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5)
    for n, days, moments, found in (
        (["1", "1"], [str(day)] * 2, pa.array([ts] * 2, pa.timestamp("us")), {"wrong type"}),
        (pa.array([1, 2], pa.int32()), [day] * 2, pa.array([ts] * 2, pa.timestamp("us", "UTC")), {"not constant"}),
        (pa.array([{"x": 1}] * 2), [day] * 2, pa.array([ts] * 2, pa.timestamp("us", "UTC")), {"unreadable"}),
    ):
        [live] = [row.path for row in table.files().collect()]
        size = (tmp_path / "t" / live).stat().st_size
        ids = pa.array([1, 2], pa.int32())
        pq.write_table(pa.table({"id": ids, "n": n, "day": days, "ts": moments}), tmp_path / "t" / live)
        [commit] = [path for path in (tmp_path / "t/_delta_log").glob("*.json") if f'"size":{size}' in path.read_text()
                    and '"add"' in path.read_text()][-1:]  # fmt: skip
        resized = commit.read_text().replace(f'"size":{size}', f'"size":{(tmp_path / "t" / live).stat().st_size}')
        commit.write_text(resized)
        assert {finding.kind for finding in table.verify().findings} == found
        table.backfill()
        assert table.verify().ok
        assert in_order(table.read().select("id", "n").collect()) == in_order([(1, 1), (2, 1)])
    assert file not in [row.path for row in table.files().collect()]


def test_one_file_that_cannot_be_copied_does_not_stop_the_others(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = penstock.delta.create(str(path), "id BIGINT, d DATE", partitioned_by=["d"], spark=spark)
    old = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""}
    files = {"old.parquet": "1500-01-01", "older.parquet": "1400-01-01", "fine.parquet": "1582-10-15"}
    for name in files:
        pq.write_table(pa.table({"id": [1]}).replace_schema_metadata(old), path / name)
    adds = [AddFile(name, {"d": day}, (path / name).stat().st_size, 0, True).to_json() for name, day in files.items()]
    (path / "_delta_log" / f"{1:020}.json").write_text("\n".join(adds))
    table.enable_materialized_partition_columns()
    with pytest.raises(penstock.PenstockError, match=r"2 of the files .*/old\.parquet: .*/older\.parquet: ") as raised:
        table.backfill()
    assert "fine.parquet" not in str(raised.value)
    assert {Path(finding.path).name for finding in table.verify().findings} == {"old.parquet", "older.parquet"}
    assert len(data_files(path)) == 4
    assert in_order(by_duckdb(path, "d::VARCHAR")) == in_order([(day,) for day in files.values()])
