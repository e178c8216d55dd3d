"""New namespaces, and what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.lance


@pytest.mark.parametrize(
    ("name", "schema", "fields", "error"),
    [
        ("n", "a INT", [], "at least one partition field"),
        ("n", "a INT", ["b"], "no column 'b'; its columns are a"),
        ("n", "a INT", ["a", "a"], "a is there twice"),
        ("n", "a INT", ["year(a)"], "year\\(a\\): a is a int32"),
        ("n", "a INT", ["bucket(0, a)"], "bucket"),
        ("n", "a INT", ["truncate(0, a)"], "truncate"),
        ("n", "a DOUBLE", ["bucket(4, a)"], "a is a float64"),
        ("n", "a BINARY", ["a"], "a is a blob"),
        ("n", "a ARRAY<INT>", ["a"], "a is a list"),
        ("n", "a ARRAY<INT>", ["bucket(4, a)"], "a is a list"),
        ("n$$x", "a INT", ["a"], "cannot be called"),
        ("", "a INT", ["a"], "cannot be called"),
        ("n", "a INT, A INT", ["a"], "two columns called 'A'"),
        ("n", "INT", ["a"], "is a type, not a list of columns"),
        ("n", "a NOTYPE", ["a"], "is no list of columns"),
    ],
)
def test_namespaces_that_are_refused(
    spark: SparkSession, tmp_path: Path, name: str, schema: str, fields: list[str], error: str
) -> None:
    with pytest.raises(penstock.PenstockError, match=error):
        penstock.lance.create(str(tmp_path), name, schema, partitioned_by=fields, spark=spark)
    assert list(tmp_path.iterdir()) == []
