"""Rows of Arrow become a table's columns without Spark: what comes out is what Spark makes of the same rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import InvalidError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.spark.arrow_assignment import assigned_arrow, frame_of, no_values, plain_rows
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.local_rows import held_rows
from support.effort import tries

TYPES = (
    "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int128", "float32", "float64",
    "decimal(4,1)", "decimal(18,4)", "decimal(38,10)", "decimal(38,0)", "varchar", "json", "uuid", "blob", "date",
    "time", "timetz", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns", "interval", "geometry",
    "variant",
)  # fmt: skip
INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
MANY, BYTES = 100, 2**20
_WIDTHS = (8, 16, 32, 64)
_MOMENTS = st.one_of(
    st.sampled_from([datetime(1, 1, 1), datetime(1582, 10, 10), datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    st.datetimes(datetime(1678, 1, 1), datetime(2261, 1, 1)),
)


def column(name: str, kind: str, *children: Column, id: int = 1) -> Column:
    return Column(id, name, parse_type(kind), 0, children=children)


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.one_of(st.integers(max(low, -200), min(high, 300)), st.sampled_from([low, high]), st.integers(low, high))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    digits_of = st.one_of(st.sampled_from([-most, 0, most]), st.integers(-most, most))
    return digits_of.map(lambda n: Decimal(f"{n}E-{scale}"))


FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 1e300, -5e-324, 2.0**24 + 1, 3.4028235e38, 3.4028236e38, 127.0, -0.5]),
    st.floats(),
)
SCALARS: tuple[tuple[pa.DataType, st.SearchStrategy[Any]], ...] = (
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{bits}")(), integers(bits, True)) for bits in _WIDTHS),
    *((getattr(pa, f"uint{bits}")(), integers(bits, False)) for bits in _WIDTHS),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), FLOATS),
    *((pa.decimal128(p, s), decimals(p, s)) for p, s in ((3, 0), (4, 1), (10, 3), (20, 0), (38, 0), (38, 10))),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.sampled_from(["", "it's", "😀", "a\0b", "NULL"])),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["x", "y"])),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.time32("ms"), st.sampled_from([time(0), time(23, 59, 59, 999000)])),
    (pa.timestamp("us"), _MOMENTS),
    (pa.timestamp("ns"), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))),
    (pa.timestamp("s"), st.sampled_from([datetime(1, 1, 1), datetime(2024, 2, 29)])),
    (pa.timestamp("us", "Asia/Kolkata"), _MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
)


@st.composite
def arrays(draw: st.DrawFn, depth: int = 2) -> pa.Array:
    """A few values of one type of Arrow's, some of them NULL, of which some are cut off."""
    kind = draw(st.sampled_from(["scalar"] * 4 + ["list", "struct", "interval"] if depth else ["scalar"]))
    if kind == "list":
        items = draw(arrays(depth - 1))
        ends = draw(st.lists(st.integers(0, len(items)), min_size=1, max_size=4).map(sorted))
        made = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)
    elif kind == "struct":
        a = draw(arrays(depth - 1))
        names = draw(st.sampled_from([["x", "y"], ["y", "x"], ["X", "Y"], ["p", "q"]]))
        mask = pa.array(draw(st.lists(st.booleans(), min_size=len(a), max_size=len(a))), pa.bool_())
        made = pa.StructArray.from_arrays([a, pa.array(range(len(a)), pa.int32())], names=names, mask=mask)
    elif kind == "interval":
        made = pa.array([None, {"months": 1, "days": -2, "microseconds": 3}], INTERVAL)
    else:
        type, values = draw(st.sampled_from(SCALARS))
        made = pa.array(draw(st.lists(st.none() | values, max_size=4)), type)
    return made.slice(draw(st.integers(0, len(made))))


def nested(kind: str) -> st.SearchStrategy[Column]:
    """A column of a type, or of lists or structs of it."""
    plain = column("c", kind)
    child = column("element", kind, id=2)
    x, y = column("x", kind, id=2), column("y", "int64", id=3)
    return st.sampled_from([plain, plain, column("c", "list", child), column("c", "struct", x, y)])


