"""Every type that Spark and Lance both hold, there and back, and as pylance sees it."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock.lance
from support.lance_judges import by_pylance

UTC = dt.UTC
DEEP = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int64()))), ("d", pa.decimal128(38, 10))]))
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 255]),
    "uint32": (pa.uint32(), [0, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "float32": (pa.float32(), [-0.0, math.nan, math.inf]),
    "float64": (pa.float64(), [-0.0, math.nan, -math.inf, 5e-324]),
    "decimal": (pa.decimal128(38, 2), [Decimal("123456789012345678901234567890123456.78"), Decimal("-0.01")]),
    "text": (pa.string(), ["", "it's", "é😀\x00\n", "a" * 100_000]),
    "large_text": (pa.large_string(), ["", "x"]),
    "binary": (pa.binary(), [b"", b"\x00\xff"]),
    "fixed_binary": (pa.binary(3), [b"abc", b"\x00\x00\x00"]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]),
    "time": (pa.time64("us"), [dt.time(0, 0), dt.time(23, 59, 59, 999999)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(9999, 12, 31)]),
    "timestamp_s": (pa.timestamp("s"), [dt.datetime(1969, 12, 31, 23, 59, 59)]),
    "timestamp_tz": (pa.timestamp("us", "UTC"), [dt.datetime(2025, 3, 9, 7, 59, 59, 999999, UTC)]),
    "timestamp_elsewhere": (pa.timestamp("us", "Asia/Tokyo"), [dt.datetime(2025, 3, 9, 7, 59, tzinfo=UTC)]),
    "timestamp_ns": (pa.timestamp("ns"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    "vector": (pa.list_(pa.float32(), 4), [[1.5, -0.0, math.inf, 0.25]]),
    "half_vector": (pa.list_(pa.float16(), 3), [[np.float16(1.5), np.float16(-2), np.float16(0.5)]]),
    "list": (pa.list_(pa.string()), [[], ["", None, "x"]]),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]), [{"a": 1, "b": {"c": None}}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("k", 1), ("é", None)], []]),
    "deep": (DEEP, [[{"m": [("x", [1, None]), ("y", None)], "d": Decimal("1.0000000001")}, None], []]),
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_there_and_back(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind, values = TYPES[name]
    given = pa.table(
        {"k": pa.array([i % 2 for i in range(len(values) + 1)], pa.int32()), "v": pa.array([*values, None], kind)}
    )
    namespace = penstock.lance.create(str(tmp_path), "n", given.schema, partitioned_by=["k"], spark=spark)
    # A leaf by pylance is what Spark reads; what it reads, it writes to a second namespace.
    first = penstock.lance.create(str(tmp_path), "first", given.schema, partitioned_by=["k"], spark=spark)
    _written_by_pylance(tmp_path, given)
    namespace.append(first.read())
    tables = by_pylance(tmp_path, "n")
    assert len(tables) == min(2, len(given))
    written = pa.concat_tables(tables.values())
    assert {table.schema.field("v").type for table in tables.values()} == {kind}
    assert sorted(map(repr, written["v"].to_pylist())) == sorted(map(repr, given["v"].to_pylist()))


def _written_by_pylance(root: Path, rows: pa.Table) -> None:
    import lance
    import pyarrow.compute as pc

    from support.lance_judges import client

    for key in (0, 1):
        part = rows.filter(pc.equal(rows["k"], key))
        if len(part):
            lance.write_dataset(part, namespace_client=client(root), table_id=["first", f"k={key}"], mode="create")


def test_a_vector_of_another_length_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int32()), ("v", pa.list_(pa.float32(), 2))])
    namespace = penstock.lance.create(str(tmp_path), "n", schema, partitioned_by=["k"], spark=spark)
    with pytest.raises(penstock.InvalidError, match=r"(?s)column v.*n\$k=1"):
        namespace.append(spark.sql("SELECT 1 AS k, array(1.0F) AS v"))
    namespace.append(spark.sql("SELECT 1 AS k, array(1.0F, 2.0F) AS v UNION ALL SELECT 1, null"))
    assert sorted(namespace.read().collect(), key=repr) == [(1, None), (1, [1.0, 2.0])]


@pytest.mark.parametrize("columnar", [True, False])
def test_vectors_of_many_rows_of_which_one_is_null(spark: SparkSession, tmp_path: Path, columnar: bool) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("v", pa.list_(pa.float32(), 2))])
    namespace = penstock.lance.create(str(tmp_path / "n"), "n", schema, partitioned_by=["k"], spark=spark)
    many = 80_000  # more than a task joins to one batch

    def rows(odd_id: int, odd: str) -> DataFrame:
        made = spark.range(0, many, 1, 1).selectExpr(
            "id", "cast(id % 2 AS int) AS k", f"if(id = {odd_id}, {odd}, array(float(id), 2F)) AS v"
        )
        if not columnar:
            return made
        made.write.mode("overwrite").parquet(str(tmp_path / "rows"))
        return spark.read.parquet(str(tmp_path / "rows")).coalesce(1)

    for odd_id in (0, many - 1):
        namespace.overwrite(rows(odd_id, "NULL"))
        with pytest.raises(penstock.InvalidError, match=r"(?s)column v of leaf n\$k=\d: the value \[1.0\]"):
            namespace.append(rows(odd_id, "array(1F)"))
        namespace.append(rows(odd_id, "NULL"))
        assert namespace.read().where("v IS NULL").select("id").collect() == [(odd_id,)] * 2
        assert namespace.read().where("v[0] = id AND v[1] = 2").count() == 2 * (many - 1)
    namespace.compact()
    assert namespace.read().where("v[0] = id AND v[1] = 2").count() == 2 * (many - 1)


def test_hostile_column_names(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a b", "it's", 'q"q', "é😀", "a/b=c$d%e", "select", "A,b"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    namespace = penstock.lance.create(
        str(tmp_path), "n", schema, partitioned_by=['"é😀"', "bucket(2, `a/b=c$d%e`)", "`it's`"], spark=spark
    )
    namespace.append(spark.range(3).selectExpr(*(f"id AS `{name}`" for name in names)))
    assert sorted(namespace.read().collect()) == [tuple([i] * len(names)) for i in range(3)]
    for name in names:
        assert namespace.read().where(f"`{name}` = 2").count() == 1
    assert namespace.explain("`é😀` = 2").kept == 1
