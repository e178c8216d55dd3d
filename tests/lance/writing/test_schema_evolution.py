"""Section 4 of the specification, line by line: leaves whose columns are not the namespace's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.lance
from support.lance_judges import client, listed_leaves

SCHEMA = "id INT NOT NULL, region STRING, amount BIGINT, note STRING"


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    return penstock.lance.create(str(tmp_path), "n", SCHEMA, partitioned_by=["region"], spark=spark)


def leaf(root: Path, region: str, rows: pa.Table) -> str:
    """A leaf as plain pylance writes it; its path."""
    name = ["n", f"region={region}"]
    lance.write_dataset(rows, namespace_client=client(root), table_id=name, mode="create")
    return listed_leaves(root, "n")["$".join(name)]


def rows(spark: SparkSession, text: str, columns: str = "id, region, amount, note") -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {text} AS t({columns})")


def told(namespace: penstock.lance.Namespace) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, namespace.read().collect()), key=repr)


def test_reading_a_column_that_a_leaf_has_not(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf(tmp_path, "EU", pa.table({"id": pa.array([1], pa.int32()), "region": ["EU"]}))
    assert told(namespace) == [(1, "EU", None, None)]
    assert namespace.read().where("note IS NULL AND region = 'EU'").count() == 1
    assert namespace.read().where("amount > 0").count() == 0


def test_reading_a_column_that_only_a_leaf_has(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf(tmp_path, "EU", pa.table({"more": [1.5], "id": pa.array([1], pa.int32()), "region": ["EU"], "amount": [7]}))
    assert told(namespace) == [(1, "EU", 7, None)]


def test_reading_another_type(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf(tmp_path, "EU", pa.table({"id": [1, 2], "region": ["EU"] * 2, "amount": ["42", None], "note": [b"x", None]}))
    leaf(tmp_path, "US", pa.table({"id": pa.array([3], pa.uint8()), "region": ["US"], "amount": pa.array([9.0])}))
    assert [row[:3] for row in told(namespace)] == [(1, "EU", 42), (2, "EU", None), (3, "US", 9)]
    assert namespace.read().where("amount = 42").select("id").collect()[0].id == 1
    assert namespace.read().where("amount >= 0 AND region = 'US'").count() == 1


def test_reading_a_value_that_is_none_of_the_type(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf(tmp_path, "EU", pa.table({"id": [1, 2**40], "region": ["EU"] * 2, "amount": ["1", "many"]}))
    with pytest.raises(Exception, match=r"(?s)column amount.*n\$region=EU.*'many'"):
        namespace.read().select("amount").collect()
    with pytest.raises(Exception, match=r"(?s)column id.*n\$region=EU.*1099511627776"):
        namespace.read().select("id").collect()
    assert [row.region for row in namespace.read().select("region").collect()] == ["EU", "EU"]


def test_writing_columns_that_a_dataframe_has_not(spark: SparkSession, namespace: penstock.lance.Namespace) -> None:
    namespace.append(rows(spark, "('EU', 1)", "region, id"))
    assert told(namespace) == [(1, "EU", None, None)]
    with pytest.raises(penstock.InvalidError, match="'id' takes no NULL"):
        namespace.append(rows(spark, "('EU')", "region"))
    with pytest.raises(penstock.InvalidError, match="column id of leaf n\\$region=EU takes no NULL, and 1 rows"):
        namespace.append(rows(spark, "('EU', cast(null as int))", "region, id"))
    assert told(namespace) == [(1, "EU", None, None)]


def test_writing_columns_that_the_namespace_has_not(spark: SparkSession, namespace: penstock.lance.Namespace) -> None:
    with pytest.raises(penstock.InvalidError, match="no column 'more'"):
        namespace.append(rows(spark, "('EU', 1, 2)", "region, id, more"))
    assert namespace.partitions().count() == 0


def test_writing_a_column_that_a_leaf_has_not(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    path = leaf(tmp_path, "EU", pa.table({"id": pa.array([1], pa.int32()), "region": ["EU"], "amount": [1]}))
    with pytest.raises(penstock.InvalidError, match=r"leaf n\$region=EU has no column 'note'.*align\(\)"):
        namespace.append(rows(spark, "(2, 'EU', 5, 'x')"))
    assert lance.dataset(path).version == 1
    namespace.align()
    namespace.append(rows(spark, "(2, 'EU', 5, 'x')"))
    assert told(namespace) == [(1, "EU", 1, None), (2, "EU", 5, "x")]
    assert namespace.align() is None


def test_writing_where_a_leaf_has_more(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    columns = {"id": pa.array([1], pa.int32()), "region": ["EU"], "amount": [1], "note": ["a"], "more": [1.5]}
    path = leaf(tmp_path, "EU", pa.table(columns))
    namespace.append(rows(spark, "(2, 'EU', 5, 'x')"))
    assert lance.dataset(path).to_table()["more"].to_pylist() == [1.5, None]
    schema = pa.schema([pa.field("id", pa.int32()), pa.field("region", pa.string()), pa.field("amount", pa.int64()),
                        pa.field("note", pa.string()), pa.field("more", pa.float64(), nullable=False)])  # fmt: skip
    leaf(tmp_path, "US", pa.table({**columns, "region": ["US"]}, schema=schema))
    with pytest.raises(penstock.InvalidError, match=r"more.*n\$region=US|n\$region=US.*more"):
        namespace.append(rows(spark, "(3, 'US', 5, 'x')"))


def test_writing_another_type(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    table = pa.table({"id": pa.array([1], pa.int8()), "region": ["EU"], "amount": ["1"], "note": ["a"]})
    path = leaf(tmp_path, "EU", table)
    namespace.append(rows(spark, "(2, 'EU', 5, 'x')"))
    assert lance.dataset(path).to_table()["amount"].to_pylist() == ["1", "5"]
    assert [row[:3] for row in told(namespace)] == [(1, "EU", 1), (2, "EU", 5)]
    with pytest.raises(penstock.InvalidError, match=r"(?s)column id.*n\$region=EU.*300"):
        namespace.append(rows(spark, "(300, 'EU', 5, 'x')"))
    with pytest.raises(penstock.InvalidError, match=r"column amount.* takes bigint.*gives array"):
        namespace.append(rows(spark, "(3, 'EU', array(1), 'x')"))
    with pytest.raises(penstock.InvalidError, match="column id: the value 99999999999 does not fit int"):
        namespace.append(rows(spark, "(99999999999, 'EU', 1, 'x')"))
    assert len(told(namespace)) == 2


def test_evolution_leaves_old_leaves_as_they_are(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    first = namespace.append(rows(spark, "(1, 'EU', 10, 'a'), (2, 'US', 20, 'b')"))
    versions = {path: lance.dataset(path).version for path in listed_leaves(tmp_path, "n").values()}
    namespace.rename_column("amount", "total")
    namespace.rename_column("region", "land")
    namespace.drop_column("note")
    namespace.add_column("note STRING")
    namespace.add_column(pa.field("amount", pa.list_(pa.float32(), 2)))
    namespace.set_type("id", "BIGINT")
    assert {path: lance.dataset(path).version for path in versions} == versions
    assert namespace.read().columns == ["id", "land", "total", "note", "amount"]
    assert dict(namespace.read().dtypes)["id"] == "bigint"
    assert told(namespace) == [(1, "EU", 10, None, None), (2, "US", 20, None, None)]
    assert namespace.explain("land = 'EU'").kept == 1
    assert namespace.read().where("total = 20").collect()[0].land == "US"
    assert sorted(map(tuple, namespace.read(version=first).collect())) == [(1, "EU", 10, "a"), (2, "US", 20, "b")]
    new = rows(spark, f"({2**40}, 'FR', 30, 'c', array(1.5, 2.5))", "id, land, total, note, amount")
    namespace.append(new)
    assert (2**40, "FR", 30, "c", [1.5, 2.5]) in told(namespace)
    assert set(listed_leaves(tmp_path, "n")) == {"n$region=EU", "n$region=US", "n$region=FR"}
    with pytest.raises(penstock.InvalidError, match="has no column 'note'"):
        namespace.append(new.replace("FR", "EU", "land"))
    namespace.align()
    namespace.append(new.replace("FR", "EU", "land"))
    assert len(told(namespace)) == 4
    assert {tuple(lance.dataset(path).schema.names) for path in listed_leaves(tmp_path, "n").values()} == {
        ("id", "land", "total", "note", "amount")
    }


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda n: n.add_column("id INT"), "two columns called 'id'"),
        (lambda n: n.add_column("x INT NOT NULL"), "'x' cannot be NOT NULL"),
        (lambda n: n.add_column("`a.b` INT"), "cannot be called 'a.b'"),
        (lambda n: n.add_column("a INT, b INT"), "defines 2 columns"),
        (lambda n: n.add_column(pa.field("x", pa.month_day_nano_interval())), "x"),
        (lambda n: n.drop_column("region"), "'region' is partitioned by"),
        (lambda n: n.drop_column("nothing"), "no column 'nothing'; the columns are id, region, amount, note"),
        (lambda n: n.rename_column("id", "NOTE"), "two columns called 'note'"),
        (lambda n: n.rename_column("id", "_rowid"), "cannot be called '_rowid'"),
        (lambda n: n.set_type("amount", "INT"), "'amount' is int64, which int32 does not hold"),
        (lambda n: n.set_type("note", pa.int32()), "'note' is string"),
        (lambda n: n.set_type("note", "NOTYPE"), "NOTYPE"),
    ],
)
def test_changes_that_are_refused(namespace: penstock.lance.Namespace, change: Any, error: str) -> None:
    before = namespace.versions().count()
    with pytest.raises(penstock.PenstockError, match=error):
        change(namespace)
    assert namespace.versions().count() == before
