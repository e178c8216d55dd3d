"""DuckDB's dialect: queries, views and macros run by Spark give DuckDB's own rows, or are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import Lake
from penstock.errors import InvalidError, UnsupportedError
from sql.duckdb_statements import EXPRESSIONS, QUERIES, SETUP
from support import catalogs
from support.reference import Reference
from support.writing import attached

_AT_ONCE = 40
_INTERVAL = {"months", "days", "microseconds"}
Both = tuple[Lake, Reference]


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """One lake, as `lk`, in Spark and in DuckDB."""
    catalog = catalogs.SQLiteCatalog(tmp_path_factory.mktemp("dialect"))
    with catalog.build() as reference:
        reference.execute(*SETUP)
    with attached(catalog, spark, name="lk") as lake, catalog.reference(read_only=True) as reference:
        yield lake, reference


def _plain(value: Any) -> Any:
    """A value as both Pythons have it."""
    match value:
        case bool():
            return value
        case float():
            return "nan" if math.isnan(value) else "-0.0" if str(value) == "-0.0" else float(f"{value:.12g}")
        case int() | Decimal():
            return Decimal(value).normalize() if value else Decimal(0)
        case dict() if set(value) == _INTERVAL:
            return timedelta(days=value["days"] + 30 * value["months"], microseconds=value["microseconds"])
        case dict():
            return sorted((str(key), _plain(item)) for key, item in value.items())
        case list():
            return [_plain(item) for item in value]
        case bytearray():
            return bytes(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case str() | bytes() | date() | timedelta() | None:
            return value
    return _plain(value.asDict()) if hasattr(value, "asDict") else str(value)


def _rows(rows: list[Any], query: str) -> list[list[Any]]:
    found = [[_plain(value) for value in row] for row in rows]
    ordered = "ORDER BY" in re.sub(r"\([^()]*\)", "", query)
    return found if ordered else sorted(found, key=repr)


def _compare(both: Both, query: str) -> None:
    lake, reference = both
    answer = reference.connection.execute(query)
    names = [column[0] for column in answer.description or ()]
    frame = lake.sql(query, dialect="duckdb")
    assert frame.columns == names, query
    assert _rows(frame.collect(), query) == _rows(answer.fetchall(), query), query


@pytest.mark.parametrize("first", range(0, len(EXPRESSIONS), _AT_ONCE))
def test_expressions(both: Both, first: int) -> None:
    some = EXPRESSIONS[first : first + _AT_ONCE]
    _compare(both, f"SELECT id, {', '.join(f'{one} AS v{place}' for place, one in enumerate(some))} FROM t ORDER BY id")


@pytest.mark.parametrize("query", QUERIES)
def test_queries(both: Both, query: str) -> None:
    _compare(both, query)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT random()", r"the query has random\(\).*SELECT random"),
        ("FROM t TABLESAMPLE 10%", "SAMPLE"),
        ("FROM u LIMIT 10%", "LIMIT that is no constant"),
        ("FROM t ASOF JOIN u ON t.id >= u.id", "ASOF JOIN"),
        ("FROM t POSITIONAL JOIN u", "POSITIONAL JOIN"),
        ("SELECT row(1, 2)", "row"),
        ("SELECT d::VARCHAR FROM t", "cast from DOUBLE to VARCHAR"),
        ("SELECT s COLLATE NOCASE = 'x' FROM t", "NOCASE"),
        ("SELECT regexp_matches(s, '(?i)x') FROM t", "regular expression"),
        ("SELECT id FROM t WHERE id > ALL (SELECT a FROM u)", "ANY or ALL"),
        ("SELECT sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM t", "EXCLUDE"),
        ("SELECT w::DECIMAL(38,10) + 1 FROM t", "too few digits"),
        ("SELECT l < [1] FROM t", "order of values"),
        ("SELECT s::JSON FROM t", "cast from VARCHAR to"),
        ("SELECT regexp_replace(s, 'x*', '-') FROM t", "may be empty"),
        ("SELECT regexp_extract(s, '(a)(b)', 3) FROM t", "does not have"),
        ("SELECT regexp_extract(s, '(a*)*', 1) FROM t", "several times"),
        ("SELECT round(n, -1) FROM t", "digits that are no constant from 0 on"),
        ("SELECT tz - INTERVAL '1 month 1 day' FROM t", "months, days or time alone"),
        ("SELECT count(DISTINCT iv) FROM t", "INTERVAL"),
        ("SELECT corr(d, e) FROM t", "corr"),
        ("FROM u LIMIT 3000000000", "LIMIT"),
        ("SELECT nth_value(id, 0) OVER (ORDER BY id) FROM u", "nth_value"),
    ],
)
def test_what_is_not_translated(both: Both, query: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        both[0].sql(query, dialect="duckdb")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "does not read"),
        ("SELECT 1; SELECT 2", "not one query"),
        ("INSERT INTO u VALUES (1, 2, 'x')", "does not read .* as a query"),
        ("FROM nowhere", "nowhere does not exist"),
        ("SELECT nothing FROM u", "nothing"),
        ("FROM other.main.u", "not of this lake"),
        ("FROM read_csv('/etc/hostname')", "disabled by configuration"),
        ("SELECT getvariable('x')", "about a session"),
        ("SELECT $1", "parameter 1"),
        ("FROM u AT (VERSION => 1)", "does not exist at version 1"),
    ],
)
def test_wrong_queries(both: Both, query: str, said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        both[0].sql(query, dialect="duckdb")


def test_errors_of_rows(both: Both) -> None:
    """What is an error in DuckDB is one in Spark, and only when a row comes to it."""
    lake, reference = both
    for query in (
        "SELECT i + 1 FROM t",
        "SELECT ln(0 * e) FROM t WHERE id = 6",
        "SELECT s::INT FROM t WHERE id = 1",
        "SELECT (SELECT id FROM u WHERE u.a = t.j) FROM t",
        "SELECT 300::UTINYINT + id::UTINYINT FROM t",
        "SELECT d::INT FROM t",
        "SELECT (SELECT id FROM u)",
        "SELECT stddev(d) FROM t",
        "SELECT sin(e) FROM t",
        "SELECT chr(55296 + 0 * id) FROM t",
        "SELECT lpad(s, 99, '') FROM t",
    ):
        with pytest.raises(Exception, match=r"."):
            reference.connection.execute(query).fetchall()
        with pytest.raises(Exception, match=r"."):
            lake.sql(query, dialect="duckdb").collect()


def test_arguments(both: Both) -> None:
    lake, _ = both
    values = {"a": 5, "b": "it's", "c": None, "d": Decimal("1.50"), "e": date(1969, 1, 1), "f": 1e10, "g": b"\x00a"}
    query = "SELECT $a + id AS a, $b AS b, $c AS c, $d AS d, $e AS e, $f AS f, $g AS g FROM u WHERE id = $a - 4"
    row = lake.sql(query, values, dialect="duckdb").collect()[0].asDict()
    assert row == {**values, "a": 6, "g": bytearray(b"\x00a")}
    assert lake.sql("SELECT ? + ?", [1, 2], dialect="duckdb").collect() == [(3,)]
    assert lake.sql("SELECT $x", {"x": 1}, dialect="duckdb").columns == ["$x"]
    with pytest.raises(InvalidError, match="cannot be an argument"):
        lake.sql("SELECT $x", {"x": "a\0b"}, dialect="duckdb")
    with pytest.raises(InvalidError, match="no parameter for"):
        lake.sql("SELECT 1", {"x": 1}, dialect="duckdb")
    with pytest.raises(InvalidError, match="no dialect"):
        lake.sql("SELECT 1", dialect="oracle")  # type: ignore[arg-type]


def test_views_and_macros_by_name(both: Both, spark: SparkSession) -> None:
    lake, _ = both
    assert spark.sql("SELECT a, b FROM lk.vw2 WHERE a > 5 ORDER BY a").collect() == [(6, 6), (7, 6)]
    assert spark.table("lk.vw").columns == ["id", "half", "up"]
    assert spark.sql("SELECT lk.plus(a), lk.main.plus(a, y => 5), lk.typed(id) FROM lk.u WHERE id = 2").collect() == [
        (12, 7, 4)
    ]
    assert spark.sql("SELECT lk.tot(a) FROM lk.u WHERE v = 'x'").collect() == [(1.5,)]
    assert spark.sql("SELECT lk.plus(sum(a)) FROM lk.u").collect() == [(18,)]
    assert spark.sql("SELECT lk.trunc_to('month', DATE'2020-02-03')").collect() == [(datetime(2020, 2, 1),)]
    assert spark.sql("SELECT lk.lam(array(1, 2), 5)").collect() == [([5, 10],)]
    assert spark.sql("SELECT id FROM lk.big(2) WHERE id > 1 ORDER BY id").collect() == [(5,), (7,)]
    assert spark.sql("SELECT id FROM lk.main.big(lim => 5)").count() == 2
    assert lake.sql("SELECT plus(1)").collect() == [(11,)]
    with pytest.raises(UnsupportedError, match=r"macro main\.sub has a query inside.*max"):
        spark.sql("SELECT lk.sub(1)")
    with pytest.raises(InvalidError, match="DuckDB cannot bind"):
        spark.sql("SELECT lk.plus('x')")
    with pytest.raises(InvalidError, match="DuckDB cannot bind"):
        spark.sql("SELECT lk.plus()")
    with pytest.raises(InvalidError, match="no macro nope"):
        spark.sql("SELECT lk.nope(1)")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert spark.sql("SELECT half FROM lk.vw WHERE id = 1").collect() == [(3.5,)]
        with pytest.raises(InvalidError, match="ansi"):
            spark.sql("SELECT lk.plus(1)")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_exact_digits_or_none(both: Both) -> None:
    """DuckDB itself keeps HUGEINTs in files as DOUBLE, which Spark would print with other digits."""
    with pytest.raises(Exception, match="too many digits"):
        both[0].sql("SELECT h FROM big", dialect="duckdb").collect()


def test_settings_and_names_of_the_session(both: Both, spark: SparkSession) -> None:
    lake, _ = both
    spark.conf.set("spark.evil", "a' UNION ALL SELECT 'b")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cte0 AS SELECT 700 AS c0")
    try:
        assert lake.sql("SELECT '${spark.evil}' AS \"${spark.evil}\"", dialect="duckdb").collect() == [
            ("${spark.evil}",)
        ]
        assert spark.sql("SELECT lk.Aa(3), lk.BB(3), lk.plus(NULL)").collect() == [(4, 300, None)]
        assert spark.sql("SELECT lk.slashed('x')").collect() == [("x\\n${spark.evil}",)]
        query = "WITH z AS MATERIALIZED (SELECT 1 AS a) SELECT z.a, t.c0 FROM z, cte0 t"
        assert lake.sql(query, dialect="duckdb").collect() == [(1, 700)]
    finally:
        spark.conf.unset("spark.evil")
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
        spark.catalog.dropTempView("cte0")


def test_zones(both: Both, spark: SparkSession) -> None:
    """Across a change of clocks DuckDB and Spark count otherwise: refused, unless the zone has none."""
    lake, _ = both
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        for expression in ("ts::TIMESTAMPTZ", "tz + INTERVAL 1 DAY", "date_trunc('hour', tz)", "tz - tz"):
            with pytest.raises(UnsupportedError, match="clocks change"):
                lake.sql(f"SELECT {expression} FROM t", dialect="duckdb")
        query = "SELECT hour(tz), tz::TIMESTAMP FROM t WHERE id = 5"
        assert lake.sql(query, dialect="duckdb").collect() == [(3, datetime(2024, 3, 31, 3, 30))]
        spark.conf.set("spark.sql.session.timeZone", "+02:00")
        assert lake.sql(query, dialect="duckdb").collect() == [(3, datetime(2024, 3, 31, 3, 30))]
        spark.conf.set("spark.sql.session.timeZone", "+02:17")
        with pytest.raises(InvalidError, match="does not know the session's time zone"):
            lake.sql(query, dialect="duckdb")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
