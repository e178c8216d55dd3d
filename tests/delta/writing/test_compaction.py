"""Small files become larger ones: rows, old versions and other readers see nothing of it."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
import penstock.delta
from penstock.delta import DeltaTable
from penstock.delta.format.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing import file_commits
from penstock.errors import ConflictError, InvalidError
from penstock.storage.deletion_vectors import encode_deletion_vector
from support.delta_judges import by_deltalake, by_duckdb, data_files, in_order
from support.stalled import Stalled

SCHEMA = (
    "id BIGINT NOT NULL, region STRING, day DATE, amount DECIMAL(38,2), ts TIMESTAMP, f DOUBLE,"
    " s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>"
)
REGIONS = ("EU", "", None, "a/b=c$d%e:f", "é😀 x", 'it\'s "q"', "__HIVE_DEFAULT_PARTITION__", "..", "\\_\x01")
DELETED = (3, 4, 7, 11, 18, 29)


def sales(spark: SparkSession, rows: int, first: int = 0) -> DataFrame:
    texts = ", ".join(
        "null" if one is None else "'" + one.replace("\\", "\\\\").replace("'", "\\'") + "'" for one in REGIONS
    )
    return spark.range(first, first + rows).coalesce(1).select(
        "id",
        F.expr(f"element_at(array({texts}), 1 + cast(id % {len(REGIONS)} as int))").alias("region"),
        F.expr("element_at(array(date'1969-12-31', date'1500-01-01'), 1 + cast(id div 9 % 2 as int))").alias("day"),
        F.expr("cast('123456789012345678901234567890123456.78' as decimal(38,2)) - id").alias("amount"),
        F.expr("timestamp_micros(-1765360800123456 + id * 3600000000)").alias("ts"),
        F.expr("element_at(array(double('NaN'), -0.0D, 1.5D, null), 1 + cast(id % 4 as int))").alias("f"),
        F.expr("if(id % 5 = 0, null, named_struct('a', cast(id as int), 'b', array('x', null)))").alias("s"),
        F.expr("if(id % 3 = 0, null, map('k', cast(id as int)))").alias("m"),
    )  # fmt: skip


def shown(table: DeltaTable, version: int | None = None) -> list[str]:
    return in_order(table.read(version=version).collect())


def log_of(table: DeltaTable) -> TableLog:
    return TableLog(table.path)


def added_by(table: DeltaTable, version: int) -> list[AddFile]:
    return [action for action in log_of(table).actions(version) if isinstance(action, AddFile)]


@pytest.mark.parametrize("materialized", [True, False])
def test_many_small_files_of_hostile_partitions(spark: SparkSession, tmp_path: Path, materialized: bool) -> None:
    table = penstock.delta.create(
        str(tmp_path / "t"), SCHEMA, partitioned_by=["region", "day"], materialize_partition_columns=materialized,
        spark=spark,
    )  # fmt: skip
    for batch in range(3):
        table.append(sales(spark, 36, batch * 36))
    before = {version: shown(table, version) for version in range(4)}
    judged = in_order(by_deltalake(table.path, "id, region, day, amount, s, m"))
    partitions = len({json.dumps(row.partition, sort_keys=True) for row in table.files().collect()})
    assert table.compact() == 4
    assert {version: shown(table, version) for version in range(4)} == before
    assert shown(table) == before[3]
    assert in_order(by_deltalake(table.path, "id, region, day, amount, s, m")) == judged
    assert in_order(by_duckdb(table.path, "id, region, amount")) == in_order(
        by_deltalake(table.path, "id, region, amount", version=3)
    )
    assert len(table.files().collect()) == partitions == 16
    for action in log_of(table).actions(4):
        if isinstance(action, AddFile | RemoveFile):
            assert action.data_change is False
    assert table.verify().ok is materialized
    held = pq.read_schema(tmp_path / "t" / sorted(row.path for row in table.files().collect())[0]).names
    assert (held[-2:] == ["region", "day"]) is materialized
    assert len(table.read().where("day < '1600-01-01' AND id < 20").collect()) == 9
    last = table.history().first()
    assert last is not None
    assert (last.operation, last.parameters["predicate"]) == ("OPTIMIZE", "[]")
    files = data_files(tmp_path / "t")
    assert table.compact() == 4, "there is nothing left to do"
    assert data_files(tmp_path / "t") == files


def numbers(spark: SparkSession, path: Path, *files: range, schema: str = "id BIGINT, p STRING") -> DeltaTable:
    """A table whose files hold ranges of ids, in the partitions a and b by turns."""
    table = penstock.delta.create(
        str(path), schema, partitioned_by=["p"], materialize_partition_columns=True, spark=spark
    )
    for number, ids in enumerate(files):
        frame = spark.range(ids.start, ids.stop, 1, 1).selectExpr("id", f"'{'ab'[number % 2]}' AS p")
        table.append(frame)
    return table


def test_files_are_chosen_by_partition_and_statistics(spark: SparkSession, tmp_path: Path) -> None:
    table = numbers(spark, tmp_path / "t", *(range(10 * i, 10 * i + 5) for i in range(8)))
    rows = shown(table)
    assert table.compact("p = 'b' AND id >= 30") == 9
    assert sorted((row.partition["p"], row.rows) for row in table.files().collect()) == [
        *[("a", 5)] * 4, ("b", 5), ("b", 15),
    ]  # fmt: skip
    assert table.compact(F.col("id") < 0) == 9
    assert table.compact(F.col("p").isNull()) == 9
    assert table.compact(where="id < 45 OR p = 'b'") == 10
    assert sorted((row.partition["p"], row.rows) for row in table.files().collect()) == [("a", 5), ("a", 15), ("b", 20)]
    assert shown(table) == shown(table, 8) == rows == in_order(by_deltalake(table.path))


def test_the_target_bounds_files(spark: SparkSession, tmp_path: Path) -> None:
    table = numbers(spark, tmp_path / "t", *(range(10 * i, 10 * i + 5) for i in range(20)))
    rows, size = shown(table), max(row.size for row in table.files().collect())
    assert table.compact(target_file_size=size) == 20, "every two are more than that"
    assert table.compact(target_file_size=5 * size) == 21
    assert sorted(row.rows for row in table.files().collect()) == [25] * 4
    assert shown(table) == rows == in_order(by_deltalake(table.path))


def test_the_target_that_the_table_says(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(
        str(tmp_path / "t"), "id BIGINT", properties={"delta.targetFileSize": "1b"}, spark=spark
    )
    for _ in range(2):
        table.append(spark.range(3))
    assert table.compact() == 2
    assert table.compact(target_file_size=2**20) == 3
    assert [row.rows for row in table.files().collect()] == [6]


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "1mb"])
def test_wrong_arguments_change_nothing(spark: SparkSession, tmp_path: Path, size: Any) -> None:
    table = numbers(spark, tmp_path / "t", range(2), range(2), range(2))
    files = data_files(tmp_path / "t")
    with pytest.raises(InvalidError, match="target_file_size"):
        table.compact(target_file_size=size)
    with pytest.raises(InvalidError, match="without a subquery"):
        table.compact("id IN (SELECT 1)")
    with pytest.raises(AnalysisException):
        table.compact("nothing = 1")
    assert (table.version, data_files(tmp_path / "t")) == (3, files)


def test_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(str(tmp_path / "t"), "id BIGINT", spark=spark)
    assert table.compact() == 0
    for number in range(2):  # files without rows, as other writers leave them
        pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "t" / f"{number}.parquet")
    given = [AddFile(f"{n}.parquet", {}, (tmp_path / f"t/{n}.parquet").stat().st_size, 0, True) for n in range(2)]
    (tmp_path / "t/_delta_log" / f"{1:020}.json").write_text("\n".join(one.to_json() for one in given))
    assert table.compact() == 2
    assert table.files().collect() == table.read().collect() == by_deltalake(table.path) == []


def vector(path: Path, positions: Sequence[int]) -> DeletionVectorDescriptor:
    """A deletion vector in a file beside the table."""
    blob = encode_deletion_vector(np.array(positions, np.int64))
    path.write_bytes(b"\1" + blob)
    return DeletionVectorDescriptor("p", str(path), len(blob) - 8, len(positions), 1)


def foreign(path: Path, version: int, *tables: pa.Table, deleted: Sequence[int] = (), **options: Any) -> None:
    """Commits files as another writer would, each with a deletion vector where rows are deleted."""
    lines = []
    for number, table in enumerate(tables):
        name = f"foreign-{version}-{number}.parquet"
        pq.write_table(table, path / name, **options)
        own = vector(path / f"{name}.bin", deleted) if deleted else None
        stats = json.dumps({"numRecords": table.num_rows})
        size = (path / name).stat().st_size
        lines.append(AddFile(name, {}, size, 0, True, stats, deletion_vector=own).to_json())
    (path / "_delta_log" / f"{version:020}.json").write_text("\n".join(lines))


def with_vectors(spark: SparkSession, path: Path) -> DeltaTable:
    properties = {"delta.enableDeletionVectors": "true"}
    return penstock.delta.create(str(path), "id BIGINT", properties=properties, spark=spark)


def test_deletion_vectors_are_respected(spark: SparkSession, tmp_path: Path) -> None:
    table = with_vectors(spark, tmp_path / "t")
    table.append(spark.range(1000, 1010))
    foreign(tmp_path / "t", 2, *(pa.table({"id": range(100 * n, 100 * n + 40)}) for n in range(2)), deleted=DELETED)
    expected = sorted([*range(1000, 1010), *(100 * n + i for n in range(2) for i in range(40) if i not in DELETED)])
    assert sorted(row.id for row in table.read().collect()) == expected
    assert table.compact() == 3
    assert sorted(row.id for row in table.read().collect()) == expected
    assert sorted(row.id for row in table.read(version=2).collect()) == expected
    assert sorted(row[0] for row in by_deltalake(table.path)) == expected
    assert sorted(row[0] for row in by_duckdb(table.path)) == expected
    assert [(row.rows, row.deleted) for row in table.files().collect()] == [(len(expected), 0)]


def test_a_vector_that_grows_meanwhile_is_in_the_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine deletes a row of a source: its file comes back under the same path, with a vector."""
    table = with_vectors(spark, tmp_path / "t")
    foreign(tmp_path / "t", 1, *(pa.table({"id": range(5)}) for _ in range(2)))
    slow = stalled(monkeypatch, table)
    [old, _] = log_of(table).snapshot().files.values()
    new = replace(old, deletion_vector=vector(tmp_path / "t/v.bin", [1]))
    lines = [old.removed(1).to_json(), new.to_json()]
    (tmp_path / "t/_delta_log" / f"{2:020}.json").write_text("\n".join(lines))
    with pytest.raises(ConflictError, match="removed foreign-1-0"):
        raise slow.goes_on()
    assert data_files(tmp_path / "t") == {"foreign-1-0.parquet", "foreign-1-1.parquet"}
    assert table.compact() == 3
    assert sorted(row.id for row in table.read().collect()) == [0, 0, 1, 2, 2, 3, 3, 4, 4]


