"""Rows of a Python program as Arrow: what each value stands for, and what is refused, with its row and column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from penstock import InvalidError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.spark.arrow_assignment import plain_rows
from penstock.spark.python_rows import given_rows

TWO = (Column(1, "id", parse_type("int64"), 0), Column(2, "name", parse_type("varchar"), 0))


class Colour(str, Enum):  # noqa: UP042 - not one that is its own text
    RED = "red"


class Pair(NamedTuple):
    id: int
    name: str


@dataclass
class Thing:
    name: str
    id: int


def column(kind: str, *children: Column) -> Column:
    return Column(1, "c", parse_type(kind), 0, children=children)


def array(values: list[Any], target: Column | None = None) -> pa.Array:
    found = given_rows([(value,) for value in values], [target or column("int64")], by_name=False)
    assert found is not None
    found.table.validate(full=True)
    return found.table.column(0).combine_chunks()


@pytest.mark.parametrize(
    ("rows", "by_name"),
    [
        ([(1, "a"), (2, None)], False),
        ([[1, "a"], [2, None]], False),
        ([Pair(1, "a"), Pair(2, None)], False),  # type: ignore[arg-type]
        ([Row(id=1, name="a"), Row(id=2, name=None)], False),
        ([{"id": 1, "name": "a"}, {"name": None, "id": 2}], True),
        ([Thing("a", 1), Thing(None, 2)], True),  # type: ignore[arg-type]
        (pa.table({"id": [1, 2], "name": ["a", None]}), False),
        (pa.record_batch({"id": [1, 2], "name": ["a", None]}), False),
        (pd.DataFrame({"id": [1, 2], "name": ["a", None]}), False),
    ],
)
def test_rows_of_every_make(rows: Any, by_name: bool) -> None:
    found = given_rows(rows, TWO, by_name=False)
    assert found is not None
    assert found.by_name is by_name
    assert found.table.select(["id", "name"]).to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_no_rows_are_nothing() -> None:
    assert given_rows([], TWO, by_name=False) is None
    assert given_rows(iter(()), TWO, by_name=True) is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, None], pa.null()),
        ([True, None], pa.bool_()),
        ([1, -(2**63), 2**63 - 1], pa.int64()),
        ([2**63, None, 0], pa.decimal128(19, 0)),
        ([-(10**38) + 1], pa.decimal128(38, 0)),
        ([0.5, -0.0, math.inf], pa.float64()),
        ([1, 0.5], pa.float64()),
        ([Decimal("0.001"), Decimal("12")], pa.decimal128(5, 3)),
        ([Decimal("1E+3"), 5], pa.decimal128(4, 0)),
        (["", "it's 😀", "a\0b"], pa.string()),
        ([UUID(int=1)], pa.string()),
        ([Colour.RED], pa.string()),
        ([pd.NaT, None, pd.NA], pa.null()),
        ([Decimal("0E+50"), Decimal("0E-50"), Decimal("0.00")], pa.decimal128(2, 2)),
        ([b"", bytearray(b"x"), memoryview(b"y")], pa.binary()),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
        ([time(23, 59, 59, 999999)], pa.time64("us")),
        ([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
        ([datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5)))], pa.timestamp("us", "UTC")),
        ([np.int8(5), np.int64(6)], pa.int64()),
        ([np.float32(0.5)], pa.float64()),
        ([np.bool_(True)], pa.bool_()),
        ([np.datetime64("2024-01-01T00:00:00.123456789"), np.datetime64("NaT")], pa.timestamp("us")),
        ([[1, None], [], None], pa.list_(pa.int64())),
        ([np.array([1, 2])], pa.list_(pa.int64())),
        ([{"a": 1, "b": None}, None], pa.struct([("a", pa.int64()), ("b", pa.null())])),
        ([Pair(1, "x")], pa.struct([("id", pa.int64()), ("name", pa.string())])),
    ],
)
def test_what_a_value_stands_for(values: list[Any], kind: pa.DataType) -> None:
    assert array(values).type == kind


def test_values_are_what_they_were() -> None:
    values = [None, {"k": [{"x": 1.5}, None]}, {"k": None}]
    assert array(values).to_pylist() == values
    assert array([Colour.RED, "red"]).to_pylist() == ["red"] * 2
    later = [pd.NaT, pd.Timestamp("2024-01-01", tz="UTC")]
    assert array(later).to_pylist() == [None, datetime(2024, 1, 1, tzinfo=UTC)]
    assert array([2**53 + 1, 0.5], column("float64")).to_pylist() == [2.0**53, 0.5]
    moment = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert array([moment]).to_pylist() == [moment.astimezone(UTC)]
    maps = column("map", column("varchar"), column("int64"))
    assert array([{"a": 1, "b": None}, {}, None], maps).to_pylist() == [[("a", 1), ("b", None)], [], None]


def test_nanoseconds_stay_where_there_is_room_for_them() -> None:
    text, moment = "2024-01-01T00:00:00.123456789", datetime(2024, 1, 1, 0, 0, 0, 5)
    values = [pd.Timestamp(text), np.datetime64(text), moment, pd.NaT, None]
    found = array(values, column("timestamp_ns"))
    assert found.type == pa.timestamp("ns")
    assert found.cast(pa.int64()).to_pylist() == [1704067200123456789] * 2 + [1704067200000005000, None, None]
    assert array(values, column("timestamp")).type == pa.timestamp("us")
    assert array([datetime(1, 1, 1)], column("timestamp_ns")).to_pylist() == [datetime(1, 1, 1)]


@given(st.lists(st.none() | st.decimals(-999, 999, places=4), min_size=1))
def test_decimals_keep_their_digits(values: list[Decimal | None]) -> None:
    assert [None if v is None else v + 0 for v in array(values).to_pylist()] == values


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, "a"), (2,)], r"row 1 is \(2,\), and row 0 is"),
        ([(1, "a"), {"id": 1}], "row 0 is .1, 'a'., a tuple; give rows that are all"),
        ([Pair(1, "a"), (2, "b")], "row 1 is"),
        ([{"id": 1}, {"name": "a"}], "row 0 gives column 'id' and row 1 does not"),
        ([{1: 2}], "row 0 has the key 1"),
        ([1, 2], "row 0 is 1, a int"),
        ([(1, "a"), (2, 5)], "row 1, column name: 5 is a int, and 'a' before it is none"),
        ([(1, "a"), (2, b"x")], "row 1, column name"),
        ([(1, datetime(2024, 1, 1)), (2, datetime(2024, 1, 1, tzinfo=UTC))], "row 1, column name"),
        ([(1, {1, 2})], "row 0, column name: {1, 2} is a set, which no column takes"),
        ([(1, timedelta(1))], "row 0, column name: .* is a timedelta"),
        ([(1, "x\ud800")], "row 0, column name: .* is no text"),
        ([(1, time(1, tzinfo=UTC))], "row 0, column name: .* has a zone"),
        ([(10**38, "a")], "row 0, column id: 1000.* takes a decimal of more than 38 digits"),
        ([(1, Decimal("NaN"))], "row 0, column name: .* is no number of a decimal"),
        ([(10**400, "a"), (0.5, "b")], "row 0, column id: 1000.* is out of range"),
        ([(1, datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))], "row 0, column name: .* is out of range"),
        ([(1, [1, "x"])], "row 0, column name.element: 'x' is a str"),
        ([(1, {"a": 1}), (1, {"b": 1})], "row 0, column name: gives field 'a' and row 1"),
        ([(2**53 + 1, "a"), (0.5, "b")], "row 0, column id: 9007199254740993 is no double"),
        ([(np.timedelta64(5, "ns"), "a")], "row 0, column id: .* is a timedelta, which no column takes"),
        ([(np.datetime64("20000-01-01", "us"), "a")], "row 0, column id: .* is a datetime64, which no column takes"),
        ([(1, np.array(["20000-01-01"], "M8[D]"))], "row 0, column name.element: .* is a datetime64"),
        ([(1, Row("a", "a")(1, 2))], "row 0, column name: .* has two fields of one name"),
        ([(1, {})], "row 0, column name: a struct needs at least one field"),
        ("rows", "rows cannot be a str"),
        ({"id": 1}, "rows cannot be a dict"),
        (5, "rows cannot be a int"),
    ],
)
def test_what_is_no_row_is_named(rows: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        given_rows(rows, TWO, by_name=False)


def test_tuples_have_no_names() -> None:
    with pytest.raises(InvalidError, match="the rows are tuples, which have no names"):
        given_rows([(1, "a")], TWO, by_name=True)


def test_maps_may_all_be_empty() -> None:
    target = column("map", column("date"), column("int64"))
    found = given_rows([({},), (None,), ({},)], [target], by_name=False)
    assert found is not None
    [values] = plain_rows(found.table, [target], "t", by_name=False).columns
    assert (values.type.key_type, values.to_pylist()) == (pa.date32(), [[], None, []])
    nested = column("list", target)
    assert array([[{}, None], []], nested).to_pylist() == [[[], None], []]


def test_a_map_has_no_key_without_a_value() -> None:
    target = column("map", column("varchar"), column("int64"))
    with pytest.raises(InvalidError, match="row 1, column c: a key of a map cannot be None"):
        array([{}, {None: 1}], target)
