"""What other programs do to a namespace and its leaves: no row of theirs is lost, hidden or taken for another's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from lance_judges import client, in_order, listed_leaves


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
