"""Rows of files are numbered by a class of ours in place of Spark's, which makes objects of every number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.spark.java_classes import class_loader, java_class
from penstock.spark.stores import KNOWN_FILES

pytestmark = pytest.mark.compiled
_DATASOURCES = "org.apache.spark.sql.execution.datasources"
ROWS = 50_000


def _field(spark: SparkSession, owner: str, name: str) -> Any:
    found = java_class(spark, "java.lang.Class").forName(owner).getDeclaredField(name)
    found.setAccessible(True)
    return found


def test_it_takes_the_place_of_sparks(spark: SparkSession) -> None:
    """What it relies on of Spark is there: else rows would be numbered as before, unnoticed."""
    reader_class = f"{_DATASOURCES}.parquet.VectorizedParquetRecordReader"
    reader = java_class(spark, reader_class)(False, 100)
    rows = java_class(spark, f"{_DATASOURCES}.RecordReaderIterator")(reader)
    generator = _field(spark, reader_class, "rowIndexGenerator")
    numbers = class_loader(spark, "penstock.spark.java", KNOWN_FILES).loadClass("penstock.RowNumbers")
    install = next(method for method in numbers.getMethods() if method.getName() == "install")

    def installed(place: int) -> object:
        arguments = spark.sparkContext._gateway.new_array(java_class(spark, "java.lang.Object"), 2)  # type: ignore[union-attr]
        arguments[0], arguments[1] = rows, place
        install.invoke(None, arguments)
        return generator.get(reader)

    assert installed(0) is None  # nobody wants numbers
    generator.set(reader, java_class(spark, f"{_DATASOURCES}.parquet.ParquetRowIndexUtil$RowIndexGenerator")(0))
    made: Any = installed(0)
    assert made.getClass().getName() == "penstock.RowNumbers"


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_numbers_are_those_of_the_file(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    """Over many row groups and pages, some of which a filter skips, and in splits."""
    pq.write_table(
        pa.table({"id": pa.array(range(ROWS)), "name": [f"row {i % 7}" for i in range(ROWS)]}),
        tmp_path / "rows.parquet", row_group_size=9_000, data_page_size=4_000, write_page_index=True,
        use_dictionary=False, write_batch_size=500,
    )  # fmt: skip
    own = spark.newSession()
    own.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    own.conf.set("spark.sql.files.maxPartitionBytes", "90000")
    with penstock.attach(f"ducklake:sqlite:{tmp_path}/l.sqlite", data_path=f"{tmp_path}/data/", spark=own) as lake:
        table = lake.create_table("t", "id BIGINT, name STRING")
        table.add_files(str(tmp_path / "rows.parquet"))
        table.delete("id % 10 = 3")
        table.update({"name": "'changed'"}, where="id BETWEEN 20100 AND 20900 OR id > 49000")
        found = {row.id: row.name for row in table.read().where("id >= 20000").collect()}
        assert set(found) == {i for i in range(20000, ROWS) if i % 10 != 3}
        changed = {i for i, name in found.items() if name == "changed"}
        assert changed == {i for i in found if 20100 <= i <= 20900 or i > 49000}
        assert all(name == f"row {i % 7}" for i, name in found.items() if i not in changed)
