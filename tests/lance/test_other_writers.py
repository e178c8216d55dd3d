"""What other programs do to a namespace and its leaves: no row of theirs is lost, hidden or taken for another's."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from penstock.lance.writing.adoption import adopt_leaves
from support.lance_judges import client, in_order, listed_leaves
from support.lance_writers import Writer


def foreign_leaf(root: Path, levels: list[str], rows: pa.Table) -> str:
    """A leaf as plain pylance and the namespace client make it; its path."""
    lance.write_dataset(rows, namespace_client=client(root), table_id=["n", *levels], mode="create")
    return listed_leaves(root, "n")["$".join(["n", *levels])]


def told(namespace: penstock.lance.Namespace, where: str = "true") -> list[tuple[Any, ...]]:
    return in_order(namespace.read().where(where).collect())


def test_years_from_1970_are_found_and_survive_deletes_of_old_years(spark: SparkSession, tmp_path: Path) -> None:
    namespace = penstock.lance.create(
        str(tmp_path), "n", "id INT, ts TIMESTAMP", partitioned_by=["year(ts)"], spark=spark
    )
    moment = datetime(2025, 12, 10, tzinfo=UTC)
    rows = pa.table({"id": pa.array([1], pa.int32()), "ts": pa.array([moment], pa.timestamp("us", "UTC"))})
    foreign_leaf(tmp_path, ["ts_year=55"], rows)
    namespace.append(spark.sql("SELECT 2 AS id, timestamp'0055-06-01 00:00:00' AS ts"))  # in a leaf of its own
    assert [row[0] for row in told(namespace, "ts >= '2025-01-01' AND ts < '2026-01-01'")] == [1]
    assert [row[0] for row in told(namespace, "year(ts) = 55")] == [2]
    assert namespace.explain("ts >= '2026-01-01'").kept == 0
    assert namespace.delete("ts < '1000-01-01'") is not None
    assert [row[0] for row in told(namespace)] == [1]
    assert namespace.delete("ts < '1000-01-01'") is None


def test_rows_of_a_leaf_that_lacks_its_partition_column(spark: SparkSession, tmp_path: Path) -> None:
    """They read as NULL, so a filter for the leaf's value must not delete them with it, nor one for NULL lose them."""
    namespace = penstock.lance.create(
        str(tmp_path), "n", "id INT, region STRING", partitioned_by=["region"], spark=spark
    )
    foreign_leaf(tmp_path, ["region=EU"], pa.table({"id": pa.array([1], pa.int32())}))
    assert told(namespace, "region IS NULL") == [(1, None)]
    assert namespace.delete("region = 'EU'") is None
    assert told(namespace) == [(1, None)]


def test_rows_in_the_wrong_leaf_of_another_writer_are_reported_and_moved(spark: SparkSession, tmp_path: Path) -> None:
    fields = ["region", "bucket(2, id)"]
    namespace = penstock.lance.create(str(tmp_path), "n", "id INT, region STRING", partitioned_by=fields, spark=spark)
    client(tmp_path).create_namespace(CreateNamespaceRequest(id=["n", "region=EU"]))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "region": ["EU", "US", None]})
    foreign_leaf(tmp_path, ["region=EU", "id_bucket=7"], rows)  # its buckets are its own
    [finding] = namespace.check().where("problem <> 'columns'").collect()
    assert tuple(finding)[:3] == ("n$region=EU$id_bucket=7", "misplaced rows", 1)
    assert namespace.align() is not None
    assert told(namespace, "region = 'US'") == [(2, "US")]
    assert told(namespace) == [(1, "EU"), (2, "US"), (3, None)]
    assert namespace.check().count() == 0


# Columns of our leaves that pylance changes

SCHEMA = "id INT, region STRING, b STRING"


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    found = penstock.lance.create(str(tmp_path), "n", SCHEMA, partitioned_by=["region"], spark=spark)
    found.append(spark.sql("SELECT 1 AS id, 'EU' AS region, 'old' AS b"))
    return found


def eu(root: Path) -> Any:
    """The leaf, as pylance opens it."""
    return lance.dataset(listed_leaves(root, "n")["n$region=EU"])


