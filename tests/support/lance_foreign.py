"""What other programs do to a namespace called `n`, with pylance and the namespace client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

import penstock.lance
from support.lance_judges import client, in_order, listed_leaves

SCHEMA = "id INT, region STRING, b STRING"


def namespace_with_leaf(spark: SparkSession, root: Path) -> penstock.lance.Namespace:
    """A namespace of ours with one row in a leaf, region=EU."""
    found = penstock.lance.create(str(root), "n", SCHEMA, partitioned_by=["region"], spark=spark)
    found.append(spark.sql("SELECT 1 AS id, 'EU' AS region, 'old' AS b"))
    return found


def rows_where(namespace: penstock.lance.Namespace, where: str = "true") -> list[tuple[Any, ...]]:
    """The rows that pass a filter, in order."""
    return in_order(namespace.read().where(where).collect())


def pylance_leaf(root: Path) -> Any:
    """The leaf region=EU, as pylance opens it."""
    return lance.dataset(listed_leaves(root, "n")["n$region=EU"])


def foreign_leaf(root: Path, levels: list[str], rows: pa.Table) -> str:
    """A leaf as plain pylance and the namespace client make it; its path."""
    lance.write_dataset(rows, namespace_client=client(root), table_id=["n", *levels], mode="create")
    return listed_leaves(root, "n")["$".join(["n", *levels])]


def append_row(leaf: Any, id: int, region: str) -> None:
    """Add a row to a leaf, whether it belongs there or not."""
    rows = pa.table({"id": pa.array([id], pa.int32()), "region": [region], "b": ["theirs"]})
    lance.write_dataset(rows, leaf.uri, mode="append")
