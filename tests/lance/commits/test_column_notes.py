"""Columns that other programs make, or change in our leaves: none is taken for another."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from support.lance_foreign import foreign_leaf, namespace_with_leaf, pylance_leaf, rows_where
from support.lance_judges import client, listed_leaves


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    return namespace_with_leaf(spark, tmp_path)


def test_a_column_that_pylance_retypes_stays_what_it_is(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.rename_column("b", "c")
    namespace.add_column("b STRING")
    pylance_leaf(tmp_path).alter_columns(
        {"path": "b", "data_type": pa.large_string()}, {"path": "id", "name": "number"}
    )
    assert namespace.adopt() is not None
    assert rows_where(namespace) == [(1, "EU", "old", None)]
    namespace.drop_column("c")
    namespace.add_column("c STRING")  # the leaf's `b` is neither of the two by now
    assert rows_where(namespace) == [(1, "EU", None, None)]
    namespace.align()
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'x' AS b, 'y' AS c"))
    assert rows_where(namespace) == [(1, "EU", None, None), (2, "EU", "x", "y")]


def test_a_column_that_may_be_another_by_now_is_an_error(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf = pylance_leaf(tmp_path)
    leaf.alter_columns({"path": "b", "name": "z", "data_type": pa.large_string()})
    with pytest.raises(penstock.InvalidError, match=r"n\$region=EU had a column 'b'.*'z'.*rename it to 'b'"):
        namespace.adopt()
    assert rows_where(namespace) == [(1, "EU", "old")]
    leaf.alter_columns({"path": "z", "name": "b"})
    namespace.adopt()
    assert rows_where(namespace) == [(1, "EU", "old")]
    leaf.drop_columns(["b"])  # just gone: NULL, as the specification has it
    namespace.adopt()
    assert rows_where(namespace) == [(1, "EU", None)]


def test_columns_of_others_stay_what_they_are_when_their_names_get_another_meaning(
    spark: SparkSession, tmp_path: Path
) -> None:
    namespace = penstock.lance.create(
        str(tmp_path), "n", "id INT, c STRING, d STRING", partitioned_by=["c"], spark=spark
    )
    rows = pa.table({"id": pa.array([1], pa.int32()), "c": ["a"], "d": ["x"]})
    leaf = foreign_leaf(tmp_path, ["c=a"], rows)
    client(tmp_path).declare_table(DeclareTableRequest(id=["n", "c=declared"]))
    namespace.rename_column("c", "region")
    namespace.add_column("c STRING")
    namespace.drop_column("d")
    namespace.add_column("d STRING")
    lance.write_dataset(rows.set_column(0, "id", pa.array([2], pa.int32())), leaf, mode="append")  # shows at once
    assert rows_where(namespace) == [(1, "a", None, None), (2, "a", None, None)]
    assert namespace.delete("region IS NULL OR c = 'a'") is None
    foreign_leaf(tmp_path, ["region=b"], pa.table({"region": ["b"], "c": ["its own"], "d": ["too"]}))
    assert rows_where(namespace, "region = 'b'") == [(None, "b", "its own", "too")]
    # made anew, it is as they name it now
    lance.write_dataset(pa.table({"d": ["y"], "c": ["z"], "region": ["a"]}), leaf, mode="overwrite")
    assert rows_where(namespace, "region = 'a'") == [(None, "a", "z", "y")]
    lance.write_dataset(rows, leaf, mode="overwrite")
    namespace.rename_column("c", "e")
    namespace.add_column("c STRING")
    assert rows_where(namespace, "e = 'a'") == [(1, None, "a", "x", None)]
    lance.write_dataset(rows, leaf, mode="append")
    lance.write_dataset(rows, leaf, mode="append").cleanup_old_versions(timedelta(0))
    with pytest.raises(penstock.InvalidError, match=r"n\$c=a: nobody can tell.*'id', 'c', 'd'.*write it anew"):
        rows_where(namespace)


@pytest.mark.parametrize("columns", [3, 120])
def test_what_columns_are_is_known_of_leaves_of_any_width(spark: SparkSession, tmp_path: Path, columns: int) -> None:
    schema = pa.schema([(f"v{number}", pa.int32()) for number in range(columns)])
    namespace = penstock.lance.create(str(tmp_path), "n", schema, partitioned_by=["v0"], spark=spark)
    namespace.append(spark.range(1).selectExpr(*(f"{number} AS v{number}" for number in range(columns))))
    [path] = listed_leaves(tmp_path, "n").values()
    lance.dataset(path).alter_columns(*({"path": name, "data_type": pa.int64()} for name in ("v1", "v2")))
    namespace.adopt()
    for old, new in [("v1", "other"), ("v2", "v1"), ("other", "v2")]:
        lance.dataset(path).alter_columns({"path": old, "name": new})
    namespace.adopt()
    assert namespace.read().select("v1", "v2").collect() == [(1, 2)]
    namespace.rename_column("v1", "z")
    namespace.add_column("v1 INT")
    assert namespace.read().select("z", "v1", "v2").collect() == [(1, None, 2)]


def test_rows_are_added_to_leaves_whose_columns_pylance_has_changed(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    leaf = pylance_leaf(tmp_path)
    leaf.add_columns(pa.field("extra", pa.int32()))
    leaf.alter_columns({"path": "b", "data_type": pa.large_string()}, {"path": "id", "name": "number"})
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'new' AS b"))
    assert rows_where(namespace, "region = 'EU'") == [(1, "EU", "old"), (2, "EU", "new")]
    assert pylance_leaf(tmp_path).to_table().to_pylist()[1] == {"number": 2, "region": "EU", "b": "new", "extra": None}
    [finding] = namespace.check().collect()
    assert finding[:3] == ("n$region=EU", "columns", None)
    assert "extra is not the namespace's" in finding.detail
    namespace.align()
    assert namespace.check().count() == 0