def test_files_of_which_all_rows_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    table = with_vectors(spark, tmp_path / "t")
    foreign(tmp_path / "t", 1, *(pa.table({"id": range(6)}) for _ in range(2)), deleted=range(6))
    assert table.compact() == 2
    assert table.files().collect() == table.read().collect() == by_deltalake(table.path) == []


def test_a_vector_of_other_rows_than_the_file_has(spark: SparkSession, tmp_path: Path) -> None:
    table = with_vectors(spark, tmp_path / "t")
    foreign(tmp_path / "t", 1, *(pa.table({"id": range(6)}) for _ in range(2)), deleted=[2, 6])
    with pytest.raises(penstock.PenstockError, match="more of them are deleted"):
        table.compact()
    assert table.version == 1
    assert data_files(tmp_path / "t") == {"foreign-1-0.parquet", "foreign-1-1.parquet"}


def mapped(path: Path, spark: SparkSession, mode: str) -> DeltaTable:
    """A table under column mapping: a file lacks what came later, and another has what was dropped."""

    def field(name: str, kind: object, number: int) -> dict[str, object]:
        own = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return {"name": name, "type": kind, "nullable": True, "metadata": own}

    struct = {"type": "struct", "fields": [field("a", "string", 3), field("z", "integer", 6)]}
    fields = [field("id", "long", 1), field("s", struct, 2), field("late", "integer", 4), field("p", "string", 5)]
    table = penstock.delta.create(
        str(path), "id BIGINT, p STRING", partitioned_by=["p"], materialize_partition_columns=True, spark=spark
    )

    def item(name: str, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": name.removeprefix("col-")})

    old = pa.struct([item("col-3", pa.string())])
    new = pa.struct([item("col-6", pa.int32()), item("col-3", pa.string())])
    rows = [
        pa.table([[1, 2], [{"col-3": "it's"}, None], ["dropped"] * 2],
                 schema=pa.schema([item("col-1", pa.int64()), item("col-2", old), item("col-9", pa.string())])),
        pa.table([[7], [{"col-6": 8, "col-3": ""}], [3]],
                 schema=pa.schema([item("col-4", pa.int32()), item("col-2", new), item("col-1", pa.int64())])),
    ]  # fmt: skip
    added = []
    for number, one in enumerate(rows):
        pq.write_table(one, path / f"{number}.parquet")
        added.append(
            AddFile(f"{number}.parquet", {"col-5": "x/y"}, (path / f"{number}.parquet").stat().st_size, 0, True)
        )
    names = ["columnMapping", "materializePartitionColumns"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names[:1], "writerFeatures": names}
    metadata = {
        "id": "5a3c8a9e-0000-4000-8000-000000000000", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["p"],
        "configuration": {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"},
    }  # fmt: skip
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata}), *(one.to_json() for one in added)]
    (path / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))
    return table


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_and_columns_that_came_and_went(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = mapped(tmp_path / "t", spark, mode)
    rows = shown(table)
    judged = in_order(by_duckdb(table.path, "id, s.a, s.z, late"))
    assert table.compact() == 2
    assert shown(table) == shown(table, 1) == rows
    [row] = table.files().collect()
    schema = pq.read_schema(tmp_path / "t" / row.path)
    assert schema.names == ["col-1", "col-2", "col-4", "col-5"]
    assert [item.metadata[b"PARQUET:field_id"] for item in schema] == [b"1", b"2", b"4", b"5"]
    assert in_order(by_duckdb(table.path, "id, s.a, s.z, late")) == judged


def test_files_that_are_not_as_the_table_stay(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of twelve-byte timestamps and narrow integers the meaning is sure; of the others it is not."""
    path = tmp_path / "t"
    table = penstock.delta.create(str(path), "id BIGINT, ts TIMESTAMP, d DATE", spark=spark)
    at, day = dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.date(1969, 12, 31)

    def rows(number: int, ids: pa.DataType, unit: str = "us", zone: str | None = "UTC", **names: str) -> pa.Table:
        moments = pa.array([at, None], pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone), safe=False)
        days = pa.array([day, None], pa.date32())
        table = pa.table({"id": pa.array([number, None], ids), "ts": moments, "d": days})
        return table.rename_columns([names.get(name, name) for name in table.column_names])

    old = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""}
    foreign(path, 1, rows(1, pa.int64()), rows(2, pa.int32()), rows(3, pa.int64(), "ms"))
    foreign(path, 2, rows(4, pa.int64()), use_deprecated_int96_timestamps=True)
    foreign(path, 3, rows(5, pa.int64()).replace_schema_metadata(old), rows(6, pa.int64(), names="x", id="ID"))
    before = in_order(table.read().where("id IS NOT NULL").selectExpr("id", "cast(ts as string)", "d").collect())
    with caplog.at_level(logging.WARNING, "penstock"):
        assert table.compact() == 4
    left = {record.getMessage().split(" is not compacted: ")[0].rpartition("/")[2] for record in caplog.records}
    assert left == {"foreign-3-0.parquet", "foreign-3-1.parquet"}
    assert len(table.files().collect()) == 3
    after = in_order(table.read().where("id IS NOT NULL").selectExpr("id", "cast(ts as string)", "d").collect())
    assert after == before


def test_a_value_that_does_not_fit_leaves_its_file_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = penstock.delta.create(str(path), "n TINYINT", spark=spark)
    foreign(path, 1, *(pa.table({"n": pa.array([value], pa.int32())}) for value in (1, 300, 2)))
    assert table.compact() == 2
    assert sorted(row.rows for row in table.files().collect()) == [1, 2]
    assert "foreign-1-1.parquet" in {row.path for row in table.files().collect()}
    assert data_files(path) == {f"foreign-1-{n}.parquet" for n in range(3)} | {
        row.path for row in table.files().collect()
    }


def test_many_files_of_an_append_only_table_and_nulls_where_none_should_be(spark: SparkSession, tmp_path: Path) -> None:
    """Rows are rearranged, not removed; what other writers have let through stays."""
    path = tmp_path / "t"
    properties = {"delta.appendOnly": "true", "delta.checkpointInterval": "2"}
    table = penstock.delta.create(str(path), "id BIGINT NOT NULL, x STRING", properties=properties, spark=spark)
    foreign(path, 1, *(pa.table({"id": pa.array([n, None], pa.int64())}) for n in range(300)))
    rows = shown(table)
    assert table.compact() == 2
    assert [row.rows for row in table.files().collect()] == [600]
    assert shown(table) == shown(table, 1) == rows
    assert len(by_duckdb(table.path)) == 600
    assert (path / "_delta_log" / f"{2:020}.checkpoint.parquet").exists()


def test_a_file_that_cannot_be_read_stops_all_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = numbers(spark, tmp_path / "t", *(range(2) for _ in range(4)))
    paths = sorted(row.path for row in table.files().collect())
    files = data_files(tmp_path / "t")
    (tmp_path / "t" / paths[0]).write_bytes(b"no Parquet")
    with pytest.raises(Exception, match=r"[Pp]arquet"):
        table.compact()
    assert (table.version, data_files(tmp_path / "t")) == (4, files)


# Beside other writers: a compaction waits, its files written, while the other is done.


def stalled(monkeypatch: pytest.MonkeyPatch, table: DeltaTable, **named: Any) -> Stalled:
    return Stalled(monkeypatch, lambda: table.compact(**named), file_commits, "commit")


def test_appends_go_past_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbers(spark, tmp_path / "t", range(2), range(2, 4), range(4, 6))
    slow = stalled(monkeypatch, table)
    assert table.append(spark.sql("SELECT 99L AS id, 'a' AS p")) == 4
    assert slow.goes_on() == 5
    assert sorted(row.id for row in table.read().collect()) == [*range(6), 99]
    assert sorted(row[0] for row in by_deltalake(table.path)) == [*range(6), 99]
    assert len(table.files().collect()) == 3


@pytest.mark.parametrize("other", ["delete", "compact", "overwrite"])
def test_whoever_removes_its_files_is_in_the_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    table = numbers(spark, tmp_path / "t", range(2), range(2, 4), range(4, 6))
    acts = {
        "delete": lambda: table.delete("id = 5"),
        "compact": lambda: table.compact("p = 'a'"),
        "overwrite": lambda: table.overwrite(spark.sql("SELECT 1L AS id, 'a' AS p")),
    }
    slow = stalled(monkeypatch, table)
    assert acts[other]() == 4
    rows, files = shown(table), data_files(tmp_path / "t")
    with pytest.raises(ConflictError, match=r"removed p=a/\S+, which this write removes"):
        raise slow.goes_on()
    assert (table.version, shown(table)) == (4, rows)
    live = {row.path for version in range(5) for row in table.files(version=version).collect()}
    assert data_files(tmp_path / "t") == live < files
    table.compact()
    assert shown(table) == rows == in_order(by_deltalake(table.path))


def test_a_delete_beside_it_does_not_lose_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = numbers(spark, tmp_path / "t", range(2), range(2, 4), range(4, 6))
    slow = Stalled(monkeypatch, lambda: table.delete("id = 0"), file_commits, "commit")
    assert table.compact() == 4
    with pytest.raises(ConflictError, match="removed"):
        raise slow.goes_on()
    table.delete("id = 0")
    assert sorted(row.id for row in table.read().collect()) == [1, 2, 3, 4, 5]
