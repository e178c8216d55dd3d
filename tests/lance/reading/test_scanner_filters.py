"""Filters for Lance's scanner: no row that passes is left out, and where types allow it nothing else is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.lance.format.field_ids import with_field_ids
from penstock.lance.format.schema_conversion import namespace_columns
from penstock.lance.reading.scanner_filters import quoted_path, scanner_filter
from penstock.predicates import And, Anything, ColumnIn, Implication, Nothing, Or, ValueSet, interval
from penstock.predicates.domains import within
from penstock.predicates.implication import column_in, conjunction, disjunction
from penstock.schema.columns import Column
from penstock.schema.types import Order
from support.effort import tries
from support.predicate_samples import POOLS

NO_SPARK = cast(SparkSession, None)  # Arrow's schemas need none
DATES = POOLS["date"]
NANOSECONDS = [-1, 0, 1, 999, 1000, -1000, -1001, 1_700_000_000_123_456_789]
QUOTES = ["'", "''", '"', "a' OR 1=1 --", "\\'", "`", "%", "_", "\n", "__HIVE_DEFAULT_PARTITION__", "/ = % $", "NULL"]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), POOLS["int8"]),
    "int32": (pa.int32(), POOLS["int32"]),
    "int64": (pa.int64(), POOLS["int64"]),
    "uint8": (pa.uint8(), POOLS["uint8"]),
    "uint64": (pa.uint64(), POOLS["uint64"]),
    "float16": (pa.float16(), [0.0, -0.0, 1.5, -1.5, math.nan, math.inf]),
    "float32": (pa.float32(), POOLS["float32"]),
    "float64": (pa.float64(), POOLS["float64"]),
    "narrow": (pa.decimal128(4, 1), POOLS["decimal(4,1)"]),
    "wide": (pa.decimal128(38, 10), POOLS["decimal(38,10)"]),
    "fraction": (pa.decimal128(38, 37), POOLS["decimal(38,37)"]),
    "text": (pa.string(), POOLS["varchar"] + QUOTES),
    "large": (pa.large_string(), POOLS["varchar"]),
    "bytes": (pa.binary(), POOLS["blob"]),
    "fixed": (pa.binary(2), [b"ab", b"\0\0", b"\xff\xff"]),
    "flag": (pa.bool_(), POOLS["boolean"]),
    "date": (pa.date32(), DATES),
    "naive": (pa.timestamp("us"), POOLS["timestamp"]),
    "instant": (pa.timestamp("us", "UTC"), POOLS["timestamptz"]),
    "paris": (pa.timestamp("us", "Europe/Paris"), POOLS["timestamptz"]),
    "nanos": (pa.timestamp("ns"), NANOSECONDS),
    "ends": (pa.timestamp("ns", "UTC"), [0, 2**63 - 1, -(2**63) + 1]),
    "millis": (pa.timestamp("ms", "UTC"), [-1, 0, 1, 1_700_000_000_123]),
    "time": (pa.time64("us"), POOLS["time"]),
}
NAMES = [
    "a b",
    "it's",
    'say "hi"',
    "$ / = %",
    "😀 é",
    "select",
    "Upper",
    "back\\slash",
    "-- x",
    "a,b",
    "1",
    "{?}",
    "null",
]
INNER = ["a.b", "tick`", "x y'", "B"]
ROUNDED = ("float16", "float32", "float64")
LEFT_TO_SPARK = ("float16", "large", "fixed", "flag", "millis", "time")


def array(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def table() -> pa.Table:
    """Columns of every type, with NULL in each; the same numbers under hostile names; and texts deep in structs."""
    rows = max(len(values) for _, values in KINDS.values()) + 1
    found: dict[str, pa.Array] = {"row": pa.array(range(rows), pa.int64())}
    for name, (kind, values) in KINDS.items():
        found[name] = array(kind, [None, *(values[place % len(values)] for place in range(rows - 1))])
    found |= {name: pa.array([None, *range(1 - rows, 0)], pa.int32()) for name in NAMES}
    texts = [None, *found["text"].to_pylist()[:-1]]
    deep = pa.StructArray.from_arrays([pa.array(texts)] * len(INNER), names=INNER)
    nothing = [place % 7 == 3 for place in range(rows)]
    found["s"] = pa.StructArray.from_arrays([deep, found["float64"]], names=["in", "f"], mask=pa.array(nothing))
    return pa.table(found)


TABLE = table()
SCHEMA = with_field_ids(TABLE.schema)


def fields(
    column: Column, path: tuple[str, ...], values: pa.Array
) -> Iterator[tuple[Column, tuple[str, ...], pa.Array]]:
    if pa.types.is_struct(values.type):
        for child, inner in zip(column.children, values.flatten(), strict=True):
            yield from fields(child, (*path, child.name), inner)
    else:
        yield column, path, values


def shown(value: Any, kind: pa.DataType) -> Any:
    """A stored value as sets of values hold it: Spark's."""
    if value is None or not pa.types.is_timestamp(kind):
        return value
    return {"ns": value // 1000, "ms": value * 1000}.get(kind.unit, value)


def numbers(values: pa.Array) -> list[Any]:
    if pa.types.is_date(values.type):
        return list(values.view(pa.int32()).to_pylist())
    if pa.types.is_timestamp(values.type) or pa.types.is_time(values.type):
        return [shown(value, values.type) for value in values.view(pa.int64()).to_pylist()]
    return list(values.to_pylist())


FIELDS = [
    found
    for column, values in zip(namespace_columns(NO_SPARK, SCHEMA), TABLE.columns, strict=True)
    for found in fields(column, (column.name,), values.combine_chunks())
]
ASKABLE = {column.id: (quoted_path(*path), values.type) for column, path, values in FIELDS}
VALUES = {column.id: numbers(values) for column, _, values in FIELDS}
COLUMNS = {".".join(path): column for column, path, _ in FIELDS}


@pytest.fixture(scope="module", params=["plain", "indexed"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    place: Path = tmp_path_factory.mktemp("filters") / "leaf.lance"
    found = lance.write_dataset(TABLE, str(place), max_rows_per_file=29)
    if request.param == "indexed":
        for name in ("int32", "uint64", "float64", "text", "date", "instant"):
            found.create_scalar_index(name, "BTREE")
    return lance.dataset(str(place))


def rows_of(dataset: lance.LanceDataset, where: str | None) -> set[int]:
    return set(dataset.scanner(columns=["row"], filter=where).to_table()["row"].to_pylist())


def holds(implication: Implication, row: int) -> bool:
    match implication:
        case And(children):
            return all(holds(child, row) for child in children)
        case Or(children):
            return any(holds(child, row) for child in children)
        case ColumnIn(column, _, values):
            return VALUES[column.id][row] in values
    return isinstance(implication, Anything)


def wanted_rows(implication: Implication) -> set[int]:
    return {row for row in range(TABLE.num_rows) if holds(implication, row)}


# Random conditions


@st.composite
def conditions(draw: st.DrawFn, names: Sequence[str]) -> Implication:
    name = draw(st.sampled_from(names))
    column = COLUMNS[name]
    real = column.type.order is Order.FLOAT
    pool = [value for value in dict.fromkeys(VALUES[column.id]) if value is not None and value == value]
    pool += [0.1, -0.1, 1e-300, 1e300, 3.5e38, 1e-46, Decimal("0.1")] if real else []
    values = st.sampled_from(pool)
    ends = st.tuples(st.none() | values, st.none() | values, st.booleans(), st.booleans())
    ranges = [
        interval(low, high, open_low=open_low, open_high=open_high)
        for low, high, open_low, open_high in draw(st.lists(ends, max_size=2))
    ]
    points = [interval(value, value) for value in draw(st.lists(values, max_size=4))]
    found = ValueSet.of([*ranges, *points], null=draw(st.booleans()), nan=draw(st.booleans()))
    return column_in(column, name, within(found, column.type))


def implications(names: Sequence[str]) -> st.SearchStrategy[Implication]:
    return st.recursive(
        conditions(names),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(conjunction),
            st.lists(inner, min_size=2, max_size=3).map(disjunction),
        ),
        max_leaves=4,
    )


EVERY = [name for name in COLUMNS if name != "row"]
EXACT = [name for name in EVERY if name not in (*ROUNDED, *LEFT_TO_SPARK, "ends", "s.f")]
_quick = settings(
    max_examples=tries(25, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_quick
@given(implication=implications(EVERY) | conditions([*ROUNDED, "s.f"]))
def test_no_row_is_lost(dataset: lance.LanceDataset, implication: Implication) -> None:
    assert wanted_rows(implication) <= rows_of(dataset, scanner_filter(implication, ASKABLE))


def without_zero_bytes(implication: Implication) -> bool:
    """Whether Lance is asked for all of it: SQL has no text with a zero byte."""
    match implication:
        case And(children) | Or(children):
            return all(map(without_zero_bytes, children))
        case ColumnIn(_, _, values):
            return not any(
                "\0" in cut.value for one in values.intervals for cut in one if cut and type(cut.value) is str
            )
    return True


@_quick
@given(implication=implications(EXACT).filter(without_zero_bytes))
def test_nothing_else_is_read(dataset: lance.LanceDataset, implication: Implication) -> None:
    assert rows_of(dataset, scanner_filter(implication, ASKABLE)) == wanted_rows(implication)


@pytest.mark.parametrize("name", EVERY)
def test_every_column_can_be_asked(dataset: lance.LanceDataset, name: str) -> None:
    column = COLUMNS[name]
    values = VALUES[column.id]
    nulls = {row for row, value in enumerate(values) if value is None}
    null = column_in(column, name, ValueSet(null=True))
    assert rows_of(dataset, scanner_filter(null, ASKABLE)) == nulls
    there = column_in(column, name, within(~ValueSet(null=True), column.type))
    assert rows_of(dataset, scanner_filter(there, ASKABLE)) == set(range(TABLE.num_rows)) - nulls
    for value in [value for value in dict.fromkeys(values) if value is not None and value == value][::5]:
        point = column_in(column, name, within(ValueSet.points([value]), column.type))
        sql, rows = scanner_filter(point, ASKABLE), wanted_rows(point)
        assert rows
        if name in LEFT_TO_SPARK or (isinstance(value, str) and "\0" in value):
            assert sql is None
        elif name in EXACT:
            assert rows_of(dataset, sql) == rows
        else:
            assert rows <= rows_of(dataset, sql)


def test_bounds_move_outward_only() -> None:
    column = COLUMNS["float32"]
    for value, sql in [
        (-0.0, "(`float32` >= cast('-0.0' as float) AND `float32` <= cast('0.0' as float))"),
        (math.inf, "(`float32` >= cast('inf' as float) AND `float32` <= cast('inf' as float))"),
    ]:
        assert scanner_filter(ColumnIn(column, "", ValueSet.points([value])), ASKABLE) == sql
    third = ColumnIn(COLUMNS["float64"], "", ValueSet.points([Fraction(1, 3)]))
    assert scanner_filter(third, ASKABLE) == (
        "(`float64` >= cast('0.33333333333333326' as double) AND `float64` <= cast('0.33333333333333337' as double))"
    )


def test_many_points_are_asked_coarsely(dataset: lance.LanceDataset) -> None:
    column = COLUMNS["int64"]
    many = column_in(column, "int64", within(ValueSet.points(range(-2000, 2000, 2), null=True), column.type))
    sql = scanner_filter(many, ASKABLE)
    assert sql is not None
    assert sql.count(">=") == 500
    assert wanted_rows(many) <= rows_of(dataset, sql) < set(range(TABLE.num_rows))


def test_what_cannot_be_asked_is_left_out() -> None:
    number = ColumnIn(COLUMNS["int32"], "int32", ValueSet.points([5]))
    flag = ColumnIn(COLUMNS["flag"], "flag", ValueSet.points([True]))
    asked = scanner_filter(number, ASKABLE)
    assert asked == "(`int32` >= 5 AND `int32` <= 5)"
    assert scanner_filter(And((number, flag)), ASKABLE) == f"({asked})"
    assert scanner_filter(And((flag, flag)), ASKABLE) is None
    assert scanner_filter(Or((number, flag)), ASKABLE) is None
    assert scanner_filter(number, {}) is None
    assert scanner_filter(Anything(), ASKABLE) is None
    assert scanner_filter(Nothing(), ASKABLE) == "false"
