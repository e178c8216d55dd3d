"""Tables that creation refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.delta


@pytest.mark.parametrize(
    ("schema", "fields", "error"),
    [
        ("a INT", ["a"], "needs a column that it is not partitioned by"),
        ("a INT, b INT", ["c"], "no column 'c' to partition by; it has a, b"),
        ("a INT, b INT", ["a", "a"], "a is there twice"),
        ("a INT, b ARRAY<INT>", ["b"], "does not partition by array<int>"),
        ("`a b` INT, c INT", ["c"], "cannot be called 'a b'"),
        ("a INT, A INT", [], "two columns called 'a'"),
        ("a NOTYPE", [], "is no list of columns"),
        ("a TIME(6)", [], r"column 'a' is a time\(6\), which Delta has no type for"),
        ("a ARRAY<STRUCT<b: TIME>>", [], r"column 'a.element.b' is a time\(6\), which Delta"),
        ("a MAP<STRING, VARCHAR(3)>", [], r"column 'a.value' is a varchar\(3\) inside another type"),
    ],
)
def test_tables_that_are_refused(
    spark: SparkSession, tmp_path: Path, schema: str, fields: list[str], error: str
) -> None:
    with pytest.raises(penstock.PenstockError, match=error):
        penstock.delta.create(str(tmp_path / "t"), schema, partitioned_by=fields, spark=spark)
    assert not (tmp_path / "t").exists()
