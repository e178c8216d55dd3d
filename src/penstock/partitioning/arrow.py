"""Brings columns, as Spark hands them over in Arrow, into the one form that transforms compute on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError
from penstock.predicates.calendar import DAY, days_of
from penstock.predicates.values import Scalar
from penstock.schema.types import Order, Type

INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
_FORMS = {
    "boolean": pa.bool_(),
    "uint64": pa.decimal128(20, 0),
    "int128": pa.float64(),
    "uint128": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timetz": pa.time64("us"),
    "interval": INTERVAL,
}
_OF_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
COARSE = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}  # their unit in microseconds
INFINITE_DAYS, INFINITE_TIME = 2**31 - 1, 2**63 - 1  # DuckDB's infinities, in whatever unit a timestamp is
_USUAL = {  # the years that Arrow's calendar surely knows
    Order.DATE: (days_of(1), days_of(10_000) - 1),
    Order.TIMESTAMP: (days_of(1) * DAY, days_of(10_000) * DAY - 1),
}
_USUAL_NANOSECONDS = (1 - INFINITE_TIME, INFINITE_TIME - 1)  # all but the infinities


def stored_form(array: pa.Array, type: Type) -> pa.Array:
    """Convert an array, as Spark hands it over, to the one form of its type.

    That is numbers for all times: days of dates, microseconds since 1970 (UTC) or midnight of the others, nanoseconds
    of timestamp_ns. Integers are int64, but uint64 a decimal and 128-bit ones a double; the rest is Spark's own form.
    """
    try:
        return _stored(array, type)
    except pa.ArrowException as error:
        raise InvalidError(
            f"the partition of a {type} cannot be told from Arrow's {array.type} ({error}); cast the column to {type}"
        ) from error


def _stored(array: pa.Array, type: Type) -> pa.Array:
    match type.order:
        case Order.TIMESTAMP:
            return instants(array, type)
        case Order.TEXT | Order.BYTES:
            return array.cast(_OF_VIEWS[array.type]) if array.type in _OF_VIEWS else array
        case Order.DECIMAL:
            return array.cast(pa.decimal128(type.precision, type.scale))
    cast = array.cast(_FORMS.get(type.name, pa.int64()))
    if type.name == "date":
        return cast.view(pa.int32())
    return cast.view(pa.int64()) if type.name in ("time", "timetz") else cast


def instants(array: pa.Array, type: Type) -> pa.Array:
    """Timestamps as numbers: nanoseconds of timestamp_ns, microseconds of the others, rounded to the type's unit."""
    if pa.types.is_timestamp(array.type):
        array = _in_nanoseconds(array) if type.name == "timestamp_ns" else array.cast(pa.timestamp("us", array.type.tz))
    numbers = array.view(pa.int64())
    return _finite(numbers, partial(_rounded, unit=COARSE[type.name])) if type.name in COARSE else numbers


def in_units(numbers: pa.Array, type: Type) -> pa.Array:
    """Microseconds of a timestamp_s or timestamp_ms as whole units of the type."""
    return _finite(numbers, lambda micros: pc.divide(micros, COARSE[type.name]))


def _in_nanoseconds(array: pa.Array) -> pa.Array:
    if array.type.unit == "ns":
        return array
    micros = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())
    return _finite(micros, lambda finite: pc.multiply_checked(finite, 1000))


def _finite(numbers: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Timestamps converted, but for infinite ones: those are the same number in every unit."""
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None or -INFINITE_TIME < ends["min"] <= ends["max"] < INFINITE_TIME:
        return convert(numbers)
    infinite = pc.is_in(numbers, value_set=pa.array([-INFINITE_TIME, INFINITE_TIME], pa.int64()))
    return pc.if_else(infinite, numbers, convert(pc.if_else(infinite, 0, numbers)))


def _rounded(numbers: pa.Array, unit: int) -> pa.Array:
    """Whole units, as DuckDB casts a finer timestamp: halves go away from 1970."""
    whole = pc.multiply(pc.divide(numbers, unit), unit)
    rest = pc.subtract(numbers, whole)
    up = pc.greater_equal(rest, unit // 2)
    down = pc.less_equal(rest, -unit // 2)
    try:
        return pc.add_checked(whole, pc.if_else(up, unit, pc.if_else(down, -unit, 0)))
    except pa.ArrowInvalid as error:
        raise InvalidError(
            f"a timestamp rounded to {unit} microseconds is past the last that Spark has; cut it with date_trunc before"
        ) from error


def unscaled(array: pa.Array) -> pa.Array:
    """Decimals without their point, as decimals of scale 0."""
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(array), array.buffers(), offset=array.offset)


def moments(array: pa.Array, type: Type) -> pa.Array | None:
    """Stored dates or timestamps as Arrow's own, or None where some are infinite or outside the years 1 to 9999.

    A timestamp_ns is cut towards 1970, as DuckDB does when it takes calendar parts.
    """
    first, last = _USUAL_NANOSECONDS if type.name == "timestamp_ns" else _USUAL[type.order]
    ends = pc.min_max(array).as_py()
    if ends["min"] is not None and not first <= ends["min"] <= ends["max"] <= last:
        return None
    if type.order is Order.DATE:
        return array.view(pa.date32())
    return (pc.divide(array, 1000) if type.name == "timestamp_ns" else array).view(pa.timestamp("us"))


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece and without a dictionary."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole


def mapped(array: pa.Array, text: Callable[[Scalar], str | None]) -> pa.StringArray:
    """The text of every value, computed once for each distinct one; NULL stays NULL."""
    encoded = array.dictionary_encode()
    return pa.array(map(text, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)