def made_by_spark(spark: SparkSession, rows: pa.Table, target: Column, by_name: bool) -> pa.Table | InvalidError:
    try:
        frame = assigned_rows(frame_of(spark, rows), [target], "main.t", by_name=by_name)
        made = held_rows(frame, MANY, BYTES)
    except InvalidError as error:
        return error
    assert made is not None, frame.explain()
    return made


def exactly(values: pa.ChunkedArray) -> list[Any]:
    """The values so that -0.0 is not 0.0, and NaN is itself."""
    return [repr(value) for value in values.to_pylist()]


@settings(max_examples=tries(150, 3000), deadline=None)
@given(values=arrays(), target=st.sampled_from(TYPES).flatmap(nested), by_name=st.booleans())
@example(pa.array([2**53 + 1]), column("c", "float64"), False)
@example(pa.array([1e39]), column("c", "float32"), False)
@example(pa.array([float("inf")]), column("c", "float32"), False)
@example(pa.array([300]), column("c", "int8"), False)
@example(pa.array([Decimal("99.95")]), column("c", "decimal(4,1)"), False)
@example(pa.array([9999]), column("c", "decimal(4,1)"), False)
@example(pa.array([], pa.list_(pa.decimal128(4, 1))), column("c", "list", column("e", "decimal(4,1)", id=2)), False)
def test_spark_makes_the_same_of_every_value(
    spark: SparkSession, values: pa.Array, target: Column, by_name: bool
) -> None:
    rows = plain_rows(pa.table({"c": values}), [target], "main.t", by_name=by_name)
    alone = assigned_arrow(rows, [target], "main.t", by_name=by_name, fill=no_values)
    if alone is None:
        return
    made = made_by_spark(spark, rows, target, by_name)
    assert isinstance(made, pa.Table), made
    assert alone.schema.types == made.schema.types
    assert exactly(alone.column(0)) == exactly(made.column(0))
    alone.validate(full=True)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int32", pa.array([1, None, -5])), ("int64", pa.array([1], pa.uint8())),
        ("uint64", pa.array([2**64 - 1], pa.uint64())),
        ("float32", pa.array([0.1, -0.0])), ("float64", pa.array([1, 2])), ("decimal(10,2)", pa.array([1, 2])),
        ("decimal(10,2)", pa.array([Decimal("1.5")])), ("varchar", pa.array(["x"], pa.large_string())),
        ("varchar", pa.array(["x"]).dictionary_encode()), ("blob", pa.array([b"x"])),
        ("date", pa.array([date(1, 1, 1)])), ("time", pa.array([time(1, 2, 3, 4)])),
        ("timestamp", pa.array([datetime(1960, 1, 1)])),
        ("timestamptz", pa.array([datetime(1960, 1, 1, tzinfo=UTC)])), ("uuid", pa.array([None, "x"])),
        ("timestamp_ns", pa.array([1], pa.timestamp("ns"))), ("interval", pa.array([None], INTERVAL)),
    ],
)  # fmt: skip
def test_what_stays_what_it_is_takes_no_spark(kind: str, values: pa.Array) -> None:
    target = column("c", kind)
    rows = plain_rows(pa.table({"c": values}), [target], "main.t", by_name=False)
    made = assigned_arrow(rows, [target], "main.t", by_name=False, fill=no_values)
    assert made is not None
    assert len(made.column(0)) == len(values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int8", pa.array([300])), ("int64", pa.array([1.0])), ("varchar", pa.array([1])),
        ("float64", pa.array([2**60 + 1])), ("float32", pa.array([1e39])), ("decimal(4,1)", pa.array([9999])),
        ("decimal(4,1)", pa.array([Decimal("1.25")])), ("timestamptz", pa.array([datetime(2024, 1, 1)])),
        ("date", pa.array([datetime(2024, 1, 1)])), ("timestamp", pa.array([date(2024, 1, 1)])),
        ("variant", pa.array(["1"])), ("decimal(4,1)", pa.array([0.5])),
    ],
)  # fmt: skip
def test_what_becomes_another_value_is_left_to_spark(kind: str, values: pa.Array) -> None:
    target = column("c", kind)
    rows = plain_rows(pa.table({"c": values}), [target], "main.t", by_name=False)
    assert assigned_arrow(rows, [target], "main.t", by_name=False, fill=no_values) is None


