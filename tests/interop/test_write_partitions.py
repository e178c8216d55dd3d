"""Partitioned and sorted tables written from Spark: values, directories and files are those of the extension."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from interop.test_partitioned_tables import HOSTILE
from penstock import UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.storage.parquet import FileOptions, WritePlan, write_files
from support.catalogs import Catalog
from support.compare import assert_same_tables, query
from support.effort import tries
from support.reference import METADATA, quote
from support.writing import attached, data_files, ddl, leaving_nothing

# A column a type; the rows are these values side by side, then NULLs.
SOURCES = {
    "b": ("BOOLEAN", ["true", "false"]),
    "i8": ("TINYINT", ["-128", "127"]),
    "i16": ("SMALLINT", ["-32768", "5"]),
    "i32": ("INTEGER", ["-2147483648", "7"]),
    "i64": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "u8": ("UTINYINT", ["0", "255"]),
    "u16": ("USMALLINT", ["0", "65535"]),
    "u32": ("UINTEGER", ["0", "4294967295"]),
    "u64": ("UBIGINT", ["0", "18446744073709551615"]),
    "f32": ("FLOAT", ["'nan'", "0.1", "0.0"]),
    "f64": ("DOUBLE", ["'-inf'", "1e300", "0.0", "'nan'"]),
    "n4": ("DECIMAL(4,1)", ["-999.9", "0"]),
    "n18": ("DECIMAL(18,4)", ["0.0001", "-99999999999999.9999"]),
    "n38": ("DECIMAL(38,10)", ["9999999999999999999999999999.9999999999", "0.5"]),
    "t": ("VARCHAR", [text for text in HOSTILE if text != "NULL"]),
    "x": ("BLOB", [r"'\x00/=%'", "'ab'"]),
    "g": ("UUID", ["'00000000-0000-0000-0000-00000000000a'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"]),
    "d": ("DATE", ["'0001-01-01'", "'1969-12-31'", "'2024-02-29'", "'9999-12-31'"]),
    "c": ("TIME", ["'00:00:00'", "'23:59:59.999999'"]),
    "ts": ("TIMESTAMP", ["'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'2024-02-29 12:30:00'"]),
    "s": ("TIMESTAMP_S", ["'1969-12-31 23:59:59'", "'9999-12-31 23:59:59'"]),
    "ms": ("TIMESTAMP_MS", ["'1969-12-31 23:59:59.999'", "'2024-01-01 00:00:00'"]),
    "ns": ("TIMESTAMP_NS", ["'1969-12-31 23:59:59.999999999'", "'2024-01-01 00:00:00.123456789'"]),
    "tz": ("TIMESTAMPTZ", ["'1969-12-31 23:59:59.999999+00'", "'2024-01-01 00:30:00+02'"]),
}
CALENDAR = ("d", "ts", "s", "ms", "ns", "tz")
SPECS = [
    *((name,) for name in SOURCES),
    tuple(f"bucket(3, {name})" for name in SOURCES),
    *((f"year({name})", f"month({name})", f"day({name})", f"hour({name})") for name in CALENDAR),
    ("bucket(5, t)", "t", "hour(c)", "year(d)", "bucket(2, f64)", "month(ts)", "b"),
    tuple(f"{part}({name})" for part in ("day", "year") for name in CALENDAR),
]


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    """A session that is not in UTC, as partitions are."""
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.slow
def test_every_transform_of_every_type(file_catalog: Catalog, spark: SparkSession) -> None:
    """The extension's own table and one of ours, from the same rows, for every spec."""
    longest = max(len(values) for _, values in SOURCES.values())
    rows = [
        [f"({values[row]})::{kind}" if row < len(values) else "NULL" for kind, values in SOURCES.values()]
        for row in range(longest + 1)
    ]
    listed = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(rows))
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in SOURCES.items())
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "BEGIN", f"CREATE TABLE source (id INTEGER, {columns})", f"INSERT INTO source VALUES {listed}"
        )
        for number, spec in enumerate(SPECS):
            reference.execute(
                f"CREATE TABLE theirs_{number} (id INTEGER, {columns})",
                f"ALTER TABLE theirs_{number} SET PARTITIONED BY ({', '.join(spec)})",
                f"INSERT INTO theirs_{number} FROM source",
            )
        reference.execute("COMMIT")
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        source = lake.table("source")
        given = source.read(nanoseconds="long").localCheckpoint()
        with lake.transaction(), zone(spark, "America/St_Johns"):
            for number, spec in enumerate(SPECS):
                table = lake.create_table(f"ours_{number}", ddl(source.columns), partitioned_by=spec)
                table.append(given)
    with file_catalog.reference() as reference:
        for number, spec in enumerate(SPECS):
            assert data_files(reference, f"ours_{number}") == data_files(reference, f"theirs_{number}"), spec
            assert reference.value(f"SELECT count(*) FROM ours_{number}") == len(rows)
            assert not reference.rows(f"SELECT id FROM ours_{number} EXCEPT SELECT id FROM theirs_{number}")


