"""Texts of small fragments are compressed in a quick way, of which the leaf's columns know nothing."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
from lance.file import LanceFileReader
from pyspark.sql import SparkSession

import penstock.lance
from penstock.lance.writing.quick_texts import with_quick_texts

QUICK = {b"lance-encoding:compression": b"lz4"}


def test_short_columns_of_texts_and_bytes_are() -> None:
    chosen = {b"lance-encoding:compression": b"zstd"}
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("text", pa.string(), metadata={b"own": b"1"}),
            pa.field("bytes", pa.large_binary(), nullable=False),
            pa.field("chosen", pa.string(), metadata=chosen),
            pa.field("list", pa.list_(pa.string())),
        ],
        metadata={b"schema": b"own"},
    )
    rows = pa.table([[1], ["a"], [b"b"], ["c"], [["d"]]], schema=schema)
    quick = with_quick_texts(rows)
    assert [item.metadata for item in quick.schema] == [None, {b"own": b"1"} | QUICK, QUICK, chosen, None]
    assert quick.schema.metadata == schema.metadata
    assert quick.schema.remove_metadata() == schema.remove_metadata()
    assert quick.columns == rows.columns


def test_long_ones_are_left_to_lance() -> None:
    rows = pa.table({"text": ["x" * 1024] * 5000})
    assert with_quick_texts(rows).schema.field("text").metadata is None
    assert with_quick_texts(rows.slice(0, 1000)).schema.field("text").metadata == QUICK


def test_only_the_file_knows(spark: SparkSession, tmp_path: Path) -> None:
    """What the leaf's own schema says is what it said before: an append, and a compaction, choose anew."""
    namespace = penstock.lance.create(
        str(tmp_path), "texts", "part int, name string", partitioned_by=["part"], spark=spark
    )
    rows = spark.range(6000).selectExpr("cast(id % 2 as int) AS part", "concat('name of ', id) AS name")
    namespace.append(rows.coalesce(1))
    namespace.append(rows.limit(10))
    leaves = [path.parent for path in tmp_path.glob("*/_versions") if path.parent.name != "__manifest"]
    assert len(leaves) == 2
    for leaf in leaves:
        dataset = lance.dataset(str(leaf))
        assert not any(key.startswith(b"lance-encoding") for key in dataset.schema.field("name").metadata)
        first = dataset.get_fragments()[0].metadata.files[0]
        assert LanceFileReader(f"{leaf}/data/{first.path}").read_all().to_table().num_rows == 3000
    assert namespace.read().distinct().count() == 6000
    namespace.compact()
    assert namespace.read().count() == 6010
    assert namespace.read().where("name = 'name of 4711'").count() == 1
