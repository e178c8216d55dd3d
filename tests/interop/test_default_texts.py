"""Defaults: written as the extension writes them, understood by it, and its own put in by Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock.ducklake.model.column_defaults import with_default
from penstock.ducklake.model.schema_evolution import column_rows
from penstock.ducklake.reading.row_conversion import Reading
from penstock.ducklake.writing.insert_defaults import default_expression, default_of
from penstock.ducklake.writing.table_schemas import new_table
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.catalogs import Catalog
from support.compare import assert_contents, query
from support.reference import METADATA, Reference, quote

# Type for Spark, type for DuckDB, and defaults that both write alike.
ALIKE = [
    ("BOOLEAN", "BOOLEAN", ["true", "false", "'t'", "NULL"]),
    ("TINYINT", "TINYINT", ["-5", "'7'"]),
    ("INT", "INTEGER", ["5", "5.0", "1e2"]),
    ("BIGINT", "BIGINT", ["9223372036854775807", "-9223372036854775807"]),
    ("UINT64", "UBIGINT", ["18446744073709551615"]),
    ("INT128", "HUGEINT", ["'170141183460469231731687303715884105727'"]),
    ("FLOAT", "FLOAT", ["1.5", "'nan'", "1e30"]),
    ("DOUBLE", "DOUBLE", ["1", "0.1", "1e300", "-0.0", "'-inf'"]),
    ("DECIMAL(5,2)", "DECIMAL(5,2)", ["1.5", "1", "'-1.5'", "1.555"]),
    ("DECIMAL(38,10)", "DECIMAL(38,10)", ["12345678901234567890.5"]),
    ("STRING", "VARCHAR", ["''", "'none'", "'null'", "5", "1.50", "'%/= 😀 \"q\"'"]),
    ("BINARY", "BLOB", ["'ab'", "''"]),
    ("DATE", "DATE", ["'2024-01-01'", "'0001-01-01'", "'9999-12-31'"]),
    ("TIMESTAMP_NTZ", "TIMESTAMP", ["'1969-12-31 23:59:59.999999'", "now()"]),
    ("TIMESTAMP", "TIMESTAMPTZ", ["'2024-01-01 01:02:03+02'", "now()", "current_timestamp"]),
    ("TIMESTAMP_NS", "TIMESTAMP_NS", ["'2024-01-01 00:00:00.123456789'"]),
    ("TIME", "TIME", ["'01:02:03.5'"]),
    ("TIMETZ", "TIMETZ", ["'01:02:03+02'"]),
    ("INTERVAL", "INTERVAL", ["'1 month 2 days 03:00:00.5'"]),
    ("UUID", "UUID", ["'2b1e4c3e-7f7e-4bfc-9a2a-1b6a6d1b1f11'", "uuid()", "gen_random_uuid()"]),
    ("JSON", "JSON", ["'{\"a\": [1, null]}'"]),
    ("GEOMETRY", "GEOMETRY", ["'POINT(1 2)'"]),
    ("VARIANT", "VARIANT", ["'x'", "NULL"]),
]
# Constants that DuckDB's parser would keep as expressions, or does not know: they are kept as their values.
EVALUATED = [
    ("a BOOLEAN", "BOOLEAN", "true", "true"),
    ("b DATE", "DATE", "DATE '1969-12-31'", "DATE '1969-12-31'"),
    ("c STRING", "VARCHAR", "'it\\'s \\\\ ' || upper('x')", "'it''s \\ X'"),
    ("d BINARY", "BLOB", "X'AA0062'", "'\\xAA\\x00b'::BLOB"),
    ("e BIGINT", "BIGINT", "5L + 1", "6::BIGINT"),
    ("f STRING", "VARCHAR", "'NULL'", "'NULL'"),
    ("g INT", "INTEGER", "true", "1"),
    ("h TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMPTZ '2024-01-01 00:00:00+00'"),
    ("i STRING", "VARCHAR", "'a\\nb'", "E'a\\nb'"),
    ("j DOUBLE", "DOUBLE", "double('NaN')", "'nan'::DOUBLE"),
]
DEFAULTS = "initial_default, default_value, default_value_type, default_value_dialect"


def test_the_catalog_says_what_the_extension_says(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    pairs = [(kinds, text) for *kinds, texts in ALIKE for text in texts]
    ours = ", ".join(f"c{n} {kind} DEFAULT {text}" for n, ((kind, _), text) in enumerate(pairs))
    theirs = ", ".join(f"c{n} {kind} DEFAULT {text}" for n, ((_, kind), text) in enumerate(pairs))
    with duckdb_catalog.build() as reference:
        reference.execute(f"CREATE TABLE t ({theirs})")
        expected = reference.rows(
            f"SELECT column_name, column_type, {DEFAULTS} FROM {METADATA}.ducklake_column ORDER BY column_id"
        )
    rows = column_rows(new_table(spark, ours).columns)
    actual = [
        (r.name, r.type, r.initial_default, r.default_value, r.default_value_type, r.default_value_dialect)
        for r in rows
    ]
    assert actual == expected


def test_inserts_from_spark_take_the_extensions_defaults(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    # Without what changes, and without the number that the extension cannot read back.
    texts = [(kind, text) for _, kind, texts in ALIKE for text in texts if not text.endswith(("()", "p", "27'"))]
    texts += [("BOOLEAN", "1 < 2"), ("INTEGER", "CAST(5 AS INTEGER) + 1"), ("INTERVAL", "INTERVAL 1 MONTH")]
    with duckdb_catalog.build() as reference:
        reference.execute(f"CREATE TABLE t ({', '.join(f'c{n} {k} DEFAULT {d}' for n, (k, d) in enumerate(texts))})")
        reference.execute("INSERT INTO t DEFAULT VALUES")
        assert_contents(_inserted(spark, _columns(reference)), query(reference, "FROM t"))


def test_the_extension_inserts_our_defaults(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1)")
        for definition, kind, _, _ in EVALUATED:
            reference.execute(f"ALTER TABLE t ADD COLUMN {definition[0]} {kind}")
        columns = _columns(reference)
    for column, (_, _, sql, _) in zip(columns[1:], EVALUATED, strict=True):
        default = default_of(spark, column, sql, existing_rows=True)
        duckdb_catalog.tamper(
            f"UPDATE ducklake_column SET initial_default = {quote(default.initial or '')},"
            f" default_value = {quote(default.value)}, default_value_type = '{default.kind}'"
            f" WHERE column_name = '{column.name}'"
        )
    with duckdb_catalog.reference() as reference:
        reference.execute("INSERT INTO t (id) VALUES (1)")
        expected = query(reference, f"SELECT 1 AS id, {', '.join(f'{e[3]} AS {e[0][0]}' for e in EVALUATED)}")
        rows = query(reference, "FROM t").rows
        assert set(rows) == set(expected.rows)
        assert rows.total() == 2
        assert_contents(_inserted(spark, _columns(reference)).withColumn("id", F.lit(1)), expected)


def test_expressions_that_change(spark: SparkSession) -> None:
    row = spark.range(1).select(
        *(
            F.expr(default_expression(_defaulted(spark, kind, sql)))
            .cast(Reading().shown_type(_column(kind)))
            .alias(kind)
            for kind, sql in [
                ("timestamptz", "current_timestamp()"),
                ("timestamp", "localtimestamp()"),
                ("date", "current_date()"),
                ("uuid", "gen_random_uuid()"),
                ("varchar", "uuid()"),
                ("float64", "rand()"),
            ]
        )
    )
    [values] = row.collect()
    assert abs((values.timestamptz - values.timestamp).total_seconds()) < 1
    assert values.date == values.timestamp.date()
    assert len(values.uuid) == len(values.varchar) == 36
    assert 0 <= values.float64 < 1


@pytest.mark.parametrize(
    ("kind", "sql"),
    [("int32", "'x'"), ("int8", "300"), ("int32", "no_such_function()"), ("int32", "id + 1"), ("date", "1/0")],
)
def test_defaults_that_are_refused(spark: SparkSession, kind: str, sql: str) -> None:
    with pytest.raises(InvalidError, match=r"default .* of column c"):
        default_of(spark, _column(kind), sql)


def test_what_only_duckdb_computes(spark: SparkSession) -> None:
    for kind, sql in [("timestamp", "now() + INTERVAL 1 DAY"), ("varchar", "current_timestamp"), ("int32", "random()")]:
        column = _defaulted(spark, kind, sql)
        assert column.default_value_type == "expression"
        with pytest.raises(UnsupportedError, match=r"default of column c, the duckdb expression .* give the column"):
            default_expression(column)


def test_rows_that_give_a_column_need_no_default(duckdb_catalog: Catalog, spark: SparkSession) -> None:
    """Where Spark cannot compute it, only inserts that leave the column out are refused."""
    rows = spark.sql("SELECT 1 AS id, 'x' AS c")
    with penstock.attach(duckdb_catalog.uri, data_path=duckdb_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id INT, c STRING DEFAULT version()")
        table.append(rows)
        table.append(rows.select("c", "id"), by_name=True)
        table.merge(rows.withColumn("id", F.lit(2)), "id").when_not_matched_insert().execute()
        with pytest.raises(UnsupportedError, match="give the column in the rows to insert"):
            table.append(rows.select("id"), by_name=True)
        with pytest.raises(UnsupportedError, match="give the column in the rows to insert"):
            table.merge(rows, "id").when_not_matched_insert({"id": "3"}).execute()
        with pytest.raises(InvalidError, match="no column 'other'"):
            table.append(rows.withColumnRenamed("c", "other"), by_name=True)
    with duckdb_catalog.reference() as reference:
        assert sorted(reference.rows("FROM t")) == [(1, "x"), (1, "x"), (2, "x")]


def test_columns_that_are_added_need_constants(spark: SparkSession) -> None:
    with pytest.raises(InvalidError, match="then set the default for new rows"):
        default_of(spark, _column("timestamptz"), "now()", existing_rows=True)


def _column(kind: str) -> Column:
    return Column(1, "c", parse_type(kind), 0)


def _defaulted(spark: SparkSession, kind: str, sql: str) -> Column:
    return with_default(_column(kind), default_of(spark, _column(kind), sql))


def _columns(reference: Reference) -> list[Column]:
    """The table's columns as the catalog has them."""
    rows = reference.rows(
        f"SELECT column_id, column_name, column_type, begin_snapshot, nulls_allowed, {DEFAULTS}"
        f" FROM {METADATA}.ducklake_column ORDER BY column_id"
    )
    return [Column(r[0], r[1], parse_type(r[2]), *r[3:]) for r in rows]


def _inserted(spark: SparkSession, columns: list[Column]) -> DataFrame:
    """The row that an insert without values puts in."""
    shown = Reading().shown_type
    return spark.range(1).select(
        *(F.expr(default_expression(column)).cast(shown(column)).alias(column.name) for column in columns)
    )