@pytest.mark.one_catalog
def test_partitions_change_and_prune(catalog: Catalog, spark: SparkSession) -> None:
    """Files keep the spec they were written under; what was written here is left out where it cannot match."""
    with attached(catalog, spark) as lake:
        rows = spark.range(0, 40, 1, 1).selectExpr(
            "CAST(id AS INT) AS id",
            "concat('r/', id % 2) AS `re gion/=%é`",
            "date_add(DATE'2023-12-15', CAST(id AS INT)) AS day",
        )
        table = lake.create_table("t", rows.schema, partitioned_by=["`re gion/=%é`"])
        table.append(rows, distribution="none")
        table.append(rows.limit(3))  # inlined: rows in the catalog have no partition
        table.set_partitioned_by("year(day)", "bucket(4, id)")
        table.append(rows, distribution="none")
        table.rename_column("`re gion/=%é`", "region")
        table.reset_partitioned_by()
        table.append(rows, distribution="none")
        table.set_partitioned_by("region")
        table.append(rows, distribution="none")
        assert table.explain("region = 'r/1'").pruned > 0
        assert table.read().where("region = 'r/1'").count() == 81
        assert table.read().where("year(day) = 2023 AND id = 3").count() == 4
    with catalog.reference() as reference:
        found = data_files(reference, "t")
        assert ("re%20gion%2F%3D%25%C3%A9=r%2F0/", ("r/0",), 20) in found
        assert ("region=r%2F1/", ("r/1",), 20) in found
        assert sum(path.startswith("year=2023/bucket=") for path, _, _ in found) == 4
        assert ("", (), 40) in found
        if catalog.kind != "mysql":
            reference.execute(
                "DELETE FROM t WHERE id % 3 = 0",
                "CALL ducklake_flush_inlined_data('lk')",
                "CALL ducklake_merge_adjacent_files('lk')",
                "INSERT INTO t SELECT i, 'r/9', DATE '2024-01-01' FROM range(20) r(i)",
            )
    assert_same_tables(catalog, spark, "t")


@pytest.mark.compiled  # adaptive execution is what makes the files as many
@pytest.mark.slow
def test_files_are_as_many_as_the_rows_need(file_catalog: Catalog, spark: SparkSession) -> None:
    """Not tasks times partitions, unless that is asked for."""
    rows = spark.range(0, 4000, 1, 20).selectExpr("id", "DATE'2024-01-31' + CAST(id % 3 AS INT) AS d")
    unknown_size = spark.createDataFrame(rows.rdd, rows.schema)
    writes = {
        "auto": (rows, "auto", 4),  # 2 cores, 2 months
        "unknown_size": (unknown_size, "auto", 2),
        "partition": (rows, "partition", 2),
        "none": (rows, "none", 40),
        "own_coalesce": (rows.coalesce(1), "auto", 2),
        "own_repartition": (rows.repartition(5), "auto", 10),
    }
    with attached(file_catalog, spark) as lake:
        for name, (given, distribution, files) in writes.items():
            table = lake.create_table(name, rows.schema, partitioned_by=["year(d)", "month(d)"])
            table.append(given, distribution=distribution)
            assert table.files().count() == files, name
            assert table.read().exceptAll(rows).isEmpty(), name
        table = lake.create_table("unpartitioned", rows.schema)
        table.append(rows)
        assert table.files().count() == 2


