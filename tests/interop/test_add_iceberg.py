"""Iceberg tables whose files are linked by `Table.add_iceberg`: DuckDB and Spark show what pyiceberg reads."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from math import nan
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyspark.sql import SparkSession

from penstock.errors import InvalidError, UnsupportedError
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.writing import attached, leaving_nothing

_SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "u", UUIDType()),
    NestedField(4, "fixed", FixedType(2)),
    NestedField(5, "raw", BinaryType()),
    NestedField(6, "ts", TimestampType()),
    NestedField(7, "seen", TimestamptzType()),
    NestedField(8, "at", TimeType()),
    NestedField(9, "day", DateType()),
    NestedField(10, "amount", DecimalType(20, 2)),
    NestedField(11, "f", FloatType()),
    NestedField(12, "gone", BooleanType()),
    NestedField(13, "s", StructType(NestedField(14, "a", IntegerType()), NestedField(15, "b c", StringType()))),
    NestedField(16, "l", ListType(17, StructType(NestedField(18, "x", IntegerType())), element_required=False)),
    NestedField(19, "m", MapType(20, StringType(), 21, DoubleType(), value_required=False)),
)
_VALUES = {
    "id": [-(2**31), 0, 2**31 - 1],
    "name": ["a/b=c %20", 'it\'s "💧"', None],
    "u": [UUID(int=0).bytes, UUID(int=2**128 - 1).bytes, None],
    "fixed": [b"\x00\xff", b"ab", None],
    "raw": [b"", b"\x00\xff", None],
    "ts": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "seen": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 6, 30), None],
    "at": [time(0), time(23, 59, 59, 999999), None],
    "day": [date(1, 1, 1), date(9999, 12, 31), None],
    "amount": [Decimal("-999999999999999999.99"), Decimal("0.01"), None],
    "f": [nan, -0.0, None],
    "gone": [True, False, None],
    "s": [{"a": 1, "b c": ""}, {"a": None, "b c": None}, None],
    "l": [[{"x": 1}, None], [], None],
    "m": [[("k", nan), ("", None)], [], None],
}


@pytest.fixture
def iceberg(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/iceberg.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    return catalog


def _rows(schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array(_VALUES[field.name], _storage(field.type)).cast(field.type) for field in schema], schema)


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def test_a_table_that_evolved(file_catalog: Catalog, spark: SparkSession, iceberg: SqlCatalog) -> None:
    """Files from before a rename, promotions, and a column that was dropped and is there anew under the same name."""
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(2), "id_bucket"), PartitionField(2, 1001, IdentityTransform(), "name")
    )
    source = iceberg.create_table("n.t", _SCHEMA, partition_spec=spec)
    source.append(_rows(source.schema().as_arrow()))
    with source.update_schema() as change:
        change.rename_column("name", "title")
        change.update_column("id", LongType())
        change.update_column("f", DoubleType())
        change.update_column("amount", DecimalType(38, 2))
        change.rename_column("s.a", "renamed")
        change.delete_column("gone")
    with source.update_schema() as change:
        change.add_column("gone", StringType())
        change.add_column("label", StringType())
    source.append(
        pa.Table.from_pylist([{"id": 2**40, "title": "new", "gone": "x", "label": "y"}], source.schema().as_arrow())
    )
    with attached(file_catalog, spark) as lake:
        lake.create_table("t", source.schema().as_arrow())
        lake.table("t").add_iceberg(source)
        assert lake.table("t").files().count() == 4
        assert lake.table("t").explain("id > 2147483647").kept == 1
    with file_catalog.reference() as reference:
        reference.connection.register("expected", source.scan().to_arrow())
        names = [f'"{name}"' for name in source.schema().column_names if "." not in name]
        for one, other in (("lk.t", "expected"), ("expected", "lk.t")):
            listed = ", ".join(f"{name}::VARCHAR" for name in names)
            assert reference.rows(f"SELECT {listed} FROM {one} EXCEPT ALL SELECT {listed} FROM {other}") == []
        assert reference.value("SELECT count(gone) FROM t") == 1
    assert_same_tables(file_catalog, spark, "t")


def test_files_without_ids_and_hostile_paths(
    file_catalog: Catalog, spark: SparkSession, iceberg: SqlCatalog, tmp_path: Path
) -> None:
    """Their names say which columns they have; an empty table has no files."""
    file = tmp_path / "it's 100%, a=b" / "plain 💧.parquet"
    file.parent.mkdir()
    nested = pa.array([{"A b": 1}, None], pa.struct([("A b", pa.int64())]))
    pq.write_table(pa.table({"s": nested, "id": pa.array([1, 2]), "extra": ["x", "y"]}), file)
    schema = pa.schema([("id", pa.int64()), ("extra", pa.string()), ("s", nested.type)])
    source = iceberg.create_table("n.t", schema)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", source.schema().as_arrow())
        table.add_iceberg(source)
        assert table.files().count() == 0
        source.add_files([str(file)])
        table.add_iceberg(source)
        with leaving_nothing(file_catalog, lake, "is in main.t already"):
            table.add_iceberg(source)
    with file_catalog.reference() as reference:
        assert reference.rows('SELECT id, extra, s."A b" FROM t ORDER BY id') == [(1, "x", 1), (2, "y", None)]
    assert_same_tables(file_catalog, spark, "t")


def test_what_cannot_be_linked_is_refused(file_catalog: Catalog, spark: SparkSession, iceberg: SqlCatalog) -> None:
    source = iceberg.create_table("n.t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    source.append(pa.table({"id": [1, 2], "v": ["a", None]}))
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT, v STRING")
        other = lake.create_table("other", "id BIGINT, w STRING")
        narrow = lake.create_table("narrow", "id INT, v STRING")
        strict = lake.create_table("strict", "id BIGINT, v STRING NOT NULL")
        wide = lake.create_table("wide", "id BIGINT, v STRING, more INT")
        for each, reason in (
            (other, "the DuckLake table has no 'v'"),
            (wide, "the Iceberg table has no 'more'"),
            (narrow, "column 'id' is int32 and the file has int64, which does not fit"),
            (strict, "column 'v' is NOT NULL, and the file may hold NULLs"),
        ):
            with leaving_nothing(file_catalog, lake, reason, InvalidError):
                each.add_iceberg(source)
        with leaving_nothing(file_catalog, lake, "str is no table of pyiceberg's", InvalidError):
            table.add_iceberg("n.t")
        table.add_iceberg(source)
        assert table.read().count() == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (DataFileContent.POSITION_DELETES, "the Iceberg table n.t has delete files.*rewrite_data_files"),
        (DataFileContent.EQUALITY_DELETES, "does not yet support equality deletes.*rewrite_data_files"),
    ],
)
def test_delete_files_are_refused(
    content: DataFileContent,
    reason: str,
    file_catalog: Catalog,
    spark: SparkSession,
    iceberg: SqlCatalog,
    tmp_path: Path,
) -> None:
    """Made by hand, since pyiceberg reads them and writes none."""
    source = iceberg.create_table("n.t", pa.schema([("id", pa.int64())]))
    source.append(pa.table({"id": [1, 2]}))
    [task] = source.scan().plan_files()
    path = tmp_path / "deletes.parquet"
    pq.write_table(pa.table({"file_path": [task.file.file_path], "pos": [0]}), path)
    nothing = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    deletes = DataFile.from_args(
        content=content, file_path=str(path), file_format=FileFormat.PARQUET, partition=Record(), record_count=1,
        file_size_in_bytes=path.stat().st_size, split_offsets=[4], equality_ids=[1], **{name: {} for name in nothing},
    )  # fmt: skip
    deletes.spec_id = source.metadata.default_spec_id
    with source.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(deletes)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        with leaving_nothing(file_catalog, lake, reason, UnsupportedError):
            table.add_iceberg(source)
