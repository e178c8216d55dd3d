"""The law of pruning, through Spark: for any predicate, the rows of the pruned scan are those of the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import penstock
from support.catalogs import DuckDBCatalog
from support.effort import tries

COLUMNS = {
    "i": ["-5", "0", "7", "1000000", "-9223372036854775808"],
    "d": ["0.0", "-0.0", "1.5", "double('NaN')", "double('-Infinity')", "1e300"],
    "f": ["float(0.1)", "0.1", "float('NaN')", "2"],
    "s": ["''", "'a'", "'a/b = %'", "'é'", "'🦆'", "'zz'"],
    "day": ["DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '9999-12-31'", "TIMESTAMP_NTZ '2024-02-29 00:00:00'"],
    "ts": ["TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '2024-02-29 12:00:00'", "DATE '2024-03-01'"],
    "tz": ["TIMESTAMP '2024-02-29 23:30:00+00:00'", "TIMESTAMP '1960-01-01 00:00:00+02:00'", "DATE '2024-03-01'"],
    "n": ["1.25", "-99999999999999999999999999999999999.99", "0"],
    "u": ["'00000000-0000-0000-0000-00000000000a'", "'ffffffff-0000-0000-0000-000000000000'", "'x'"],
    "big": ["18446744073709551615", "0", "9223372036854775808"],
    "b": ["true", "false"],
    "st.x": ["0", "5", "-1"],
}
CASTS = (
    "CAST(ts AS DATE) = DATE '2024-02-29'", "CAST(tz AS DATE) < DATE '2000-01-01'", "CAST(i AS DOUBLE) >= 7.5",
    "CAST(i AS STRING) = '7'", "year(ts) = 2024",
)  # fmt: skip
ROWS = """
    SELECT i, d, f, s, day, ts, tz, n, u, big, i % 2 = 0 AS b,
           CASE WHEN i % 5 = 0 THEN NULL ELSE {'x': i % 7} END AS st
    FROM (SELECT [-5, 0, 7, 1000000, -9223372036854775808, NULL][1 + r % 6]::BIGINT AS i,
                 ['0.0', '-0.0', '1.5', 'nan', '-inf', NULL, '1e300'][1 + r % 7]::DOUBLE AS d,
                 ['0.1', 'nan', '2', NULL][1 + r % 4]::FLOAT AS f,
                 ['', 'a', 'a/b = %', 'é', '🦆', NULL, 'ab', 'zz'][1 + r % 8] AS s,
                 ['1969-12-31', '2024-02-29', '9999-12-31', NULL, '2024-03-01'][1 + r % 5]::DATE AS day,
                 ['1969-12-31 23:59:59.999999', '2024-02-29 12:00:00', NULL, '2024-03-01'][1 + r % 4]::TIMESTAMP AS ts,
                 ['2024-02-29 23:30:00+00', '1960-01-01 00:00:00+02', NULL][1 + r % 3]::TIMESTAMPTZ AS tz,
                 ['1.25', '-99999999999999999999999999999999999.99', NULL, '0'][1 + r % 4]::DECIMAL(38,2) AS n,
                 ['00000000-0000-0000-0000-00000000000a', NULL, 'ffffffff-0000-0000-0000-000000000000'][1 + r % 3]
                     ::UUID AS u,
                 ['18446744073709551615', '0', NULL][1 + r % 3]::UBIGINT AS big
          FROM range({first}, {last}) t(r))
