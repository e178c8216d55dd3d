"""What a filter leaves out: never a file with a match, and what Spark's reader leaves out too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import InvalidError
from penstock.explorer.duckdb_filters import filters_of
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.pruned_files import PrunedFiles, pruned_files
from penstock.explorer.queries import DuckdbQueries
from penstock.explorer.query_worker import FilterTask
from penstock.explorer.rendering import table_of
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support import effort
from support.catalogs import Catalog, DuckDBCatalog
from support.reference import Reference

COLUMNS = """i INTEGER, big BIGINT, tiny UTINYINT, huge HUGEINT, s VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ,
    sec TIMESTAMP_S, n DECIMAL(12, 2), wide DECIMAL(38, 10), f DOUBLE, r FLOAT, b BOOLEAN, u UUID,
    st STRUCT(a INTEGER, "b c" VARCHAR), "we""ird, na.me" INTEGER, l INTEGER[]"""
# A file for each: values that differ, and those that hurt.
ROWS = [
    """1, 10, 1, 1, 'Asia', '2020-01-01', '2020-01-01 00:00:00', '2020-01-01 00:00:00+00', '2020-01-01', 1.25, 1e-10,
       1.5, 1.5, true, '00000000-0000-0000-0000-000000000001', {'a': 1, 'b c': 'x'}, 1, [1]""",
    """2, 20, 2, 2, 'Europe', '1969-12-31', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59+00', '1969-12-31', -3.5,
       -1, 'NaN', 'NaN', false, 'ffffffff-0000-0000-0000-000000000001', {'a': 2, 'b c': 'y'}, 2, [2]""",
    """NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL""",
    """-5, 9223372036854775807, 255, 170141183460469231731687303715884105727, '', '9999-12-31', '9999-12-31 23:59:59',
       '9999-12-31 23:59:59+00', '9999-12-31', 9999999999.99, 1234567890123456789012345678.5, -0.0, 3e38, true,
       '80000000-0000-0000-0000-000000000001', {'a': NULL, 'b c': ''}, -5, []""",
    """100, -1, 100, -170141183460469231731687303715884105727, 'Ä😀 ''quoted"', '2024-02-29', '2024-02-29 12:34:56.789',
       '2024-02-29 12:34:56+00', '2024-02-29', 0, 0, 'inf', '-inf', NULL, '7fffffff-ffff-ffff-ffff-ffffffffffff', NULL,
       100, NULL""",
]
PREDICATES = [
    "i = 1",
    "i <> 1",
    "i < 0",
    "i BETWEEN 1 AND 2",
    "i IN (1, 100)",
    "i NOT IN (1, 100)",
    "i IN (1, NULL)",
    "NOT (i = 1)",
    "1 = i",
    "3 > i",
    "i = 1.5",
    "i > 1.5",
    "i = 1e0",
    "i = '2'",
    "i IS NULL",
    "i IS NOT NULL",
    "i IS DISTINCT FROM 1",
    "i IS NOT DISTINCT FROM NULL",
    "i = 1 OR s = 'Europe'",
    "i = 1 AND s = 'Europe'",
    "NOT (i = 1 OR s = 'Europe')",
    "big = 9223372036854775807",
    "big > 10.5",
    "big = 9223372036854775807::DOUBLE",
    "tiny > 200",
    "huge = 170141183460469231731687303715884105727",
    "huge < 0",
    "s = 'Asia'",
    "s > 'B'",
    "s LIKE 'As%'",
    "s LIKE 'A_ia'",
    "s LIKE '%a'",
    "starts_with(s, 'Eu')",
    "s ^@ ''",
    "s = ''",
    "s ILIKE 'asia'",
    "s = 'Ä😀 ''quoted\"'",
    "s IN ('Asia', 'x')",
    "lower(s) = 'asia'",
    "d = '2020-01-01'",
    "d > DATE '2000-01-01'",
    "d < '1970-01-01'",
    "d = TIMESTAMP '2020-01-01 00:00:00'",
    "d > TIMESTAMP '2020-01-01 00:00:01'",
    "year(d) = 2024",
    "year(ts) >= 2020",
    "ts >= '2020-01-01'",
    "ts < TIMESTAMP '1970-01-01'",
    "ts > now()",
    "ts > now() - INTERVAL 3 DAYS",
    "ts = 'infinity'",
    "ts::DATE = '2024-02-29'",
    "date_trunc('year', ts) = '2024-01-01'",
    "tz > '2020-01-01 00:00:00+00'",
    "tz < TIMESTAMP '1970-01-01'",
    "tz = '2020-01-01 02:00:00+02'",
    "sec = '2020-01-01'",
    "sec > '2024-01-01 00:00:00'",
    "n = 1.25",
    "n > 1",
    "n < 1.251",
    "n = 9999999999.99",
    "n = 1e0",
    "wide > 1",
    "wide = 1234567890123456789012345678.5",
    "f = 1.5",
    "f = 'NaN'",
    "f > 1000",
    "f = 0",
    "f = 'inf'",
    "isnan(f)",
    "r = 1.5",
    "r > 1e30",
    "r = 0.1",
    "b",
    "NOT b",
    "b = true",
    "b IS NULL",
    "b IS NOT TRUE",
    "u = '00000000-0000-0000-0000-000000000001'",
    "u > '80000000-0000-0000-0000-000000000000'",
    "u < '80000000-0000-0000-0000-000000000000'",
    "st.a = 1",
    "st.a IS NULL",
    "st.\"b c\" = 'y'",
    "st IS NULL",
    "st = {'a': 1, 'b c': 'x'}",
    '"we""ird, na.me" = 2',
    "l = [1]",
    "list_contains(l, 1)",
    "true",
    "false",
    "NULL",
    "1 = 0",
    "i = (SELECT max(range) FROM range(3))",
    "EXISTS (SELECT 1)",
    "i IN (SELECT range FROM range(3))",
    "CASE WHEN b THEN i = 1 END",
    "coalesce(i, 1) = 1",
    "i + 1 = 2",
    "i % 2 = 1",
    "abs(i) = 5",
    "try_cast(s AS INTEGER) = 1",
    "i = 1 -- said",
    "i::VARCHAR = '1'",
    "i::VARCHAR IN ('1', '2')",
    "big::DOUBLE = 10",
    "i::DOUBLE > 1.5",
    "n::DOUBLE > 1.2",
    "r::DOUBLE > 1.2",
    "d::TIMESTAMP > '2000-01-01'",
    "ts::TIMESTAMPTZ > '2000-01-01 00:00:00+00'",
    "tz::DATE = '2024-02-29'",
    "n::BIGINT = 1",
    "ts::TIMESTAMP_S = '2020-01-01'",
]


PARTITIONINGS = ["", "year(ts), s"] + (["s", "bucket(4, i)", "d"] if effort.is_full() else [])


@pytest.fixture(scope="module", params=PARTITIONINGS)
def varied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LakeSource:
    """A table with a file a row, under a partitioning."""
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("varied"))
    with catalog.build() as reference:
        _fill(reference, request.param)
    return LakeSource(catalog.uri)


def _fill(reference: Reference, partitioning: str) -> None:
    reference.execute("CALL lk.set_option('data_inlining_row_limit', 0)", f"CREATE TABLE t ({COLUMNS})")
    if partitioning:
        reference.execute(f"ALTER TABLE t SET PARTITIONED BY ({partitioning})")
    reference.execute(*(f"INSERT INTO t VALUES ({row})" for row in ROWS))


def found(source: LakeSource, predicate: str, **window: Any) -> PrunedFiles:
    with source.opened() as view:
        return pruned_files(view.shown, table_of(view, 1), predicate, answer=bound_here, **window)


def bound_here(task: FilterTask, seconds: float) -> Mapping[str, Any]:
    """What a process of its own would answer: there are many filters here, and each would start one."""
    try:
        return task.answer()
    except duckdb.Error as error:
        return {"error": str(error)}


def test_no_file_with_a_match_is_left_out(varied: LakeSource, tmp_path: Path) -> None:
    wrong, pruned = [], 0
    with Reference() as reference:
        reference.attach(varied.uri, read_only=True)
        for predicate in PREDICATES:
            told = found(varied, predicate)
            files = {path for (path,) in reference.rows(f"SELECT DISTINCT filename FROM t WHERE ({predicate}\n)")}
            kept = {file.path for file in told.first_kept}
            pruned += told.pruned.files
            if not files <= kept or len(kept) != told.kept.files:
                wrong.append((predicate, f"{files - kept}"))
            assert told.kept.files == sum(strip.kept for strip in told.strips)
            assert told.all.files == sum(strip.files for strip in told.strips) == len(ROWS)
    assert wrong == []
    assert pruned > 200  # of 5 files for some 100 filters


def test_what_is_understood_leaves_files_out(tmp_path: Path) -> None:
    catalog = DuckDBCatalog(tmp_path)
    with catalog.build() as reference:
        _fill(reference, "")
    kept = {
        "i = 1": 1,
        "i < 0": 1,
        "i = 1.5": 0,
        "i > 1.5": 2,
        "s LIKE 'As%'": 1,
        "d < '1970-01-01'": 1,
        "year(d) = 2024": 1,
        "ts > now() - INTERVAL 3 DAYS": 1,
        "n > 1": 2,
        "f = 'NaN'": 1,
        "u > 'f0000000-0000-0000-0000-000000000000'": 1,
        "i IS NULL": 1,
        "st.a = 1": 1,
        '"we""ird, na.me" = 2': 1,
        "false": 0,
        "i = 1 OR s = 'Europe'": 2,
        "tiny > 200": 1,
        "tz = '2020-01-01 02:00:00+02'": 1,
        "sec = '2020-01-01'": 1,
        "i IN (1, 100)": 2,
        "NOT (i = 1)": 3,
        "1 = i": 1,
    }
    source = LakeSource(catalog.uri)
    assert {predicate: found(source, predicate).kept.files for predicate in kept} == kept


def test_every_catalog_says_the_same(catalog: Catalog) -> None:
    with catalog.build() as reference:
        _fill(reference, "s")
    source = LakeSource(catalog.uri)
    told = found(source, "s = 'Asia' AND i < 50")
    assert (told.all.files, told.kept.files) == (5, 1)
    assert {reason.name for reason in told.reasons} == {"partition s", "statistics of s", "statistics of i"}
    assert [file.rows for file in told.first_kept] == [1]
    assert found(source, "i > 0", offset=1, count=1).first_kept[0].id > found(source, "i > 0", count=1).first_kept[0].id


def test_infinite_times_and_nanoseconds_before_1970_are_found(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute(
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            "CREATE TABLE t (d DATE, ts TIMESTAMP, n TIMESTAMP_NS)",
            "INSERT INTO t VALUES ('infinity', '-infinity', '1969-12-31 23:59:59.999999999')",
            "INSERT INTO t VALUES ('2020-01-01', '2020-01-01', '2020-01-01')",
        )
    source = LakeSource(file_catalog.uri)
    for predicate in (
        "year(d) IS NULL", "NOT (year(d) IS NOT NULL)", "year(ts) IS NOT DISTINCT FROM NULL",
        "year(d) IS DISTINCT FROM 2020", "n::TIMESTAMP = '1970-01-01'", "n::TIMESTAMP IN ('1970-01-01', '1999-01-01')",
        "n::DATE = '1970-01-01'",
    ):  # fmt: skip
        with source.opened() as view:
            [[count]] = DuckdbQueries(source).select(view, f"SELECT count(*) FROM t WHERE {predicate}").rows
        assert found(source, predicate).kept.files >= int(count or 0), predicate
    assert found(source, "year(d) = 2020").kept.files == 1


def test_a_filter_may_name_its_table() -> None:
    columns = [Column(1, "i", parse_type("int32"), 0)]
    plain = filters_of("i = 1", columns, bound_here)
    for name, written in (("orders", "orders"), ("orders", "Orders"), ('we"ird, na.me', '"we""ird, na.me"')):
        assert filters_of(f"{written}.i = 1", columns, bound_here, table=name) == plain


def test_times_in_files_of_others_say_nothing(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    lake.mkdir()
    elsewhere.mkdir()
    catalog = DuckDBCatalog(lake)
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (i INTEGER, ts TIMESTAMP)",
            f"COPY (SELECT 7 AS i, TIMESTAMP '2020-01-01' AS ts) TO '{elsewhere}/added.parquet'",
            f"CALL ducklake_add_data_files('lk', 't', '{elsewhere}/added.parquet')",
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            "INSERT INTO t VALUES (7, '2020-01-01')",
        )
    source = LakeSource(catalog.uri)
    assert found(source, "ts > '2021-01-01'").kept.files == 1
    assert found(source, "i > 7").kept.files == 0


def test_a_filter_that_duckdb_does_not_take_is_an_error() -> None:
    columns = [Column(1, "i", parse_type("int32"), 0)]
    for predicate in (
        "",
        "x = 1",
        "i =",
        "i = 1; DROP TABLE t",
        "sum(i) > 1",
        "read_text('/etc/passwd') = 'x'",
        "i IN (SELECT 1 FROM glob('/etc/*'))",
    ):
        with pytest.raises(InvalidError, match="DuckDB does not take this as a filter"):
            filters_of(predicate, columns, bound_here)


def test_a_constant_that_takes_too_much_says_nothing_or_is_an_error() -> None:
    columns = [Column(1, "s", parse_type("varchar"), 0)]
    with suppress(InvalidError):  # on a slow machine its time is over first
        assert filters_of("s = repeat('x', 4000000000)", columns) == ['["unknown"]']
    assert filters_of("s = 'x'", columns) == ['["=", ["column", "s"], ["literal", "string", "x"]]']


def test_filters_read_as_the_planner_takes_them() -> None:
    columns = [Column(1, "i", parse_type("int32"), 0), Column(2, "s", parse_type("varchar"), 0)]
    assert [json.loads(text) for text in filters_of("i >= 3 AND s LIKE 'a%' AND NOT s = 'b'", columns, bound_here)] == [
        [">=", ["column", "i"], ["literal", "bigint", 3]],
        ["startswith", ["column", "s"], ["literal", "string", "a"]],
        ["not", ["=", ["column", "s"], ["literal", "string", "b"]]],
    ]


@pytest.fixture(scope="module")
def attached(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[tuple[LakeSource, Any]]:
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("attached"))
    with catalog.build() as reference:
        _fill(reference, "s")
    with penstock.attach(catalog.uri, spark=spark, read_only=True) as lake:
        yield LakeSource(catalog.uri), lake.table("t")


@pytest.mark.parametrize(
    "predicate",
    [
        "i = 1",
        "i <> 1",
        "i > 1.5",
        "i IS NULL",
        "s = 'Asia'",
        "s LIKE 'As%'",
        "d > DATE '2000-01-01'",
        "n > 1",
        "f > 1000",
        "b",
        "i = 1 OR s = 'Europe'",
        "i IN (1, 100)",
        "year(d) = 2024",
        "st.a = 1",
        "s = 'Asia' AND i < 50",
    ],
)
def test_spark_leaves_out_the_same_files(attached: tuple[LakeSource, Any], predicate: str) -> None:
    source, table = attached
    explained, told = table.explain(predicate), found(source, predicate)
    assert (told.all.files, told.kept.files) == (explained.files, explained.kept)
    # Spark pushes `IS NOT NULL` beside a comparison, under the same reason.
    assert set(explained.reasons) <= {reason.name for reason in told.reasons if reason.amount.files}
