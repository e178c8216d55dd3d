"""Deleted rows that Spark's reader leaves out: however they are told, and however it reads."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import penstock
from penstock.spark.deleted_rows import PositionFile, deletes_text
from penstock.spark.file_records import file_records
from penstock.spark.jvm import file_index
from penstock.spark.parquet_options import ROW_INDEX
from penstock.spark.relation import parquet_rows
from penstock.storage.deletion_vectors import decode_deletion_vector, encode_deletion_vector
from support import effort
from support.session_settings import configured

SCHEMA = StructType().add("id", LongType()).add(ROW_INDEX, LongType())
LAST = 3
PARQUET = "spark.sql.parquet"
READERS = {
    "batches": {},
    "small batches": {f"{PARQUET}.columnarReaderBatchSize": "3"},
    "rows of batches": {"spark.sql.codegen.maxFields": "0"},
    "rows": {f"{PARQUET}.enableVectorizedReader": "false"},
    "off the heap": {"spark.sql.columnVector.offheap.enabled": "true"},
    "many tasks": {"spark.sql.files.maxPartitionBytes": "200", "spark.sql.files.openCostInBytes": "0"},
}
positions = st.lists(st.integers(0, 60), max_size=30)


@dataclass(frozen=True)
class Deletes:
    """What is deleted, in each of the ways that it can be told: `dated` with the snapshots that did it, if any."""

    dated: Sequence[tuple[int, int | None]]
    vector: Sequence[int]
    inlined: Sequence[int]

    def all(self) -> set[int]:
        counting = {position for position, snapshot in self.dated if snapshot is None or snapshot <= LAST}
        return counting | set(self.vector) | set(self.inlined)

    def text(self, folder: Path) -> str:
        files = []
        if self.dated:
            files.append(written_positions(folder / "dated %41'.parquet", self.dated))
        if self.vector:
            files.append(written_vector(folder / "vector.puffin", encode_deletion_vector(np.array(self.vector))))
        return deletes_text(files, self.inlined)


def written_positions(path: Path, dated: Sequence[tuple[int, int | None]]) -> PositionFile:
    """A delete file as others may write one: in any order, with a column more."""
    columns = {"file_path": ["x"] * len(dated), "pos": [position for position, _ in dated]}
    if any(snapshot is not None for _, snapshot in dated):
        columns["_ducklake_internal_snapshot_id"] = pa.array([snapshot for _, snapshot in dated], pa.int64())
    pq.write_table(pa.table(columns | {"row": [None] * len(dated)}), path, row_group_size=7)
    return PositionFile("parquet", str(path), path.stat().st_size, LAST)


def written_vector(path: Path, blob: bytes) -> PositionFile:
    path.write_bytes(blob)
    return PositionFile("puffin", str(path), 0, LAST)


def rows(spark: SparkSession, path: Path, deletes: str) -> DataFrame:
    """The rows of a file of which some are deleted."""
    record = file_records([(str(path), path.stat().st_size, ("constant", deletes))])
    constants = StructType().add("constant", StringType())
    index = file_index(spark, lambda _: record, constants, {}, path.stat().st_size, "a file with deletes")
    return parquet_rows(spark, index, SCHEMA, with_deletes=True)


def numbers(path: Path, count: int, group: int = 1000, page: int = 1000) -> Path:
    """A file whose rows are their own indexes."""
    table = pa.table({"id": pa.array(range(count), pa.int64())})
    pq.write_table(
        table, path, row_group_size=group, max_rows_per_page=page, write_page_index=True, use_dictionary=False
    )
    return path


@settings(
    max_examples=effort.tries(25, 120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    deletes=st.builds(
        Deletes,
        st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers(1, 5)), max_size=20),
        positions,
        positions,
    ),
    count=st.integers(0, 60),
    group=st.integers(1, 40),
    page=st.integers(1, 20),
    span=st.tuples(st.integers(-5, 60), st.integers(-5, 65)),
    reader=st.sampled_from(sorted(READERS)),
)
def test_the_rows_left_are_the_others(
    spark: SparkSession, deletes: Deletes, count: int, group: int, page: int, span: tuple[int, int], reader: str
) -> None:
    with TemporaryDirectory() as made, configured(spark, READERS[reader]):
        frame = rows(spark, numbers(Path(made, "data.parquet"), count, group, page), deletes.text(Path(made)))
        left = [number for number in range(count) if number not in deletes.all()]
        filtered = frame.where(f"id BETWEEN {span[0]} AND {span[1]}")
        assert sorted(map(tuple, frame.collect())) == [(number, number, "constant") for number in left]
        assert sorted(row.id for row in filtered.collect()) == [n for n in left if span[0] <= n <= span[1]]
        assert frame.count() == len(left)


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_positions_themselves_are_told_in_few_words(numbers: list[int]) -> None:
    kind, packed = deletes_text([], numbers).split(" ")
    assert kind == "inlined"
    assert decode_deletion_vector(b64decode(packed), "text").tolist() == sorted(set(numbers))


DAMAGED = {
    "too short": b"\0",
    "cut": encode_deletion_vector(np.arange(3))[:-5],
    "changed": encode_deletion_vector(np.arange(3))[:-6] + b"\1\2\3\4\5\6",
    "of another kind": b"PFA1" * 8,
    "beyond": encode_deletion_vector(np.array([2**32])),
}


@pytest.mark.parametrize("damage", ["gone", "no Parquet", "negative", "huge", *DAMAGED])
@pytest.mark.parametrize("ignoring", [False, True])
def test_deletes_that_cannot_be_read(spark: SparkSession, tmp_path: Path, damage: str, ignoring: bool) -> None:
    """No row comes back, and none is lost, also to a user who has Spark ignore files that it cannot read."""
    path = tmp_path / "deletes"
    if damage in DAMAGED:
        told = written_vector(path, DAMAGED[damage])
    elif damage == "no Parquet":
        path.write_bytes(b"PAR1, not really")
        told = PositionFile("parquet", str(path), 16, LAST)
    else:
        told = written_positions(path, [({"negative": -1, "huge": 2**32}.get(damage, 0), None)])
        if damage == "gone":
            path.unlink()
    ignored = {f"spark.sql.files.ignore{what}Files": str(ignoring).lower() for what in ("Missing", "Corrupt")}
    frame = rows(spark, numbers(tmp_path / "data.parquet", 5), deletes_text([told], []))
    with configured(spark, ignored), pytest.raises(penstock.PenstockError, match=r"deletes cannot be read: .*bring"):
        frame.collect()


def test_a_file_of_which_nothing_is_told(spark: SparkSession, tmp_path: Path) -> None:
    path = numbers(tmp_path / "data.parquet", 5)
    record = file_records([(str(path), path.stat().st_size, ())])
    index = file_index(spark, lambda _: record, StructType(), {}, 1, "a file with deletes")
    with pytest.raises(penstock.PenstockError, match=r"the deleted rows of .*data\.parquet are not known"):
        parquet_rows(spark, index, SCHEMA, with_deletes=True).collect()
