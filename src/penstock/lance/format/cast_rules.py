"""Casts between Arrow's types that hold no others: which there are, and how each keeps every value whole."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

_ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
CastRule = Callable[[pa.Array, pa.DataType], pa.Array]
_FAMILIES: tuple[tuple[str, tuple[Callable[[pa.DataType], bool], ...]], ...] = (
    ("boolean", (kinds.is_boolean,)),
    ("integer", (kinds.is_integer,)),
    ("float", (kinds.is_floating,)),
    ("decimal", (kinds.is_decimal,)),
    ("text", (kinds.is_string, kinds.is_large_string, kinds.is_string_view)),
    ("bytes", (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)),
    ("date", (kinds.is_date,)),
    ("time", (kinds.is_time,)),
    ("timestamp", (kinds.is_timestamp,)),
    ("duration", (kinds.is_duration,)),
)


def cast_rule(source: pa.DataType, target: pa.DataType) -> CastRule | None:
    """The function that casts arrays of one type to another; it raises ArrowException for a value that does not fit.

    None where no value of the one is a value of the other.
    """
    return _RULES.get((_family(source), _family(target)))


def _family(kind: pa.DataType) -> str:
    return next((name for name, tests in _FAMILIES if any(belongs(kind) for belongs in tests)), str(kind))


def _verify(right: pa.Array) -> None:
    if not pc.all(right, min_count=0).as_py():
        raise pa.ArrowInvalid("a value does not fit")


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(target)


def _integer_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    if kinds.is_float16(target):  # the one whose range Arrow does not check
        _verify(pc.equal(result.cast(pa.float64()), array.cast(pa.float64())))
    return result


def _integer_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(pa.decimal128(20, 0)).cast(target)  # Arrow wants the digits of the type, not of the values


def _float_to_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    wide = array.cast(pa.float64())
    signed = kinds.is_signed_integer(target)
    limit = 2.0 ** (target.bit_width - signed)  # Arrow's own check of 2**63 depends on the processor
    _verify(pc.and_(pc.less(wide, limit), pc.greater_equal(wide, -limit if signed else 0.0)))
    return wide.cast(target)


def _to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    _verify(pc.or_(pc.is_finite(result), pc.invert(pc.is_finite(array))))
    return result


def _float_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(pa.string()).cast(target)  # its shortest text: Arrow's own way rounds to the scale


def _decimal_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    return _to_float(array.cast(pa.float64()), target)


def _text_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    _verify(pc.or_(pc.invert(pc.is_inf(result)), pc.match_substring_regex(array, _INFINITE)))
    return result


def _text_to_timestamp(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    zoned = pc.match_substring_regex(array, _ZONED)
    none = pa.scalar(None, array.type)
    instants = pc.if_else(zoned, array, none).cast(pa.timestamp(target.unit, "UTC"))
    naive = pc.if_else(zoned, none, array).cast(pa.timestamp(target.unit))
    return pc.coalesce(instants.view(target), naive.view(target))


def _timestamp_to_text(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.view(pa.timestamp(array.type.unit, array.type.tz and "UTC")).cast(target)


def _timestamp_to_timestamp(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    if array.type.unit == "ns" and target.unit != "ns":
        array = _microseconds(array)
    return array.view(pa.timestamp(array.type.unit, target.tz)).cast(target)


def _microseconds(array: pa.Array) -> pa.Array:
    """Spark has microseconds only: nanoseconds are floored, so that instants before 1970 keep their order too."""
    numbers = array.view(pa.int64())
    quotient = pc.divide(numbers, 1000)
    below = pc.less(numbers, pc.multiply(quotient, 1000))
    return pc.subtract(quotient, below.cast(pa.int64())).view(pa.timestamp("us"))


def _timestamp_to_date(array: pa.Array, target: pa.DataType) -> pa.Array:
    instants = array.view(pa.timestamp(array.type.unit))
    days = instants.cast(pa.date32())
    _verify(pc.equal(days.cast(instants.type), instants))
    return days.cast(target)


_RULES: dict[tuple[str, str], CastRule] = {
    **{(name, name): _cast for name in ("integer", "decimal", "text", "bytes", "date", "time", "duration")},
    **{(name, "text"): _cast for name in ("boolean", "integer", "float", "decimal", "text", "bytes", "date", "time")},
    **{("text", name): _cast for name in ("boolean", "integer", "decimal", "bytes", "date")},
    ("boolean", "integer"): _cast,
    ("integer", "float"): _integer_to_float,
    ("integer", "decimal"): _integer_to_decimal,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _to_float,
    ("float", "decimal"): _float_to_decimal,
    ("decimal", "integer"): _cast,
    ("decimal", "float"): _decimal_to_float,
    ("text", "float"): _text_to_float,
    ("text", "timestamp"): _text_to_timestamp,
    ("timestamp", "text"): _timestamp_to_text,
    ("timestamp", "timestamp"): _timestamp_to_timestamp,
    ("timestamp", "date"): _timestamp_to_date,
    ("date", "timestamp"): _cast,
}
