"""Arrays that Python hands to Spark as bytes are what Spark makes of Arrow's own, to the last bit."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.packed_arrays import PACKED, can_pack, packed, unpacked, with_packed
from penstock.spark.workers import map_in_workers
from support.processes import environment

ELEMENTS: dict[str, tuple[pa.DataType, T.DataType]] = {
    "byte": (pa.int8(), T.ByteType()),
    "short": (pa.int16(), T.ShortType()),
    "int": (pa.int32(), T.IntegerType()),
    "long": (pa.int64(), T.LongType()),
    "float": (pa.float32(), T.FloatType()),
    "double": (pa.float64(), T.DoubleType()),
}
LENGTHS = (1, 3, 8, 63, 64, 65, 130)


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows with every number as text, in which -0.0 and NaN are what they are."""
    return sorted((row[0], repr(row[1])) for row in frame.collect())


def batches_of(arrays: pa.Array, *, as_bytes: bool) -> Any:
    def made(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        column = packed(arrays) if as_bytes else arrays.cast(pa.list_(arrays.type.value_type))
        yield pa.RecordBatch.from_arrays([pa.array(range(len(arrays)), pa.int64()), column], names=["id", "v"])

    return made


def both(spark: SparkSession, arrays: pa.Array, element: T.DataType) -> tuple[DataFrame, DataFrame]:
    one = spark.range(1, numPartitions=1)
    kind = T.ArrayType(element)
    id_ = T.StructType().add("id", T.LongType())
    plain = map_in_workers(one, batches_of(arrays, as_bytes=False), T.StructType([*id_, T.StructField("v", kind)]))
    bytes_ = T.StructType([*id_, T.StructField("v", T.BinaryType())])
    return plain, unpacked(map_in_workers(one, batches_of(arrays, as_bytes=True), bytes_), {1: kind})


def hostile(kind: pa.DataType, length: int) -> pa.Array:
    """Rows with NULLs, elements that are NULL, and the values that hurt; a slice, so that nothing begins at 0."""
    if pa.types.is_floating(kind):
        values: list[Any] = [
            math.nan,
            -0.0,
            0.0,
            math.inf,
            -math.inf,
            1.5,
            None,
            3.4e38 if kind == pa.float32() else 1e308,
        ]
    else:
        most = 2 ** (kind.bit_width - 1)
        values = [0, -1, most - 1, -most, None, 7]
    rows: list[Any] = [[values[(row + place) % len(values)] for place in range(length)] for row in range(9)]
    rows += [None, [None] * length, [values[0]] * length, None]
    return pa.array([[values[0]] * length, *rows, None], pa.list_(kind, length)).slice(1, len(rows))


@pytest.mark.parametrize("name", ELEMENTS)
def test_they_are_the_same_as_arrays_of_arrow(spark: SparkSession, name: str) -> None:
    kind, element = ELEMENTS[name]
    for length in LENGTHS:
        plain, ours = both(spark, hostile(kind, length), element)
        assert ours.schema == plain.schema
        assert shown(ours) == shown(plain), length


def test_they_are_the_same_to_whatever_spark_does_with_them(spark: SparkSession) -> None:
    kind, element = ELEMENTS["float"]
    arrays = hostile(kind, 3)
    queries = {
        "element": lambda f: f.select("id", F.expr("v[1]")),
        "out of range": lambda f: f.select("id", F.expr("get(v, 5)")),
        "size": lambda f: f.select("id", F.expr("size(v)")),
        "null": lambda f: f.where("v IS NULL").select("id", F.lit(1)),
        "filter": lambda f: f.where("exists(v, x -> x > 1)").select("id", "v"),
        "higher order": lambda f: f.select("id", F.expr("transform(v, x -> x * 2)")),
        "groups": lambda f: f.groupBy("v").agg(F.min("id").alias("id"), F.count("*").alias("n")).select("id", "n"),
        "distinct": lambda f: f.select("v").distinct().select(F.lit(0), "v"),
        "sorted": lambda f: f.orderBy("v").select("id", "v"),
        "self-join": lambda f: f.alias("a").join(f.alias("b"), F.expr("a.v = b.v")).select("a.id", "b.id"),
        "cached": lambda f: f.cache().select("id", "v"),
        "shuffled": lambda f: f.repartition(3, "v").select("id", "v"),
        "exploded": lambda f: f.select("id", F.explode_outer("v")),
        "nested": lambda f: f.select("id", F.struct("v", F.array("v", "v"))),
        "in Python": lambda f: f.select("id", F.udf(lambda v: repr(v), "string")("v")),
    }
    plain, ours = both(spark, arrays, element)
    for name, query in queries.items():
        assert shown(query(ours)) == shown(query(plain)), name


def test_without_rows(spark: SparkSession) -> None:
    plain, ours = both(spark, pa.array([], pa.list_(pa.float32(), 4)), T.FloatType())
    assert shown(ours) == shown(plain) == []


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_the_bytes_are_those_of_sparks_arrays(data: st.DataObject) -> None:
    """Length, bits of what is NULL in words, elements, zeros up to a word: also where NULL hides other values."""
    length = data.draw(st.integers(1, 70))
    row = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-100, 100)), min_size=length, max_size=length))
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    found = packed(pa.array(rows, pa.list_(pa.int16(), length)))
    assert found.type == PACKED
    for given_, bytes_ in zip(rows, found.to_pylist(), strict=True):
        if given_ is None:
            assert bytes_ is None
            continue
        words = -(-length // 64)
        absent = sum(1 << place for place, value in enumerate(given_) if value is None)
        expected = length.to_bytes(8, "little") + absent.to_bytes(8 * words, "little")
        expected += np.array([value or 0 for value in given_], "<i2").tobytes()
        assert bytes_ == expected + bytes(-len(expected) % 8)


ELSEWHERE = """
import sys, penstock, penstock.lance, pyarrow as pa
setting = "spark.sql.artifact.isolation"
isolated = {f"{setting}.enabled": "true", f"{setting}.alwaysApplyClassloader": "true"}
spark = penstock.session("local-cluster[1,1,1024]", **(isolated if sys.argv[2] == "isolated" else {}))
schema = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("v", pa.list_(pa.float32(), 3))])
made = penstock.lance.create(sys.argv[1], "vectors", schema, partitioned_by=["part"], spark=spark)
made.append(spark.range(10).selectExpr("id", "int(id % 2) AS part", "array(float(id), NULL, 0.5F) AS v"))
for session in (spark, spark.newSession()):
    rows = penstock.lance.open(sys.argv[1], "vectors", spark=session).read().where("v[0] > 7").orderBy("id")
    print("rows", [tuple(row.v) for row in rows.collect()])
rows.createOrReplaceGlobalTempView("shared")
found = spark.newSession().sql("SELECT v, count(*) AS n FROM global_temp.shared WHERE v[0] < 9 GROUP BY v").collect()
print("rows", [tuple(row.v) for row in found])
"""


@pytest.mark.slow
@pytest.mark.parametrize("session", ["plain", "isolated"])
def test_other_executors(session: str, tmp_path: Path) -> None:
    program = tmp_path / "elsewhere.py"
    program.write_text(ELSEWHERE)
    run = subprocess.run(
        [sys.executable, program, str(tmp_path / "root"), session],
        env=environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    expected = "rows [(8.0, None, 0.5), (9.0, None, 0.5)]"
    assert run.stdout.splitlines() == [expected, expected, "rows [(8.0, None, 0.5)]"], run.stderr[-3000:]


def test_what_can_be_packed() -> None:
    floats = T.ArrayType(T.FloatType())
    assert can_pack(pa.list_(pa.float32(), 4), floats)
    assert not can_pack(pa.list_(pa.float32()), floats)
    assert not can_pack(pa.list_(pa.float16(), 4), floats)
    assert not can_pack(pa.list_(pa.bool_(), 4), T.ArrayType(T.BooleanType()))
    assert not can_pack(pa.list_(pa.uint8(), 4), T.ArrayType(T.ShortType()))
    assert not can_pack(pa.list_(pa.list_(pa.float32(), 2), 2), T.ArrayType(floats))
    assert not can_pack(pa.float32(), T.FloatType())
    schema = pa.schema([("a", pa.int64()), ("b", pa.binary())])
    assert with_packed(schema, [1]).types == [pa.int64(), PACKED]
