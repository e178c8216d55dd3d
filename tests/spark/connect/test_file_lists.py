"""The files of a Spark Connect session: their names as Spark has them, and the records that tell of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock import UnsupportedError
from penstock.spark.connect.file_lists import FileList, _check_listed, _hadoop_path, _uri
from penstock.spark.file_records import file_records, read_records
from penstock.spark.java_classes import java_class
from penstock.storage.paths import to_uri

PATHS = [
    "/data/a b.parquet", "/data/p%3D1/x.parquet", "/data/ü🦆.parquet", "/data/x+y=z&.parquet",
    "/data/{a,b}[1]*?.parquet", "/data/q'#;@$!~().parquet", "/data/\u00a0\u2003\u2028.parquet", '/data/<>|"^.parquet',
    "/data/\x7f\x01.parquet", "/data/e\u0301.parquet", "/data/\\x.parquet",
]  # fmt: skip


@pytest.mark.parametrize("path", [*PATHS, "s3://bucket/a b/ü#1.parquet", "s3a://bucket/p%2F=1/x.parquet"])
def test_uri_as_spark_writes_it(path: str, spark: SparkSession) -> None:
    hadoop = _hadoop_path(to_uri(path))
    made = java_class(spark, "org.apache.hadoop.fs.Path")(hadoop)
    assert _uri(hadoop) == made.toUri().toString()


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map("/d/{}".format),
            st.integers(1, 2**40),
            st.lists(st.one_of(st.none(), st.integers(), st.text(st.characters(exclude_categories=["Cs"])))),
        )
    )
)
def test_records_come_back(files: list[tuple[str, int, list[object]]]) -> None:
    told = [(to_uri(path), size, [None if v is None else str(v) for v in values]) for path, size, values in files]
    assert read_records(file_records(files)) == told


def test_files_are_asked_for_once_and_by_their_filters() -> None:
    asked = []

    def planner(filters: str) -> str:
        asked.append(filters)
        return file_records([("/d/a.parquet", 1, (7, None, "ü\x1e"))])

    constants = T.StructType().add("id", T.LongType()).add("none", T.LongType()).add("text", T.StringType())
    leader = FileList(planner, constants, '[["unknown"]]')
    assert leader.files == leader.files == [("file:/d/a.parquet", (7, None, "ü\x1e"))]
    assert FileList(planner, constants).follow(leader).files == leader.files
    assert asked == ['[["unknown"]]'] * 2


@pytest.mark.parametrize("name", ["_a.parquet", ".a.parquet", "a.parquet._COPYING_"])
def test_names_that_spark_passes_over(name: str) -> None:
    with pytest.raises(UnsupportedError, match="passes over"):
        _check_listed(f"file:/data/{name}")
    _check_listed("file:/data/_x=1.parquet")
    _check_listed("file:/_data/.x/a_.parquet")