"""


@dataclass(frozen=True)
class Rows:
    table: penstock.Table
    whole: DataFrame


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Rows]:
    catalog = DuckDBCatalog(Path(tmp_path_factory.mktemp("law")))
    with catalog.build(data_inlining_row_limit=0) as lake:
        lake.execute(f"CREATE TABLE t AS {_select(0, 3)}")
        for keys in ("s", "year(ts), month(ts), day(ts)", "bucket(3, i), b", "day, bucket(2, s)", "hour(tz), u"):
            lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({keys})", f"INSERT INTO t {_select(3, 12)}")
        lake.execute("DELETE FROM t WHERE i = 7 AND s = 'a'")
    with penstock.attach(catalog.uri, read_only=True, name="law", spark=spark) as lake:
        table = lake.table("t")
        whole = table.read(row_ids=True).localCheckpoint()
        whole.createOrReplaceTempView("whole")
        yield Rows(table, whole)


def _select(first: int, last: int) -> str:
    return ROWS.replace("{first}", str(first)).replace("{last}", str(last))


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    values = st.sampled_from(COLUMNS[column])
    match draw(st.sampled_from(["compare", "compare", "in", "null", "between", "like", "cast"])):
        case "in":
            return f"{column} IN ({', '.join(draw(st.lists(values, min_size=1, max_size=3)))})"
        case "null":
            return f"{column} IS {draw(st.sampled_from(['NULL', 'NOT NULL']))}"
        case "between":
            return f"{column} BETWEEN {draw(values)} AND {draw(values)}"
        case "like":
            return f"s LIKE '{draw(st.sampled_from(['a', '', 'é', 'zz', '🦆']))}%'"
        case "cast":
            return draw(st.sampled_from(CASTS))
    operator = draw(st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]))
    return f"{column} {operator} {draw(values)}"


predicates = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("time_zone", ["UTC", "America/New_York"])
def test_pruned_equals_unpruned(rows: Rows, spark: SparkSession, time_zone: str) -> None:
    @settings(max_examples=tries(20, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    @given(predicates)
    def law(predicate: str) -> None:
        pruned = sorted(row.rowid for row in rows.table.read(row_ids=True).where(predicate).select("rowid").collect())
        assert pruned == sorted(row.rowid for row in rows.whole.where(predicate).select("rowid").collect())

    spark.conf.set("spark.sql.session.timeZone", time_zone)
    try:
        law()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


SHAPES = (
    "SELECT rowid FROM {t} WHERE {p}",
    "SELECT x.rowid FROM {t} x LEFT ANTI JOIN (SELECT rowid FROM {t} WHERE {p}) y ON x.rowid = y.rowid",
    "SELECT x.rowid FROM (SELECT rowid, i FROM {t} WHERE {p}) x JOIN {t} y ON x.i <=> y.i AND x.rowid <> y.rowid",
    "SELECT rowid FROM {t} WHERE i >= (SELECT min(i) FROM {t} WHERE {p}) OR s IN (SELECT s FROM {t} WHERE {p})",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_pruned_by_name_equals_unpruned(rows: Rows, spark: SparkSession, shape: str) -> None:
    """The same for plain SQL: tables by their names, in joins and subqueries."""

    @settings(max_examples=tries(6, 150), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    @given(predicates)
    def law(predicate: str) -> None:
        pruned, whole = (
            sorted(row.rowid for row in spark.sql(shape.format(t=table, p=predicate)).collect())
            for table in ("law.main.t", "whole")
        )
        assert pruned == whole

    law()


def test_pruning_happens(rows: Rows) -> None:
    """Each kind of predicate leaves files out, so that the law above is not kept by reading everything."""
    for predicate in (
        "s = 'a'", "s LIKE 'zz%'", "i = 7", "i IN (7, 0)", "d > 1e200", "day = DATE '2024-02-29'", "s IS NULL",
        "ts >= TIMESTAMP_NTZ '2024-02-29 00:00:00' AND ts < TIMESTAMP_NTZ '2024-03-01 00:00:00'", "NOT (i <> 7)",
        "u = '00000000-0000-0000-0000-00000000000a'", "big > 9223372036854775808", "st.x = 0",
        "tz < TIMESTAMP '2000-01-01 00:00:00+00:00'", "CAST(ts AS DATE) = DATE '2024-02-29'", "n < -1",
        "s = 'a' OR day = DATE '9999-12-31'", "i BETWEEN 5 AND 9", "year(ts) = 1969",
    ):  # fmt: skip
        explanation = rows.table.explain(predicate)
        assert 0 < explanation.kept < explanation.files, explanation
        assert explanation.reasons, explanation
