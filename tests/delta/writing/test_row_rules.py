"""Rows that break the rules of a table's schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

import penstock
import penstock.delta
from support.delta_judges import by_deltalake, by_duckdb, data_files, in_order


def test_null_is_refused_at_every_depth(spark: SparkSession, tmp_path: Path) -> None:
    whole = T.StructType(
        [
            T.StructField("a", T.ArrayType(T.IntegerType(), containsNull=False)),
            T.StructField("m", T.MapType(T.StringType(), T.IntegerType(), valueContainsNull=False)),
            T.StructField("s", T.StructType([T.StructField("x.y", T.IntegerType(), nullable=False)])),
            T.StructField("deep", T.ArrayType(T.StructType([T.StructField("b", T.ArrayType(T.StringType(), False))]))),
        ]
    )
    table = penstock.delta.create(str(tmp_path / "t"), whole, spark=spark)
    good = {
        "a": "array(1, 2)", "m": "map('k', 1)", "s": "named_struct('x.y', 1)",
        "deep": "array(null, named_struct('b', array('')), named_struct('b', null))",
    }  # fmt: skip
    for name, bad, path in (
        ("a", "array(1, null, 3)", "a.element"),
        ("m", "map('j', 1, 'k', null)", "m.value"),
        ("s", "named_struct('x.y', cast(null as int))", "s.x.y"),
        ("deep", "array(named_struct('b', array('x', null)))", "deep.element.b.element"),
    ):
        given = {**good, name: bad}
        with pytest.raises(penstock.InvalidError, match=f"column '{path}' takes no NULL; nothing was written"):
            table.append(spark.sql("SELECT " + ", ".join(f"{value} AS {key}" for key, value in given.items())))
    assert (table.version, data_files(tmp_path / "t")) == (0, set())
    table.append(spark.sql("SELECT " + ", ".join(f"{value} AS {key}" for key, value in good.items())))
    table.append(spark.sql("SELECT " + ", ".join(f"null AS {key}" for key in good)))
    expected = [([1, 2], {"k": 1}, (1,), [None, ([""],), (None,)]), (None, None, None, None)]
    assert in_order(table.read().collect()) == in_order(spark.createDataFrame(expected, whole).collect())


def test_texts_of_a_length(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(
        str(tmp_path / "t"), "a VARCHAR(3), b CHAR(3), p VARCHAR(2)", partitioned_by=["p"], spark=spark
    )
    assert [item.dataType for item in table.schema.fields] == [T.StringType()] * 3
    assert [item.metadata["__CHAR_VARCHAR_TYPE_STRING"] for item in table.schema.fields] == [
        "varchar(3)", "char(3)", "varchar(2)",
    ]  # fmt: skip
    table.append(spark.createDataFrame([("é😀x  ", "y", "EU"), (None, None, None)], "a STRING, b STRING, p STRING"))
    expected = in_order([("é😀x", "y  ", "EU"), (None, None, None)])
    assert in_order(table.read().collect()) == expected
    assert in_order(by_deltalake(table.path)) == in_order(by_duckdb(table.path)) == expected
    for name in ("a", "b", "p"):
        with pytest.raises(penstock.InvalidError, match=f"a value of column '{name}' is longer than its"):
            table.append(spark.sql(f"SELECT 'four' AS {name}"))