def test_nanoseconds_stay_where_there_is_room_for_them() -> None:
    given = pa.table({"c": pa.array([-1, 1_500], pa.timestamp("ns"))})
    [whole] = plain_rows(given, [column("c", "timestamp_ns")], "t", by_name=False).columns
    [cut] = plain_rows(given, [column("c", "timestamp")], "t", by_name=False).columns
    assert whole.to_pylist() == [-1, 1_500]
    assert cut.to_pylist() == [datetime(1970, 1, 1) - timedelta(microseconds=1), datetime(1970, 1, 1, 0, 0, 0, 1)]


@pytest.mark.parametrize("kind", ["uuid", "varchar"])
def test_uuids_of_arrow_are_their_texts(kind: str) -> None:
    given = [UUID(int=2**128 - 1), None, UUID(int=7)]
    stored = pa.array([None if item is None else item.bytes for item in given], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    [texts] = plain_rows(pa.table({"c": uuids}), [column("c", kind)], "t", by_name=False).columns
    assert texts.to_pylist() == [None if item is None else str(item) for item in given]
    lists = pa.table({"c": pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), uuids)})
    with pytest.raises(InvalidError, match=r"column c is list<.*arrow.uuid>> in Arrow, which Spark has no type for"):
        plain_rows(lists, [column("c", "list", column("element", kind, id=2))], "t", by_name=False)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "America/New_York", "+05:30"])
def test_nanoseconds_are_cut_whatever_the_clock_says(zone: str | None) -> None:
    """Also in an hour that comes twice in the zone, and at the end of what nanoseconds can tell."""
    autumn = 1_730_012_400_000_000_000 - 18 * 3_600_000_000_000
    moments = [*(autumn + hour * 1_800_000_000_000 + 999 for hour in range(48)), -1, 1 - 2**63, 2**63 - 1, None]
    [cut] = plain_rows(
        pa.table({"c": pa.array(moments, pa.timestamp("ns", zone))}), [column("c", "timestamptz")], "t", by_name=False
    ).columns
    assert cut.type == pa.timestamp("us", zone and "UTC")
    assert cut.cast(pa.int64()).to_pylist() == [None if moment is None else moment // 1000 for moment in moments]


def maps(entries: list[tuple[str, int]]) -> pa.Array:
    """Two maps, of which the last has these entries, behind others that are cut off."""
    values = [[("x", 1)], None, [("x", 1), ("y", 1)], entries]
    return pa.array(values, pa.map_(pa.string(), pa.int64())).slice(2)


def in_lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, 0, 2], pa.int32()), pa.StructArray.from_arrays([values], names=["m"]))


def test_keys_may_be_those_of_other_maps() -> None:
    columns = [column("a", "map", column("key", "varchar", id=2), column("value", "int64", id=3))]
    given = maps([("y", 1), ("x", 2)])
    [found] = plain_rows(pa.table({"a": given}), columns, "main.t", by_name=False).columns
    assert found.to_pylist() == given.to_pylist()


@pytest.mark.parametrize(
    ("rows", "by_name", "message"),
    [
        (pa.table({"a": [1]}), False, "has 2 columns .a, b. and each row has 1"),
        (pa.table({"b": [1], "a": [2]}), False, "each row has the columns of main.t in another order"),
        (pa.table({"x": [1]}), True, "has no column 'x'"),
        (pa.table({"a": [1], "A": [1]}), True, "each row has two columns for 'a'"),
        (pa.table({"a": pa.array([1], pa.duration("us")), "b": [1]}), False, "column a is duration.us. in Arrow"),
        (pa.table({"a": pa.array([1], pa.decimal256(50)), "b": [1]}), False, "column a is decimal256"),
        (pa.table({"a": pa.array([[1]], pa.list_view(pa.int8())), "b": [1]}), False, "column a is list_view<"),
        (pa.table({"a": maps([("x", 1), ("x", 2)]), "b": [1, 1]}), False, "column a: a map has a key twice"),
        (pa.table({"a": [{"m": 1}] * 2, "b": in_lists(maps([("x", 1), ("x", 2)]))}), False, "column b: a map"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(rows: pa.Table, by_name: bool, message: str) -> None:
    columns = [column("a", "int64"), column("b", "int64", id=2)]
    with pytest.raises(InvalidError, match=message):
        plain_rows(rows, columns, "main.t", by_name=by_name)
