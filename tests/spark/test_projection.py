"""Columns that are written as SQL: what the text says, whatever a user's session has or sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.expressions import spark_quoted
from penstock.spark.projection import SqlColumn, named, projected, text_sql, type_sql
from support.effort import tries

HARD_NAMES = ("a", "A", "a.b", "a`b", "`", "select", "1", "x y", "ä", "_metadata", "current_date", "🦆", "'", '"', "\\")
# What would read the text in another way.
SETTINGS = {
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.legacy.interval.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
}
_SLOW = [HealthCheck.function_scoped_fixture]


@contextmanager
def _settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def _values(frame: DataFrame) -> list[Any]:
    return list(frame.collect()[0])


@pytest.fixture
def row(spark: SparkSession) -> Iterator[DataFrame]:
    """One row, in which each column with a hard name holds its place, under a session with hard settings."""
    own = spark.newSession()
    schema = T.StructType([T.StructField(name, T.IntegerType()) for name in HARD_NAMES])
    with _settings(own, SETTINGS):
        yield own.createDataFrame([tuple(range(len(HARD_NAMES)))], schema)


def test_names_are_found_letter_by_letter(row: DataFrame) -> None:
    for place, name in enumerate(HARD_NAMES):
        shown = projected(row, [SqlColumn("shown", spark_quoted(name)), SqlColumn(name, f"{spark_quoted(name)} + 1")])
        assert shown.columns == ["shown", name]
        assert _values(shown) == [place, place + 1]
    assert _values(projected(row, named(*reversed(HARD_NAMES)))) == list(reversed(range(len(HARD_NAMES))))


def test_a_name_that_is_not_there_is_not_looked_for_elsewhere(row: DataFrame) -> None:
    row.sparkSession.sql("DECLARE OR REPLACE VARIABLE elsewhere INT DEFAULT 5")
    for sql in ("`elsewhere`", "elsewhere + 1", "`AB`"):
        with pytest.raises(Exception, match="no column"):
            projected(row, [SqlColumn("x", sql)])


def test_fields_of_structs_are_found_below_hard_names(spark: SparkSession) -> None:
    frame = spark.sql("SELECT named_struct('a.b', named_struct('`', 7)) AS `s.t`")
    assert _values(projected(frame, [SqlColumn("x", "`s.t`.`a.b`.````")])) == [7]


def test_columns_as_they_are_need_no_projection(row: DataFrame) -> None:
    same = projected(row, named(*HARD_NAMES))
    assert same._jdf.queryExecution().analyzed().fastEquals(row._jdf.queryExecution().analyzed())


def test_functions_of_a_users_own_do_not_stand_in_for_sparks(spark: SparkSession) -> None:
    own = spark.newSession()
    frame = own.createDataFrame([(bytearray(b"\xab\x0c"), [bytearray(b"\xff")])], "v binary, l array<binary>")
    for name in ("lower", "hex", "substring", "concat", "transform"):
        own.udf.register(name, lambda *_: "wrong")
    sql = "concat(substring(lower(hex(`v`)), 1, 2), '-', substring(lower(hex(`v`)), 3, 2))"
    columns = [SqlColumn("text", sql), SqlColumn("list", "transform(`l`, `x` -> lower(hex(`x`)))")]
    assert _values(projected(frame, columns)) == ["ab-0c", ["ff"]]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_ansi_mode_is_the_sessions(spark: SparkSession, ansi: str) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.ansi.enabled", ansi)
    shown = projected(own.createDataFrame([("x",)], "t string"), [SqlColumn("n", "CAST(`t` AS int)")])
    if ansi == "false":
        assert _values(shown) == [None]
    else:
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            shown.collect()


@settings(max_examples=tries(10, 100), deadline=None, suppress_health_check=_SLOW)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20))
def test_literals_are_the_texts_that_they_were_made_of(row: DataFrame, texts: list[str]) -> None:
    assert _values(projected(row, [SqlColumn(f"c{i}", text_sql(text)) for i, text in enumerate(texts)])) == texts


def _types() -> st.SearchStrategy[T.DataType]:
    plain: tuple[T.DataType, ...] = (
        T.IntegerType(), T.StringType(), T.TimestampType(), T.TimestampNTZType(), T.TimeType(6), T.DecimalType(38, 3),
        T.VariantType(), T.BinaryType(), T.DateType(), T.DoubleType(), T.ShortType(),
    )  # fmt: skip
    names = st.sampled_from([name for name in HARD_NAMES if name != "A"])
    return st.recursive(
        st.sampled_from(plain),
        lambda inner: st.one_of(
            st.builds(T.ArrayType, inner),
            st.builds(T.MapType, st.just(T.StringType()), inner),
            st.builds(
                lambda fields: T.StructType([T.StructField(name, kind) for name, kind in fields.items()]),
                st.dictionaries(names, inner, min_size=1, max_size=4),
            ),
        ),
        max_leaves=6,
    )


@settings(max_examples=tries(10, 100), deadline=None, suppress_health_check=_SLOW)
@given(kinds=st.lists(_types(), min_size=1, max_size=8))
def test_types_are_named_so_that_spark_finds_them(row: DataFrame, kinds: list[T.DataType]) -> None:
    shown = projected(row, [SqlColumn(f"c{i}", f"CAST(NULL AS {type_sql(kind)})") for i, kind in enumerate(kinds)])
    assert [field.dataType for field in shown.schema.fields] == kinds
