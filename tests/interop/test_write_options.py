"""Options of files, set here at each scope, and seen in the files that Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock import InvalidError, NotFoundError, Table
from penstock.ducklake.model.option_values import validate_option
from support.catalogs import Catalog
from support.reference import METADATA
from support.writing import attached, leaving_nothing


def parquet_of(table: Table) -> list[pq.FileMetaData]:
    return [pq.read_metadata(row.data_file) for row in table.files().collect()]


def codec_of(table: Table) -> str:
    [found] = {footer.row_group(0).column(0).compression for footer in parquet_of(table)}
    return str(found)


def test_scopes(file_catalog: Catalog, spark: SparkSession) -> None:
    """A table's own option wins over its schema's, that over the lake's, that over the one attached with."""
    limit, rows = "data_inlining_row_limit", spark.range(0, 30, 1, 2)
    with attached(file_catalog, spark, **{limit: 2}) as lake:
        lake.create_schema("s")
        a, b, c = (lake.create_table(name, "id BIGINT") for name in ("a", "s.b", "s.c"))
        lake.set_option("parquet_compression", "zstd")
        lake.set_option("parquet_compression", "GZIP", schema="s")
        lake.set_option("parquet_compression", "brotli", table="s.c")
        with lake.transaction():
            for table in (a, b, c):
                table.append(rows)
        assert [codec_of(table) for table in (a, b, c)] == ["ZSTD", "GZIP", "BROTLI"]

        assert most_inlined(a, rows) == 2
        lake.set_option(limit, 3)
        lake.set_option(limit, 4, schema="s")
        lake.set_option(limit, 5, schema="S", table="c")
        assert [most_inlined(table, rows) for table in (a, b, c)] == [3, 4, 5]
        lake.set_option(limit, 0, table="s.c")
        assert not is_inlined(c, rows, 1)
        with pytest.raises(NotFoundError, match=r"nope\.c does not exist"):
            lake.set_option(limit, 9, schema="nope", table="c")
        with pytest.raises(NotFoundError, match="3 parts"):
            lake.set_option(limit, 9, schema="s", table="s.c")
    with file_catalog.reference() as reference:
        options = reference.rows(f"SELECT key, value, scope FROM {METADATA}.ducklake_metadata WHERE scope IS NOT NULL")
        assert ("parquet_compression", "brotli", "table") in options


def most_inlined(table: Table, rows: DataFrame) -> int:
    """The limit that holds: it is kept in the catalog, and one row more is not."""
    limit = int(table.option("data_inlining_row_limit") or 0)
    assert is_inlined(table, rows, limit)
    assert not is_inlined(table, rows, limit + 1)
    return limit


def is_inlined(table: Table, rows: DataFrame, count: int) -> bool:
    """Whether rows of two tasks are kept in the catalog."""
    made = table.append(rows.where(f"id BETWEEN {15 - count // 2} AND {14 + (count + 1) // 2}"), distribution="none")
    return str(made and made.changes_made).startswith("inlined_insert")


DATA_PAGE, DATA_PAGE_V2 = b"\x15\x00", b"\x15\x06"
SETTINGS: dict[str, dict[str, Any]] = {
    "many_groups": {"parquet_row_group_size": 1000},
    "groups_by_bytes": {"parquet_row_group_size_bytes": "16KB"},
    "second_version": {"parquet_version": 2, "parquet_compression": "uncompressed"},
    "many_files": {"target_file_size": "20KB", "parquet_row_group_size": 1000, "parquet_compression": "uncompressed"},
    "flat": {"hive_file_pattern": False},
    "each_its_own": {"per_thread_output": True},
    "fast": {"parquet_compression": "zstd", "parquet_compression_level": 1},
    "small": {"parquet_compression": "zstd", "parquet_compression_level": 22},
}


def test_each_option_is_seen_in_the_files(file_catalog: Catalog, spark: SparkSession) -> None:
    rows = spark.range(0, 10_000, numPartitions=4).selectExpr(
        "id", "concat('text ', id * 7919 % 10000) AS t", "id % 2 AS p"
    )
    with attached(file_catalog, spark) as lake:
        tables = {}
        for name, options in SETTINGS.items():
            tables[name] = lake.create_table(name, rows.schema, partitioned_by=["p"] if name == "flat" else ())
            for option, value in options.items():
                lake.set_option(option, value, table=name)
        with lake.transaction():
            for table in tables.values():
                one_task = table.name != "each_its_own"
                table.append(rows.coalesce(1) if one_task else rows, distribution="none" if one_task else "auto")
        footers = {name: parquet_of(table) for name, table in tables.items()}
        paths = [row.data_file for row in tables["flat"].files().collect()]
        versions = {name: tables[name].files().first().data_file for name in ("second_version", "fast")}

    groups = [[footer.row_group(i).num_rows for i in range(footer.num_row_groups)] for footer in footers["many_groups"]]
    assert groups == [[1000] * 10]
    [by_bytes] = footers["groups_by_bytes"]
    assert by_bytes.num_row_groups > 10
    assert len(footers["many_files"]) > 5
    assert all(footer.num_rows >= 1000 for footer in footers["many_files"])
    assert len(footers["each_its_own"]) == 4
    assert len(footers["fast"]) == 1
    assert len(paths) == 2
    assert not any("=" in Path(path).parent.name for path in paths)
    sizes = {name: footers[name][0].row_group(0).column(1).total_compressed_size for name in ("fast", "small")}
    assert sizes["small"] != sizes["fast"]
    assert (page_kind(versions["second_version"]), page_kind(versions["fast"])) == (DATA_PAGE_V2, DATA_PAGE)
    with file_catalog.reference() as reference:
        for name in SETTINGS:
            assert reference.rows(f"SELECT count(*), sum(id) FROM {name}") == [(10_000, 49_995_000)]
        assert reference.value("SELECT count(*) FROM flat WHERE p = 1") == 5000


def page_kind(path: str) -> bytes:
    """The type of a file's first data page: the first field of its header, in Thrift's compact form."""
    offset = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    return Path(path).read_bytes()[offset : offset + 2]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("parquet_compression", "lzo", "'parquet_compression' cannot be 'lzo'; it takes one of uncompressed, snappy"),
        ("parquet_compression_level", "high", "a whole number"),
        ("parquet_version", 3, "1 or 2"),
        ("parquet_row_group_size", 0, "a whole number from 1"),
        ("parquet_row_group_size_bytes", "12", "a size with its unit"),
        ("target_file_size", "large", "a size with its unit"),
        ("hive_file_pattern", "maybe", "true or false"),
        ("per_thread_output", None, "true or false"),
        ("sort_on_insert", "", "true or false"),
        ("data_inlining_row_limit", -1, "a whole number from 0"),
        ("data_path", "x", "cannot be changed"),
        ("no_such_thing", 1, "no option 'no_such_thing'; the options are"),
    ],
)
def test_values_that_an_option_does_not_take(name: str, value: object, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        validate_option(name, value)


def test_a_level_that_the_codec_does_not_know(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        lake.set_option("parquet_compression", "zstd")
        lake.set_option("parquet_compression_level", 99)
        with leaving_nothing(file_catalog, lake, "'parquet_compression_level' is 99: zstd takes 1 to 22"):
            table.append(spark.range(100))
        lake.set_option("parquet_compression", "snappy")
        table.append(spark.range(100))
        assert codec_of(table) == "SNAPPY"
