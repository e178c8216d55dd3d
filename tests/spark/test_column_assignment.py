"""Which column of a DataFrame becomes which of a table, what fills the gaps, and what is refused before it is seen."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock import InvalidError, Lake, UnsupportedError
from support.catalogs import DuckDBCatalog
from support.writing import attached, files_of, leaving_nothing

COLUMNS = (
    "id BIGINT NOT NULL, tiny TINYINT, u8 UINT8, uid UUID, dec DECIMAL(4,1), f FLOAT, js JSON, ns TIMESTAMP_NS, "
    "big INT128, day DATE, l ARRAY<STRUCT<a: TINYINT, u: UINT8>>, m MAP<STRING, SMALLINT>, s STRUCT<x: INT, y: STRING>"
)
DEFAULTS = {
    "b": "BOOLEAN DEFAULT true", "i": "INT DEFAULT -5", "u": "UINT64 DEFAULT 18446744073709551615",
    "n": "DECIMAL(38,10) DEFAULT 1.5", "f": "DOUBLE DEFAULT double('-Infinity')",
    "t": "STRING DEFAULT 'it\\'s \"NULL\"'",
    "x": "BINARY DEFAULT X'00FF'", "d": "DATE DEFAULT DATE'1969-12-31'",
    "p": "TIMESTAMP DEFAULT TIMESTAMP'2024-01-01 00:00:00 UTC'",
    "l": "TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'", "c": "TIME DEFAULT TIME'23:59:59.5'",
    "g": "UUID DEFAULT '00000000-0000-0000-0000-00000000000a'", "j": "JSON DEFAULT '[1]'", "z": "ARRAY<INT>",
    "ns": "TIMESTAMP_NS DEFAULT TIMESTAMP_NTZ'2024-01-01 00:00:00.123456'", "e": "STRING DEFAULT ''",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> DuckDBCatalog:
    return DuckDBCatalog(tmp_path_factory.mktemp("assigned"))


@pytest.fixture(scope="module")
def lake(catalog: DuckDBCatalog, spark: SparkSession) -> Iterator[Lake]:
    with attached(catalog, spark) as lake:
        for name, limit in (("filed", 0), ("inlined", 10)):
            lake.create_table(name, COLUMNS)
            lake.set_option("data_inlining_row_limit", limit, table=name)
        yield lake


def test_missing_columns_take_their_defaults(duckdb_catalog: DuckDBCatalog, spark: SparkSession) -> None:
    names = ", ".join(f"{name} {kind}" for name, kind in DEFAULTS.items())
    with attached(duckdb_catalog, spark) as lake:
        table = lake.create_table("t", f"id INT, {names}, made TIMESTAMP DEFAULT now()")
        table.append(spark.sql("SELECT 1 AS ID"), by_name=True)  # into the catalog
        table.append(spark.range(20, 40).selectExpr("CAST(id AS INT) AS id"), by_name=True)  # into a file
        rows = table.read(nanoseconds="truncate")
        assert rows.where("i = -5 AND t = 'it\\'s \"NULL\"' AND z IS NULL AND made IS NOT NULL").count() == 21
    with duckdb_catalog.reference() as reference:
        reference.execute("INSERT INTO t (id) VALUES (100)")
        columns = ", ".join(DEFAULTS)
        assert reference.value(f"SELECT count(DISTINCT ({columns})::VARCHAR) FROM t") == 1
        assert reference.value("SELECT bool_and(made BETWEEN now() - INTERVAL 1 HOUR AND now()) FROM t")


def test_columns_go_by_position_or_by_name(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("places", "a INT, `B b` STRING, c STRUCT<x: INT, y: STRING>")
    table.append(spark.sql("SELECT 1, 'one', struct(1, 'x')"))
    table.append(spark.sql("SELECT 2 AS same, 'two' AS same, named_struct('y', 'y', 'X', 2)"))
    table.append(spark.sql("SELECT named_struct('Y', 'z') AS C, '3' AS `b B`, 3 AS a").drop("b B"), by_name=True)
    table.append(spark.sql("SELECT 4S AS A, 'four' AS `b b`"), by_name=True)
    table.append(spark.sql("SELECT NULL, NULL, NULL"))
    rows = sorted(map(repr, (tuple(row) for row in table.read().collect())))
    assert rows == [
        "(1, 'one', Row(x=1, y='x'))",
        "(2, 'two', Row(x=2, y='y'))",
        "(3, None, Row(x=None, y='z'))",
        "(4, 'four', None)",
        "(None, None, None)",
    ]


@pytest.mark.parametrize(
    ("sql", "by_name", "message"),
    [
        ("SELECT 1L, 2Y", False, "has 13 columns .* the DataFrame has 2 .*by_name=True"),
        (
            "SELECT s, m, l, day, big, ns, js, f, dec, uid, u8, tiny, id FROM {table}",
            False,
            "another order.*by_name=True",
        ),
        ("SELECT 1L AS id, 2 AS nothing", True, "has no column 'nothing'; it has id, tiny"),
        ("SELECT 1L AS id, 2L AS ID", True, "two columns for 'id'"),
        (
            "SELECT 'x' AS id",
            True,
            "column id has type int64, which takes bigint, and the DataFrame gives string; cast",
        ),
        ("SELECT 1L AS id, '2024-01-01' AS day", True, "column day has type date.*string"),
        ("SELECT 1L AS id, true AS dec", True, "column dec has type decimal.*gives boolean"),
        ("SELECT 1L AS id, array(1) AS l", True, "column l.element has type struct.*gives int"),
        (
            "SELECT 1L AS id, array(named_struct('a', 1, 'q', 2)) AS l",
            True,
            "column l.element has the fields a, u.*a, q",
        ),
        ("SELECT 1L AS id, map(1, 'x') AS m", True, "column m.value has type int16.*string"),
        ("SELECT 1L AS id, struct(1) AS s", False, "has 13 columns"),
        ("SELECT 1L AS id, 1 AS s", True, "column s has type struct"),
    ],
)
def test_what_can_never_fit(
    catalog: DuckDBCatalog, lake: Lake, spark: SparkSession, sql: str, by_name: bool, message: str
) -> None:
    lake.table("filed").read(nanoseconds="truncate").createOrReplaceTempView("filed_rows")
    with leaving_nothing(catalog, lake, message):
        lake.table("filed").append(spark.sql(sql.format(table="filed_rows")), by_name=by_name)


MISFITS = {
    "300 AS tiny": "column tiny: the value 300 does not fit tinyint",
    "-1S AS u8": "'u8' .*-1",
    "256 AS u8": "'u8' .*256|column u8.*256",
    "'abc' AS uid": "'uid' .*'abc'",
    "1000.0 AS dec": "column dec: the value 1000.0 does not fit decimal",
    "1e300 AS f": "column f: the value 1.0E300 does not fit float",
    "'{{' AS js": "'js' .*'{{'",
    "timestamp_ntz'2300-01-01' AS ns": "'ns' .*2300",
    "double('NaN') AS big": "'big' .*nan",
    "array(named_struct('a', 300, 'u', 1)) AS l": "column l.element.a: the value 300",
    "array(NULL, named_struct('a', 1, 'u', 256)) AS l": "(l|element|u)'? .*256",
    "map('k', 70000) AS m": "column m.value: the value 70000",
}


@pytest.mark.parametrize("values", MISFITS)
@pytest.mark.parametrize("table", ["filed", "inlined"])
def test_values_that_do_not_fit(
    catalog: DuckDBCatalog, lake: Lake, spark: SparkSession, table: str, values: str
) -> None:
    with leaving_nothing(catalog, lake, MISFITS[values]):
        lake.table(table).append(spark.sql(f"SELECT 1L AS id, {values}"), by_name=True)


@pytest.mark.parametrize("table", ["filed", "inlined"])
def test_null_in_a_column_that_takes_none(catalog: DuckDBCatalog, lake: Lake, spark: SparkSession, table: str) -> None:
    with leaving_nothing(catalog, lake, r"'id' is NOT NULL.*such as \(id: None, tiny: 7, u8: None"):
        lake.table(table).append(spark.sql("SELECT IF(id = 1, NULL, id) AS id, 7Y AS tiny FROM range(3)"), by_name=True)
    with leaving_nothing(catalog, lake, "'id' is NOT NULL"):
        lake.table(table).append(spark.sql("SELECT 7Y AS tiny"), by_name=True)


def test_files_of_tasks_that_came_through_go_with_the_one_that_failed(
    catalog: DuckDBCatalog, lake: Lake, spark: SparkSession
) -> None:
    """Two tasks are done, and one is in the middle of its file, when the last one fails."""

    def given(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in range(batch.num_rows):
                yield batch.slice(row, 1)
                if 20 <= batch.column(0)[row].as_py() < 30:
                    time.sleep(1)

    lake.create_table("groups", "id BIGINT, tiny TINYINT")
    for option in ("data_inlining_row_limit", "parquet_row_group_size"):
        lake.set_option(option, 0 if option.startswith("data") else 1, table="groups")
    rows = spark.range(0, 40, numPartitions=4).mapInArrow(given, "id long")
    with leaving_nothing(catalog, lake, "column tiny: the value 300"):
        lake.table("groups").append(rows.selectExpr("id", "IF(id = 39, 300, 1)"), distribution="none")


def test_a_failure_inside_a_transaction_takes_back_its_statement_only(
    catalog: DuckDBCatalog, lake: Lake, spark: SparkSession
) -> None:
    table = lake.create_table("kept", "id INT, u UINT8")
    lake.set_option("data_inlining_row_limit", 0, table="kept")
    with lake.transaction():
        table.append(spark.sql("SELECT 1, 1S"))
        before = files_of(catalog)
        with pytest.raises(InvalidError):
            table.append(spark.sql("SELECT 2, -1S"))
        assert files_of(catalog) == before
    assert [tuple(row) for row in table.read().collect()] == [(1, 1)]


def test_nothing_to_add_makes_no_snapshot(lake: Lake, spark: SparkSession) -> None:
    before = lake.current_snapshot()
    for name in ("filed", "inlined"):
        assert lake.table(name).append(spark.sql("SELECT 1L AS id WHERE false"), by_name=True) == before


def test_a_variant_inside_a_struct_is_refused_before_any_work(
    catalog: DuckDBCatalog, lake: Lake, spark: SparkSession
) -> None:
    table = lake.create_table("deep", "id INT, s STRUCT<v: VARIANT>")
    failing = spark.sql("SELECT raise_error('it was run') AS id")
    with leaving_nothing(catalog, lake, "column 's' has a variant inside a struct", UnsupportedError):
        table.append(failing, by_name=True)


def test_errors_of_the_rows_themselves_are_sparks(catalog: DuckDBCatalog, lake: Lake, spark: SparkSession) -> None:
    with leaving_nothing(catalog, lake, "of their own", Exception):
        lake.table("filed").append(spark.sql("SELECT CAST(raise_error('of their own') AS BIGINT) AS id"), by_name=True)