def test_a_column_that_pylance_retypes_stays_what_it_is(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.rename_column("b", "c")
    namespace.add_column("b STRING")
    eu(tmp_path).alter_columns({"path": "b", "data_type": pa.large_string()}, {"path": "id", "name": "number"})
    assert namespace.adopt() is not None
    assert told(namespace) == [(1, "EU", "old", None)]
    namespace.drop_column("c")
    namespace.add_column("c STRING")  # the leaf's `b` is neither of the two by now
    assert told(namespace) == [(1, "EU", None, None)]
    namespace.align()
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'x' AS b, 'y' AS c"))
    assert told(namespace) == [(1, "EU", None, None), (2, "EU", "x", "y")]


def test_a_column_that_may_be_another_by_now_is_an_error(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    leaf = eu(tmp_path)
    leaf.alter_columns({"path": "b", "name": "z", "data_type": pa.large_string()})
    with pytest.raises(penstock.InvalidError, match=r"n\$region=EU had a column 'b'.*'z'.*rename it to 'b'"):
        namespace.adopt()
    assert told(namespace) == [(1, "EU", "old")]
    leaf.alter_columns({"path": "z", "name": "b"})
    namespace.adopt()
    assert told(namespace) == [(1, "EU", "old")]
    leaf.drop_columns(["b"])  # just gone: NULL, as the specification has it
    namespace.adopt()
    assert told(namespace) == [(1, "EU", None)]


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
    assert told(namespace) == [(1, "a", None, None), (2, "a", None, None)]
    assert namespace.delete("region IS NULL OR c = 'a'") is None
    foreign_leaf(tmp_path, ["region=b"], pa.table({"region": ["b"], "c": ["its own"], "d": ["too"]}))
    assert told(namespace, "region = 'b'") == [(None, "b", "its own", "too")]
    # made anew, it is as they name it now
    lance.write_dataset(pa.table({"d": ["y"], "c": ["z"], "region": ["a"]}), leaf, mode="overwrite")
    assert told(namespace, "region = 'a'") == [(None, "a", "z", "y")]
    lance.write_dataset(rows, leaf, mode="overwrite")
    namespace.rename_column("c", "e")
    namespace.add_column("c STRING")
    assert told(namespace, "e = 'a'") == [(1, None, "a", "x", None)]
    lance.write_dataset(rows, leaf, mode="append")
    lance.write_dataset(rows, leaf, mode="append").cleanup_old_versions(timedelta(0))
    with pytest.raises(penstock.InvalidError, match=r"n\$c=a: nobody can tell.*'id', 'c', 'd'.*write it anew"):
        told(namespace)


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


# Rows that pylance adds to our leaves


def add(leaf: Any, id: int, region: str) -> None:
    rows = pa.table({"id": pa.array([id], pa.int32()), "region": [region], "b": ["theirs"]})
    lance.write_dataset(rows, leaf.uri, mode="append")


def test_rows_are_added_to_leaves_whose_columns_pylance_has_changed(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    leaf = eu(tmp_path)
    leaf.add_columns(pa.field("extra", pa.int32()))
    leaf.alter_columns({"path": "b", "data_type": pa.large_string()}, {"path": "id", "name": "number"})
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'new' AS b"))
    assert told(namespace, "region = 'EU'") == [(1, "EU", "old"), (2, "EU", "new")]
    assert eu(tmp_path).to_table().to_pylist()[1] == {"number": 2, "region": "EU", "b": "new", "extra": None}
    [finding] = namespace.check().collect()
    assert finding[:3] == ("n$region=EU", "columns", None)
    assert "extra is not the namespace's" in finding.detail
    namespace.align()
    assert namespace.check().count() == 0


def test_rows_in_the_wrong_leaf_are_reported_found_and_moved(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    add(eu(tmp_path), 2, "EU")
    with pytest.raises(penstock.ConflictError, match=r"n\$region=EU.*adopt\(\)"):
        namespace.delete("region = 'EU'")  # a row of the leaf was never seen
    assert namespace.adopt() is not None
    assert namespace.explain("region = 'US'").kept == 0
    add(eu(tmp_path), 3, "US")
    assert [row.problem for row in namespace.check().collect()] == ["not adopted"]
    with pytest.warns(UserWarning, match=r"1 rows .* leaf n\$region=EU do not belong there.*align\(\)"):
        namespace.adopt()
    assert told(namespace, "region = 'US'") == [(3, "US", "theirs")]
    assert [tuple(row[:3]) for row in namespace.check().collect()] == [("n$region=EU", "misplaced rows", 1)]
    namespace.delete("region = 'EU'")
    assert told(namespace) == [(3, "US", "theirs")]
    namespace.align()
    assert set(listed_leaves(tmp_path, "n")) == {"n$region=US"}
    assert told(namespace, "region = 'US'") == [(3, "US", "theirs")]
    assert namespace.check().count() == 0
    assert namespace.explain("region = 'EU'").kept == 0


def test_what_brings_no_values_needs_no_check(tmp_path: Path) -> None:
    """Nobody counts rows here: a compaction, an index and deletes of pylance's leave rows where they belong."""
    writer = Writer.create(tmp_path)
    for number in (1, 2, 3):
        writer.append("a", [(number, "US"), (number, "CN")])
    assert writer.compact() is not None
    theirs = lance.dataset(writer.leaf("US"))
    theirs.delete("id = 1")
    theirs.optimize.compact_files()
    theirs.create_scalar_index("id", "BTREE")
    assert adopt_leaves(writer.manifest, writer.scan(), misplaced=lambda scan: pytest.fail("counted")) is not None
    assert all(leaf.checked for leaf in writer.scan().leaves)
    assert writer.ids() == [1, 2, 2, 3, 3]
    lance.write_dataset(theirs.to_table().slice(0, 1), theirs.uri, mode="append")
    writer.append("b", [(4, "US")])
    assert [leaf.checked for leaf in writer.scan().leaves] == [True, False]
    lance.dataset(theirs.uri).optimize.compact_files()  # of a leaf with an index: pylance cannot tell what it did
    writer.append("c", [(5, "US")])
    assert writer.adopt() is not None
    assert all(leaf.checked for leaf in writer.scan().leaves)
    assert writer.ids() == [1, 2, 2, 2, 3, 3, 4, 5]


def test_an_append_adopts_rows_in_the_wrong_leaf_so_that_they_are_found(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    add(eu(tmp_path), 3, "US")
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'new' AS b"))
    assert told(namespace, "region = 'US'") == [(3, "US", "theirs")]
    namespace.delete("region = 'EU'")
    assert told(namespace) == [(3, "US", "theirs")]


# Leaves that others delete or clean up


def test_leaves_that_are_gone_are_named_and_can_be_dropped(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.append(spark.sql("SELECT 2 AS id, 'US' AS region, 'kept' AS b"))
    theirs = foreign_leaf(tmp_path, ["region=FR"], pa.table({"id": pa.array([5], pa.int32()), "region": ["FR"]}))
    client(tmp_path).declare_table(DeclareTableRequest(id=["n", "region=declared"]))
    shutil.rmtree(eu(tmp_path).uri)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU is gone.*adopt\(missing=\"drop\"\)"):
        told(namespace)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU is gone"):
        namespace.append(spark.sql("SELECT 3 AS id, 'EU' AS region, 'x' AS b"))
    assert told(namespace, "region = 'US'") == [(2, "US", "kept")]
    shutil.rmtree(theirs)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=FR is gone"):
        told(namespace, "region = 'FR'")
    assert [row.leaf for row in namespace.check().collect()] == ["n$region=EU", "n$region=FR"]
    with pytest.raises(penstock.NotFoundError, match="is gone"):
        namespace.adopt()
    assert namespace.adopt(missing="drop") is not None
    assert told(namespace) == [(2, "US", "kept")]
    assert set(listed_leaves(tmp_path, "n")) == {"n$region=US", "n$region=declared"}


def test_a_version_that_was_cleaned_up_is_named_and_the_newest_adopted(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    leaf = eu(tmp_path)
    for number in (2, 3):
        add(leaf, number, "EU")
    lance.dataset(leaf.uri).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU has no version 1 any more.*adopt\(\)"):
        told(namespace)
    assert namespace.adopt() is not None
    assert [row[0] for row in told(namespace, "region = 'EU'")] == [1, 2, 3]
    namespace.append(spark.sql("SELECT 4 AS id, 'EU' AS region, 'x' AS b"))
    assert [row[0] for row in told(namespace)] == [1, 2, 3, 4]
