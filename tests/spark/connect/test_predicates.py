"""Predicates that choose files on a Spark Connect session: no row that Spark keeps is in a file that they leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.predicates import implied_by
from penstock.predicates.implication import Anything, Implication, allows
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.spark.connect.predicates import _Columns
from penstock.spark.connect.sql_predicates import UNKNOWN, read_predicate
from support import effort

KINDS = {
    "i": "int32", "l": "int64", "u": "uint64", "d": "decimal(10,2)", "w": "decimal(38,5)", "f": "float32",
    "x": "float64", "s": "varchar", "b": "boolean", "day": "date", "ts": "timestamptz", "n": "timestamp",
}  # fmt: skip
SHOWN = {
    "i": "INT", "l": "BIGINT", "u": "DECIMAL(20,0)", "d": "DECIMAL(10,2)", "w": "DECIMAL(38,5)", "f": "FLOAT",
    "x": "DOUBLE", "s": "STRING", "b": "BOOLEAN", "day": "DATE", "ts": "TIMESTAMP", "n": "TIMESTAMP_NTZ",
}  # fmt: skip
VALUES = {
    "i": ["0", "5", "-5", "2147483647", "16777217"],
    "l": ["0", "5", "9223372036854775807", "-9223372036854775808", "9007199254740993"],
    "u": ["0", "5", "18446744073709551615"],
    "d": ["0", "5", "5.50", "-0.01", "99999999.99"],
    "w": ["0", "5", "5.5", "999999999999999999999999999999999.99999"],
    "f": ["'0'", "'-0.0'", "'0.1'", "'5'", "'16777216'", "'NaN'", "'Infinity'"],
    "x": ["'0'", "'-0.0'", "'0.1'", "'5'", "'9007199254740992'", "'NaN'", "'-Infinity'"],
    "s": ["''", "'a'", "'ab'", "'5'", "'2024-03-31'", "'\U0001f986'", "'true'"],
    "b": ["true", "false"],
    "day": ["'2024-03-31'", "'1969-12-31'", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'"],
    "ts": ["'2024-03-31 00:59:59Z'", "'2024-03-31 02:30:00Z'", "'2024-10-27 00:30:00Z'", "'1969-12-31 23:59:59Z'"],
    "n": ["'2024-03-31 02:30:00'", "'2024-03-31'", "'1969-12-31 23:59:59.999999'", "'2024-10-27 02:30:00'"],
}
CONSTANTS = [
    "NULL", "true", "false", "0", "5", "-5", "5L", "2147483648", "9223372036854775807", "9223372036854775808",
    "16777217", "9007199254740993", "5.0", "5.5", "0.1", "-0.01", "5.500001BD", "0.1D", "5e0", "1e308", "-0.0",
    "999999999999999999999999999999999.99999", "''", "'a'", "'ab'", "'5'", "'true'", "'2024-03-31'", "'2024-3-31'",
    "'2024-03-31 02:30:00'", "'2024-03-31 02:30'", "'2024-03-31T02:30:00Z'", "'2024-03-31 02:30:00+02:00'",
    "DATE '2024-03-31'", "DATE '1969-12-31'", "TIMESTAMP '2024-03-31 02:30:00'", "TIMESTAMP '2024-03-31'",
    "TIMESTAMP '2024-03-31 02:30:00Z'", "TIMESTAMP_NTZ '2024-03-31 02:30:00'", "TIMESTAMP_NTZ '2024-10-27 02:30:00'",
    "X'61'", "'a' 'b'", "r'a'", '"a"', "'it''s'", "'a\\'b'", "5Y", "5S", "5F", "2024", "1969",
]  # fmt: skip
COMPARISONS = ["=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!="]
ZONES = ["UTC", "Europe/Berlin", "+05:30", "America/New_York"]
COLUMNS = [Column(number, name, parse_type(kind), 0) for number, (name, kind) in enumerate(KINDS.items(), 1)]

columns = st.sampled_from([*KINDS, "`I`", "target.l", "st.a", "`target`.`day`", "S"])
constants = st.sampled_from(CONSTANTS)
operands = st.one_of(columns, st.sampled_from(["year(day)", "year(ts)", "year(n)"]))
leaves = st.one_of(
    st.tuples(operands, st.sampled_from(COMPARISONS), constants).map(" ".join),
    st.tuples(constants, st.sampled_from(COMPARISONS), operands).map(" ".join),
    st.tuples(operands, constants, constants).map(lambda parts: f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"),
    st.tuples(operands, constants, constants).map(lambda parts: f"{parts[0]} NOT BETWEEN {parts[1]} AND {parts[2]}"),
    st.tuples(operands, st.sampled_from(["IN", "NOT IN"]), st.lists(constants, min_size=1, max_size=3)).map(
        lambda parts: f"{parts[0]} {parts[1]} ({', '.join(parts[2])})"
    ),
    st.tuples(operands, st.sampled_from(["IS NULL", "IS NOT NULL"])).map(" ".join),
    st.sampled_from(
        [
            "b",
            "NOT b",
            "true",
            "s LIKE 'a%'",
            "s NOT LIKE 'a%'",
            "s LIKE 'a_'",
            "s LIKE '%'",
            "s LIKE 'a%%'",
            "i + 1 = 6",
            "lower(s) = 'a'",
            "i = l",
            "CASE WHEN b AND i = 5 THEN true ELSE l = 5 END",
            "i -- x\n = 5",
            "i /* OR */ = 5",
            "coalesce(b, false)",
            "i IN (SELECT 5)",
            "(i) = 5",
            "i = (5)",
            "- i = 5",
            "i % 2 = 1",
            "NOT (NOT b)",
        ]
    ),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR", "and", "or"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("NOT ({})".format),
        inner.map("({}) IS NULL".format),
    ),
    max_leaves=4,
)


@contextmanager
def setting(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def implied(spark: SparkSession, predicate: str, zone: str) -> Implication:
    frame = spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for name, kind in SHOWN.items())}")
    schema = frame.selectExpr("*", "named_struct('a', 1) AS st").schema
    filters = _Columns(schema, lambda: zone, by_name=True).filter(read_predicate(predicate))
    return implied_by([json.dumps(filters)], COLUMNS)


def rows(spark: SparkSession) -> Any:
    """Each value of a column with one of every other, and NULLs."""
    most = max(map(len, VALUES.values())) + 1
    lines = []
    for number in range(2 * most):
        values = [
            ([*VALUES[name], "NULL"] * 12)[number % most + (place if number >= most else 0)]
            for place, name in enumerate(SHOWN)
        ]
        cast = (f"CAST({value} AS {kind}) AS {name}" for value, (name, kind) in zip(values, SHOWN.items(), strict=True))
        lines.append(f"SELECT {number} AS row, {', '.join(cast)}, named_struct('a', {number % 7}) AS st")
    return spark.sql(" UNION ALL ".join(lines)).alias("target")


def scalars(frame: Any) -> list[dict[int, Any]]:
    """The values as planners compare them."""
    kept = {
        "day": "unix_date(day) AS day", "ts": "unix_micros(ts) AS ts",
        "n": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', n) AS n",
    }  # fmt: skip
    found = frame.orderBy("row").selectExpr(*(kept.get(name, name) for name in SHOWN)).collect()
    return [{column.id: row[column.name] for column in COLUMNS} for row in found]


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> list[dict[int, Any]]:
    return scalars(rows(spark))


def kept_by_spark(spark: SparkSession, predicate: str) -> Sequence[int] | None:
    """The numbers of the rows that Spark keeps; None where it refuses the predicate, or a value in it."""
    try:
        return [row[0] for row in rows(spark).where(predicate).select("row").collect()]
    except PySparkException:
        return None


@given(predicate=predicates, zone=st.sampled_from(ZONES), ansi=st.sampled_from(["true", "false"]))
@settings(
    max_examples=effort.tries(150, 1000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    print_blob=True,
)
# Both are true of NULL to Spark.
@example(predicate="i NOT BETWEEN 9223372036854775808 AND NULL", zone="UTC", ansi="true")
@example(predicate="l > -9223372036854775809 AND NOT (i >= 9223372036854775808.5)", zone="UTC", ansi="false")
def test_law_of_pruning(predicate: str, zone: str, ansi: str, spark: SparkSession, known: list[dict[int, Any]]) -> None:
    said = implied(spark, predicate, zone)
    if isinstance(said, Anything):
        return
    with setting(spark, spark__sql__session__timeZone=zone, spark__sql__ansi__enabled=ansi):
        kept = kept_by_spark(spark, predicate)
    lost = [known[number] for number in kept or () if not allows(said, known[number])]
    assert not lost, (predicate, said)


@pytest.mark.parametrize(
    "predicate",
    [
        "i = 5", "target.i >= 5 AND l < 7", "i IN (1, 2, NULL)", "i BETWEEN 1 AND 5", "s LIKE 'ab%'", "s = 'it is'",
        "d > 1.25", "x < 5", "x < 0.1", "f = 5", "day = '2024-01-01'", "day >= DATE '2024-01-01'", "b", "NOT b",
        "ts > '2024-01-01 12:00:00'", "ts > TIMESTAMP '2024-01-01 12:00:00'", "n < '2024-01-01'", "u = 7", "w = 1",
        "year(day) = 2024", "year(ts) = 2024", "i IS NOT NULL", "i = 1 OR (i = 2 AND s = 'x')", "5 < i", "`I` = 3",
        "lower(s) = 'a' AND i = 5",
    ],
)  # fmt: skip
def test_what_is_known(predicate: str, spark: SparkSession) -> None:
    assert not isinstance(implied(spark, predicate, "Europe/Berlin"), Anything)


@pytest.mark.parametrize(
    "predicate",
    [
        "i = 5 -- AND l = 1", "i = 1 /* /* */ AND l = 2 AND s = 'x' */", "i + 1 = 2", "s = \"a\"", "s = 'a' 'b'",
        "i = 1 OR lower(s) = 'a'", "i IN (SELECT 5)", "CASE WHEN b THEN i = 5 END", "i = l", "target.nope = 1", "", "(",
        "i = '5'", "s = 5", "ts IN ('2024-01-01')", "f = 0.1F", "NOT", "AND", "i BETWEEN 1", "i = 5)", "i =", "= 5",
        "i < 9223372036854775808", "i NOT BETWEEN 9223372036854775808 AND NULL", "NOT (l > 9223372036854775808)",
        "i = 1 AND end = 5 OR l = 2", "i = 1 AND st.end = 5 OR l = 2", "s = '${x}'",
    ],
)  # fmt: skip
def test_what_says_nothing(predicate: str, spark: SparkSession) -> None:
    assert isinstance(implied(spark, predicate, "UTC"), Anything)


def test_depth_is_bounded(spark: SparkSession) -> None:
    assert isinstance(implied(spark, "NOT " * 500 + "b", "UTC"), Anything)
    assert not isinstance(implied(spark, " AND ".join(["i = 5"] * 2000), "UTC"), Anything)
    assert read_predicate("(" * 5000) == UNKNOWN