@pytest.mark.slow
def test_thousands_of_partitions_in_one_task(tmp_path: Path) -> None:
    """More partitions than files may be open, in every batch: rows wait on the disk, not in memory."""
    partitions, limit = tries(2_500, 10_000), tries(2_000_000, 8_000_000)
    columns = (Column(1, "n", Type("int64"), 0), Column(2, "t", Type("varchar"), 0))
    peak = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal peak
        for start in range(0, 4 * partitions, partitions):
            numbers = range(start, start + partitions)
            texts, keys = [f"{n} " * 160 for n in numbers], [str(n % partitions) for n in numbers]
            yield pa.RecordBatch.from_arrays(list(map(pa.array, (numbers, texts, keys))), names=["n", "t", "p"])
            peak = max(peak, pa.total_allocated_bytes() - before)

    before = pa.total_allocated_bytes()
    plan = WritePlan(columns, f"{tmp_path}/", FileOptions(), partition_names=("p",))
    files = list(write_files(plan, rows(), memory_limit=limit))
    assert {file.record_count for file in files} == {4}
    assert len(files) == partitions
    assert peak < 2 * limit


SORTS: dict[str, tuple[tuple[str, ...], str]] = {
    "descending": (("f DESC NULLS FIRST", "id"), "f DESC NULLS FIRST, id"),
    "expression": (
        ("length(t) DESC", "lower(t) NULLS FIRST", "id"),
        "length(t) DESC NULLS LAST, lower(t) NULLS FIRST, id",
    ),
    "quoted": (("`odd name` ASC NULLS LAST", "id DESC"), '"odd name" NULLS LAST, id DESC'),
}


@pytest.mark.one_catalog
def test_rows_are_sorted_within_files(catalog: Catalog, spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT id, CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN double('NaN') ELSE (id * 7919) % 31 - 3.5D END AS f,"
        " CASE WHEN id % 7 = 0 THEN NULL ELSE concat(IF(id % 2 = 0, 'B', 'a'), id % 13) END AS t,"
        " CAST(DATE'2024-01-01' + CAST((id * 31) % 17 AS INT) AS DATE) AS `odd name`, id % 2 AS p"
        " FROM range(0, 60, 1, 1)"
    )
    with attached(catalog, spark) as lake:
        for name, (keys, _) in SORTS.items():
            table = lake.create_table(name, rows.schema, sorted_by=keys, partitioned_by=["p"])
            table.append(rows, distribution="none")
            table.append(rows.where("id < 9"))  # into the catalog
        lake.create_table("unsorted", rows.schema, sorted_by=["f"])
        lake.set_option("sort_on_insert", False, table="unsorted")
        lake.set_option("data_inlining_row_limit", 0, table="unsorted")
        lake.table("unsorted").append(rows, distribution="none")
    with catalog.reference() as reference:
        for name, (_, order) in SORTS.items():
            for where in ("id >= 0 AND p = 0 AND rowid < 60", "p = 1 AND rowid < 60", "rowid >= 60"):
                found = reference.rows(f"SELECT id FROM {name} WHERE {where} ORDER BY rowid")
                assert found == reference.rows(f"SELECT id FROM {name} WHERE {where} ORDER BY {order}"), (name, where)
        found = reference.rows("SELECT id FROM unsorted ORDER BY rowid")
        assert found == sorted(found)
        assert query(reference, f"FROM {METADATA}.ducklake_sort_info").rows.total() == len(SORTS) + 1


DUCKDB_SORTS = {
    "macro": "own(a)",
    "macro_of_macro": "s.outer_one(a, y := 4) DESC, a",
    "qualified": "lk.s.outer_one(a), a DESC",
    "only_duckdbs": "strftime(ts, '%d') DESC NULLS FIRST, a",
    "like_sparks": "lower(t) NULLS FIRST, a",  # a macro of the lake has the name of a function of Spark's
    "nested": "[a % 3, -a]",
}


