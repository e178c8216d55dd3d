"""Truncated numbers and texts: floors and first characters, and the partitions that a set of values can be in."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor, trunc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from partitioning.test_values import stored_values
from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning import Truncate
from penstock.partitioning.texts import read_text
from penstock.predicates.domains import within
from penstock.predicates.values import Cut, Interval, ValueSet
from penstock.schema.types import Order, Type, parse_type
from support.arrays import spark_array
from support.effort import tries

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "varchar"]
TYPES += ["decimal(4,1)", "decimal(5,5)", "decimal(38,10)", "decimal(38,38)", "decimal(38,0)"]
WIDTHS = st.sampled_from([1, 2, 3, 10, 1000, 2**31 - 1])
MOST = 10**38 - 1


def truncated(value: Any, width: int, type: Type, whole: Any = floor) -> Any:
    """As it is written down; another writer may have cut towards zero, which is `trunc`."""
    if type.order is Order.TEXT:
        return "".join(list(value)[:width])
    return whole(Fraction(value) / width) * width


def fits(number: Any, type: Type) -> bool:
    if type.order is Order.DECIMAL:
        return bool(abs(number) <= MOST)
    return type.order is Order.TEXT or number >= -(2**63)


@settings(deadline=None, max_examples=tries(70, 200))
@given(st.data(), st.sampled_from(TYPES), WIDTHS)
def test_truncation_is_as_defined(data: st.DataObject, name: str, width: int) -> None:
    type, transform = parse_type(name), Truncate(width)
    values = data.draw(st.lists(stored_values(type) | small_values(type), max_size=6))
    wanted = [truncated(one, width, type) for one in values]
    beyond = [value for value, number in zip(values, wanted, strict=True) if not fits(number, type)]
    for value in beyond:
        with pytest.raises(InvalidError, match=str(value)):
            transform.apply(value, type)
        with pytest.raises(InvalidError, match=str(value)):
            transform.values(spark_array(type, [value, None]), type)
    values = [one for one in values if one not in beyond]
    wanted = [comparable(one) for one in wanted if fits(one, type)]
    assert [comparable(transform.apply(one, type)) for one in values] == wanted
    texts = transform.values(spark_array(type, [*values, None]), type).to_pylist()
    assert texts.pop() is None
    assert [comparable(read_text(one, transform.result(type))) for one in texts] == wanted


def small_values(type: Type) -> st.SearchStrategy[Any]:
    if type.order is Order.TEXT:
        return st.text("ab\0é😀\U0010ffff", max_size=5)
    least = 0 if type.name.startswith("uint") else -99
    return st.integers(least, 99).map(lambda step: Decimal(step).scaleb(-type.scale) if type.scale else step)


def comparable(value: Any) -> Any:
    return value if isinstance(value, str) else Fraction(value)


@pytest.mark.parametrize(
    ("width", "name", "values", "wanted"),
    [
        (10, "int32", [123, -7, -10, 0, 9], ["120", "-10", "-10", "0", "0"]),
        (10, "int8", [-128], ["-130"]),
        (10, "uint64", [2**64 - 1], ["18446744073709551610"]),
        (10, "decimal(4,2)", [Decimal("12.34"), Decimal("-0.01")], ["10", "-10"]),
        (1000, "decimal(2,2)", [Decimal("-0.99"), Decimal("0.99")], ["-1000", "0"]),
        (3, "varchar", ["abcdef", "", "é😀/$%", "a\u0301bc"], ["abc", "", "é😀/", "a\u0301b"]),
    ],
)
def test_texts(width: int, name: str, values: list[Any], wanted: list[str]) -> None:
    type = parse_type(name)
    assert Truncate(width).values(spark_array(type, values), type).to_pylist() == wanted


Ends = tuple[Any, bool, Any, bool]


@settings(deadline=None, max_examples=tries(100, 300))
@given(st.data(), st.sampled_from(TYPES), WIDTHS)
@example(None, "int64", 10)
def test_pruning_loses_no_row(data: st.DataObject | None, name: str, width: int) -> None:
    type, transform = parse_type(name), Truncate(width)
    ends = drawn_ends(data, type) if data else [(-(2**63), False, None, False), (-7, False, -7, True)]
    intervals = [Interval(a if a is None else Cut(a, b), c if c is None else Cut(c, d)) for a, b, c, d in ends]
    wanted = within(ValueSet.of(intervals, null=True), type)
    projected = transform.project(wanted, type)
    assert projected is not None
    assert None in projected
    values = data.draw(st.lists(stored_values(type) | small_values(type), max_size=20)) if data else [-(2**63), -7, 0]
    for value in [*values, *(end for low, _, high, _ in ends for end in (low, high) if end is not None)]:
        if value in wanted:
            for whole in (floor, trunc):
                number = truncated(value, width, type, whole)
                partition = number if isinstance(number, str) else exact(number, type)
                assert partition in projected, (value, partition)


def drawn_ends(data: st.DataObject, type: Type) -> list[Ends]:
    end = st.none() | small_values(type) | stored_values(type)
    return data.draw(st.lists(st.tuples(end, st.booleans(), end, st.booleans()), max_size=3))


def exact(number: Fraction, type: Type) -> int | Decimal:
    step = int(number * 10**type.scale)
    return Decimal((int(step < 0), tuple(map(int, str(abs(step)))), -type.scale)) if type.scale else step


def test_how_much_is_pruned() -> None:
    def kept(type: Type, one: Interval, width: int, candidates: list[Any]) -> list[Any]:
        projected = Truncate(width).project(within(ValueSet.of([one]), type), type)
        assert projected is not None
        return [value for value in candidates if value in projected]

    tens = list(range(-30, 150, 10))
    assert kept(parse_type("int32"), Interval(Cut(125, True), None), 10, tens) == [120, 130, 140]
    assert kept(parse_type("int32"), Interval(None, Cut(-11)), 10, tens) == [-30, -20, -10]
    assert kept(parse_type("int32"), Interval(Cut(5), Cut(5, True)), 10, tens) == [0]
    prefixes = ["ab", "abb", "abc", "abd", "b"]
    assert kept(parse_type("varchar"), Interval(Cut("abc"), Cut("abd")), 3, prefixes) == ["abc"]  # LIKE 'abc%'
    assert kept(parse_type("varchar"), Interval(Cut("abcx"), Cut("abcy")), 3, prefixes) == ["abc"]
    assert kept(parse_type("varchar"), Interval(Cut("ab"), Cut("ac")), 3, prefixes) == ["ab", "abb", "abc", "abd"]
    assert kept(parse_type("varchar"), Interval(Cut("ab", True), Cut("abd", True)), 3, prefixes) == [
        "abb",
        "abc",
        "abd",
    ]


@pytest.mark.parametrize("name", ["boolean", "float64", "date", "timestamp", "blob", "uuid"])
def test_types_that_are_not_truncated(name: str) -> None:
    with pytest.raises(InvalidError, match=rf"truncate\(4, x\): x is a {name}, and truncate takes integers"):
        Truncate(4).values(pa.array([None]), parse_type(name))
    assert Truncate(4).project(ValueSet(), parse_type(name)) is None


def test_nested_types_are_not_truncated() -> None:
    with pytest.raises(UnsupportedError, match="x is a list"):
        Truncate(4).values(pa.array([None]), parse_type("list"))
