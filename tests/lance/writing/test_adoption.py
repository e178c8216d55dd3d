"""What other programs write to leaves, or delete of them: it is adopted or reported, and no row of theirs is lost."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from penstock.lance.writing.adoption import adopt_leaves
from support.lance_foreign import append_row, foreign_leaf, namespace_with_leaf, pylance_leaf, rows_where
from support.lance_judges import client, listed_leaves
from support.lance_writers import Writer


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    return namespace_with_leaf(spark, tmp_path)


def test_rows_in_the_wrong_leaf_of_another_writer_are_reported_and_moved(spark: SparkSession, tmp_path: Path) -> None:
    fields = ["region", "bucket(2, id)"]
    namespace = penstock.lance.create(str(tmp_path), "n", "id INT, region STRING", partitioned_by=fields, spark=spark)
    client(tmp_path).create_namespace(CreateNamespaceRequest(id=["n", "region=EU"]))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "region": ["EU", "US", None]})
    foreign_leaf(tmp_path, ["region=EU", "id_bucket=7"], rows)  # its buckets are its own
    [finding] = namespace.check().where("problem <> 'columns'").collect()
    assert tuple(finding)[:3] == ("n$region=EU$id_bucket=7", "misplaced rows", 1)
    assert namespace.align() is not None
    assert rows_where(namespace, "region = 'US'") == [(2, "US")]
    assert rows_where(namespace) == [(1, "EU"), (2, "US"), (3, None)]
    assert namespace.check().count() == 0


def test_rows_in_the_wrong_leaf_are_reported_found_and_moved(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    append_row(pylance_leaf(tmp_path), 2, "EU")
    with pytest.raises(penstock.ConflictError, match=r"n\$region=EU.*adopt\(\)"):
        namespace.delete("region = 'EU'")  # a row of the leaf was never seen
    assert namespace.adopt() is not None
    assert namespace.explain("region = 'US'").kept == 0
    append_row(pylance_leaf(tmp_path), 3, "US")
    assert [row.problem for row in namespace.check().collect()] == ["not adopted"]
    with pytest.warns(UserWarning, match=r"1 rows .* leaf n\$region=EU do not belong there.*align\(\)"):
        namespace.adopt()
    assert rows_where(namespace, "region = 'US'") == [(3, "US", "theirs")]
    assert [tuple(row[:3]) for row in namespace.check().collect()] == [("n$region=EU", "misplaced rows", 1)]
    namespace.delete("region = 'EU'")
    assert rows_where(namespace) == [(3, "US", "theirs")]
    namespace.align()
    assert set(listed_leaves(tmp_path, "n")) == {"n$region=US"}
    assert rows_where(namespace, "region = 'US'") == [(3, "US", "theirs")]
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
    append_row(pylance_leaf(tmp_path), 3, "US")
    namespace.append(spark.sql("SELECT 2 AS id, 'EU' AS region, 'new' AS b"))
    assert rows_where(namespace, "region = 'US'") == [(3, "US", "theirs")]
    namespace.delete("region = 'EU'")
    assert rows_where(namespace) == [(3, "US", "theirs")]


def test_leaves_that_are_gone_are_named_and_can_be_dropped(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.append(spark.sql("SELECT 2 AS id, 'US' AS region, 'kept' AS b"))
    theirs = foreign_leaf(tmp_path, ["region=FR"], pa.table({"id": pa.array([5], pa.int32()), "region": ["FR"]}))
    client(tmp_path).declare_table(DeclareTableRequest(id=["n", "region=declared"]))
    shutil.rmtree(pylance_leaf(tmp_path).uri)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU is gone.*adopt\(missing=\"drop\"\)"):
        rows_where(namespace)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU is gone"):
        namespace.append(spark.sql("SELECT 3 AS id, 'EU' AS region, 'x' AS b"))
    assert rows_where(namespace, "region = 'US'") == [(2, "US", "kept")]
    shutil.rmtree(theirs)
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=FR is gone"):
        rows_where(namespace, "region = 'FR'")
    assert [row.leaf for row in namespace.check().collect()] == ["n$region=EU", "n$region=FR"]
    with pytest.raises(penstock.NotFoundError, match="is gone"):
        namespace.adopt()
    assert namespace.adopt(missing="drop") is not None
    assert rows_where(namespace) == [(2, "US", "kept")]
    assert set(listed_leaves(tmp_path, "n")) == {"n$region=US", "n$region=declared"}


def test_a_version_that_was_cleaned_up_is_named_and_the_newest_adopted(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    leaf = pylance_leaf(tmp_path)
    for number in (2, 3):
        append_row(leaf, number, "EU")
    lance.dataset(leaf.uri).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(penstock.NotFoundError, match=r"leaf n\$region=EU has no version 1 any more.*adopt\(\)"):
        rows_where(namespace)
    assert namespace.adopt() is not None
    assert [row[0] for row in rows_where(namespace, "region = 'EU'")] == [1, 2, 3]
    namespace.append(spark.sql("SELECT 4 AS id, 'EU' AS region, 'x' AS b"))
    assert [row[0] for row in rows_where(namespace)] == [1, 2, 3, 4]