def test_sort_keys_that_only_duckdb_knows(file_catalog: Catalog, spark: SparkSession) -> None:
    """Also with partitions, updates and numbers that cross as digits; what nobody can compute is refused by name."""
    with file_catalog.build() as reference:
        reference.execute(
            "CREATE SCHEMA s",
            "CREATE MACRO own(x) AS -x",
            "CREATE MACRO s.outer_one(x, y := 3) AS lk.own(x) % y",
            "CREATE MACRO lower(x) AS reverse(x)",
            "CREATE TABLE others AS SELECT 1 AS a",
            "CREATE MACRO far(x) AS (SELECT max(a) + x FROM lk.others)",
        )
        for name, order in (*DUCKDB_SORTS.items(), ("refused", "far(a)")):
            reference.execute(
                f"CREATE TABLE {name} (a DECIMAL(9,2), ts TIMESTAMP_NS, t VARCHAR, p INT)",
                f"ALTER TABLE {name} SET PARTITIONED BY (p)",
                f"ALTER TABLE {name} SET SORTED BY ({order})",
            )
    rows = spark.sql(
        "SELECT CAST((id * 37) % 101 AS DECIMAL(9,2)) AS a,"
        " TIMESTAMP_NTZ'2024-01-01' + make_dt_interval(CAST(id AS INT)) AS ts,"
        " IF(id % 9 = 0, NULL, concat(id % 7, 'x', id)) AS t, CAST(id % 2 AS INT) AS p FROM range(0, 80, 1, 1)"
    )
    with attached(file_catalog, spark) as lake:
        for name in DUCKDB_SORTS:
            lake.table(name).append(rows, distribution="none")
        lake.table("macro").update({"t": "'new'"}, where="a < 50")
        with leaving_nothing(
            file_catalog, lake, r"main\.refused is sorted by far\(a\).*reset_sorted_by", UnsupportedError
        ):
            lake.table("refused").append(rows)
    with file_catalog.reference() as reference:
        for name, order in DUCKDB_SORTS.items():
            for (file,) in reference.rows(f"SELECT data_file FROM ducklake_list_files('lk', '{name}')"):
                stored = f"SELECT a FROM read_parquet({quote(file)})"
                assert reference.rows(stored) == reference.rows(f"{stored} ORDER BY {order}"), (name, file)


def test_rows_over_the_inlining_limit_are_sorted_in_any_case(file_catalog: Catalog, spark: SparkSession) -> None:
    """As the documents and the extension have it: without sort_on_insert only rows of the catalog stay as they came."""
    with attached(file_catalog, spark, data_inlining_row_limit=5) as lake:
        lake.set_option("sort_on_insert", False)
        for name in ("ours", "theirs"):
            lake.create_table(name, "id BIGINT", sorted_by=["id DESC"])
        lake.table("ours").append(spark.range(0, 20, 1, 1))
        lake.table("ours").append(spark.range(30, 33, 1, 1))
    with file_catalog.reference(data_inlining_row_limit=5) as reference:
        reference.execute("INSERT INTO theirs FROM range(20)", "INSERT INTO theirs FROM range(30, 33)")
        ours, theirs = (reference.rows(f"SELECT id FROM {name} ORDER BY rowid") for name in ("ours", "theirs"))
        assert ours == theirs
        assert ours == [(id,) for id in (*reversed(range(20)), 30, 31, 32)]


def test_inlined_rows_of_a_sorted_table_are_the_extensions(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        for name in ("ours", "theirs"):
            lake.create_table(name, "id INT, t STRING", sorted_by=["t DESC"])
        lake.table("ours").append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'c'), (3, NULL), (4, 'b')"))
    with file_catalog.reference() as reference:
        reference.execute("INSERT INTO theirs VALUES (1, 'a'), (2, 'c'), (3, NULL), (4, 'b')")
        found: list[Any] = [reference.rows(f"SELECT rowid, id FROM {name}") for name in ("ours", "theirs")]
        assert found[0] == found[1]
