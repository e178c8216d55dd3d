"""Tables that are made of Parquet files by others: their columns, and their rows linked or copied."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import AlreadyExistsError, InvalidError, UnsupportedError
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.reference import quote
from support.writing import attached, data_files, leaving_nothing

_NS = pa.timestamp("ns")


def _write(file: Path, columns: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def _sales(folder: Path) -> None:
    """Files that grew up: wider types later, hive directories, names that hurt."""
    struct = pa.array([{"A": 1, "b c": "it's"}, None], pa.struct([("A", pa.int16()), ("b c", pa.string())]))
    wider = pa.array(
        [{"A": 2**40, "b c": ""}, {"A": None, "b c": None}], pa.struct([("A", pa.int64()), ("b c", pa.string())])
    )
    for day, region in (("1969-12-31", "it's 💧 %25"), ("2024-02-29", "__HIVE_DEFAULT_PARTITION__")):
        _write(folder / f"day={day}" / f"region={region}" / "part=007" / "old.parquet", {
            "id": pa.array([1, -2], pa.int32()), "f": pa.array([nan, -0.0], pa.float32()), "s": struct,
            "amount": pa.array([Decimal("-1.5"), None], pa.decimal128(4, 1)), "u": pa.array([0, 255], pa.uint8()),
            "ns": pa.array([-1, None], pa.int64()).cast(_NS), "l": pa.array([[1, None], []], pa.list_(pa.int8())),
            "SELECT \"x\"": ["", None],
        })  # fmt: skip
        _write(folder / f"day={day}" / f"region={region}" / "part=008" / "new 100%.parquet", {
            "id": pa.array([2**40, None], pa.int64()), "f": pa.array([1e300, None], pa.float64()), "s": wider,
            "amount": pa.array([Decimal("12345.678"), None], pa.decimal128(8, 3)),
            "u": pa.array([-1, None], pa.int16()),
            "ns": pa.array([2**62, None], pa.int64()).cast(_NS), "l": pa.array([[2**40], None], pa.list_(pa.int64())),
            "SELECT \"x\"": ["💧", None],
        })  # fmt: skip


def test_linked_and_copied(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB reads the files, and finds the same rows in both tables."""
    folder = tmp_path / "sales"
    _sales(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    pattern = f"{folder}/*/*/*/*.parquet"
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        linked = lake.create_table_from_files("linked", pattern, partitioned_by=["day", "part"], comment="it's")
        copied = lake.create_table_from_files(
            "copied", str(folder), copy=True, partitioned_by=["part"], sorted_by=["id"]
        )
        assert [(column.name, str(column.type)) for column in linked.columns] == [
            ("id", "int64"), ("f", "float64"), ("s", "struct"), ("amount", "decimal(8,3)"), ("u", "int16"),
            ("ns", "timestamp_ns"), ("l", "list"), ('SELECT "x"', "varchar"), ("day", "date"), ("region", "varchar"),
            ("part", "varchar"),
        ]  # fmt: skip
        assert copied.columns[2].children[0].type.name == copied.columns[6].children[0].type.name == "int64"
        assert linked.comment == "it's"
    with file_catalog.reference() as reference:
        # DuckDB reads the file's own types unless it is told to put them together.
        read = f"read_parquet({quote(pattern)}, union_by_name = true, hive_types = {{part: VARCHAR}})"
        names = 'id, f, s, amount, u, ns, l, "SELECT ""x""", day, region, part'
        expected = f"SELECT {names} FROM {read}"
        for table in ("linked", "copied"):
            found = f"SELECT {names} FROM {table}"
            assert reference.rows(f"({found}) EXCEPT ALL ({expected})") == []
            assert reference.rows(f"({expected}) EXCEPT ALL ({found})") == []
        parts = [(day, part) for day in ("1969-12-31", "2024-02-29") for part in ("007", "008")]
        assert sorted(file[1:] for file in data_files(reference, "linked")) == [(part, 2) for part in parts]
        assert {values for _, values, _ in data_files(reference, "copied")} == {("007",), ("008",)}
    assert_same_tables(file_catalog, spark, "linked", "copied")
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before


def test_columns_that_some_files_lack(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    first, second, empty = (tmp_path / "lake of files" / f"{name}.parquet" for name in "abc")
    _write(first, {"id": [1], "a": ["x"]})
    _write(second, {"ID": [2], "b": [date(1970, 1, 1)]})
    _write(empty, {"id": pa.array([], pa.int64()), "s": pa.array([], pa.struct([("x", pa.int32())]))})
    folder = str(first.parent)
    with attached(file_catalog, spark) as lake:
        with leaving_nothing(file_catalog, lake, f"{first} has a column 'a' and {second} has not; allow_missing=True"):
            lake.create_table_from_files("t", folder)
        table = lake.create_table_from_files("t", folder, allow_missing=True)
        copied = lake.create_table_from_files("copied", folder, allow_missing=True, copy=True)
        assert [column.name for column in table.columns] == ["id", "a", "b", "s"]
        rows = [(1, "x", None, None), (2, None, date(1970, 1, 1), None)]
        assert sorted(table.read().collect()) == sorted(copied.read().collect()) == rows
        with lake.transaction():
            lake.create_table_from_files("later", [str(first)], copy=True).append([(3, "y")])
            assert lake.table("later").read().count() == 2


def test_errors_name_the_files(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    one, other, text = tmp_path / "1" / "a.parquet", tmp_path / "1" / "b.parquet", tmp_path / "2" / "text.parquet"
    time, hive, flat = tmp_path / "3" / "t.parquet", tmp_path / "4" / "x=1" / "a.parquet", tmp_path / "4" / "b.parquet"
    _write(one, {"id": [1], "s": pa.array([{"x": 1}])})
    _write(other, {"id": [2], "s": pa.array([{"x": "text"}])})
    text.parent.mkdir()
    text.write_text("id\n1\n")
    _write(time, {"at": pa.array([1], pa.time32("ms"))})
    _write(hive, {"id": [1]})
    _write(flat, {"id": [1]})
    with attached(file_catalog, spark) as lake:
        lake.create_table("taken", "id INT")
        cases: list[tuple[Any, dict[str, Any], str, type[Exception]]] = [
            (f"{tmp_path}/1", {}, f"column 's.x' is int64 in {one} and varchar in {other}", InvalidError),
            (f"{tmp_path}/2", {}, f"{text} cannot be read as Parquet", InvalidError),
            (f"{tmp_path}/3", {}, f"column 'at' of {time} is .*, which DuckLake cannot show", UnsupportedError),
            (f"{tmp_path}/4", {}, f"{hive} is not|{flat} is not", InvalidError),
            (f"{tmp_path}/none/*.parquet", {}, "no Parquet file by that pattern", InvalidError),
            (str(one), {"partitioned_by": ["nope"]}, "nope", Exception),
            ([], {}, "there are no files to make t of", InvalidError),
            ("", {}, "a path is empty", InvalidError),
            ([one, ""], {}, "a path is empty", InvalidError),
            (5, {}, "5 has no paths of files", InvalidError),
        ]
        for paths, options, reason, error in cases:
            with leaving_nothing(file_catalog, lake, reason, error):
                lake.create_table_from_files("t", paths, **options)
        with leaving_nothing(file_catalog, lake, "already exists", AlreadyExistsError):
            lake.create_table_from_files("taken", str(one))
        assert lake.create_table_from_files("t", tmp_path / "4", hive_partitioning=False).read().count() == 2


def test_units_of_time_are_kept(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Linked or copied, no digit is lost: nanoseconds go with nothing else, in whatever order."""
    files = {unit: str(tmp_path / f"{unit}.parquet") for unit in ("ms", "us", "ns")}
    for unit, path in files.items():
        _write(Path(path), {"at": pa.array([1, None], pa.int64()).cast(pa.timestamp(unit))})
    with attached(file_catalog, spark) as lake:
        for pair, copy in ((("us", "ns"), False), (("ns", "us"), True), (("ms", "ns"), False), (("ns", "ms"), False)):
            one, other = (files[unit] for unit in pair)
            with leaving_nothing(file_catalog, lake, f"column 'at' is .* in {one} and .* in {other}"):
                lake.create_table_from_files("t", [one, other], copy=copy)
        for name, pair in (("up", ("ms", "us")), ("down", ("us", "ms"))):
            table = lake.create_table_from_files(name, [files[unit] for unit in pair])
            assert [str(column.type) for column in table.columns] == ["timestamp"]
    with file_catalog.reference() as reference:
        shown = [("1970-01-01 00:00:00.000001",), ("1970-01-01 00:00:00.001",), (None,), (None,)]
        for name in ("up", "down"):
            assert reference.rows(f"SELECT t.at::VARCHAR FROM {name} AS t ORDER BY ALL") == shown


def test_directories_that_name_a_column_twice(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB finds the same values, after a compaction too, and refuses what Penstock refuses."""
    twice, odd = tmp_path / "twice", tmp_path / "odd"
    for number in (1, 2):
        _write(twice / f"k={number}" / "K=3" / "a.parquet", {"id": [number]})
    _write(odd / "k=a%2Fb %25=c" / "a.parquet", {"id": [3]})
    file = str(odd / "k=a%2Fb %25=c" / "a.parquet")
    with attached(file_catalog, spark) as lake:
        table = lake.create_table_from_files("twice", str(twice))
        assert sorted(table.read().collect()) == [(1, 1), (2, 2)]
        assert [column.name for column in lake.create_table_from_files("odd", str(odd)).columns] == ["id"]
        with leaving_nothing(file_catalog, lake, "column 'k' of the table is not in the file"):
            table.add_files(file)
    assert_same_tables(file_catalog, spark, "twice", "odd")
    with file_catalog.reference() as reference, pytest.raises(duckdb.Error, match="k"):
        reference.execute(f"CALL ducklake_add_data_files('lk', 'twice', {quote(file)}, hive_partitioning => true)")
    with attached(file_catalog, spark) as lake:
        lake.table("twice").merge_adjacent_files()
    assert_same_tables(file_catalog, spark, "twice")


def test_times_of_spark(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own files, which say INT96 for a timestamp if they are asked to."""
    folder = tmp_path / "spark"
    rows = [(1, datetime(2024, 2, 29, 12)), (2, None)]
    spark.createDataFrame(rows, "id INT, ts TIMESTAMP").coalesce(1).write.parquet(str(folder))
    with attached(file_catalog, spark) as lake:
        table = lake.create_table_from_files("t", str(folder))
        assert [str(column.type) for column in table.columns] in (["int32", "timestamptz"], ["int32", "timestamp"])
        assert sorted(table.read().collect()) == rows
    assert_same_tables(file_catalog, spark, "t")
