"""Writes values as text, letter for letter as DuckDB's extension does in the catalog and in hashes, and reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import partial
from math import isfinite, isinf, isnan
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning.arrow import INFINITE_DAYS, INFINITE_TIME, mapped, unscaled
from penstock.predicates.calendar import DAY, date_text, days_of, time_text, timestamp_text
from penstock.predicates.domains import grid
from penstock.predicates.values import Scalar
from penstock.schema.types import Order, Type

_NO_TIME = "00:00:00"
_UUID_LENGTH = 36
_PLAIN_BYTES = frozenset(range(32, 127)) - set(b"\\'\"")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|[+-]?inf(inity)?", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?([0-9]*)|\.([0-9]+))")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,9}))?")
_TIMESTAMP = re.compile(r"(\S{10})[T ](\S+?)(?:Z|\+00(?::00)?)?")
_NANOSECONDS = {"timestamp_s": 10**9, "timestamp_ms": 10**6, "timestamp_ns": 1}  # in a unit; 1000 in the others


def text(value: Scalar, type: Type) -> str:
    """The text of a value that is not NULL.

    Timestamps and times are microseconds (timestamp_ns: nanoseconds), dates are days, and an interval is a tuple of
    months, days and microseconds. Equal values have equal texts: both zeros are `0.0`, and all NaNs `nan`.
    """
    match type.order:
        case Order.BOOLEAN:
            return "true" if value else "false"
        case Order.INTEGER:
            return str(int(value))
        case Order.FLOAT:
            return _real(value, type)
        case Order.DECIMAL:
            return _decimal(value, type)
        case Order.TEXT:
            return _uuid(value) if type.name == "uuid" else str(value)
        case Order.BYTES:
            return _bytes(value)
        case Order.DATE:
            return infinity_text(value) if is_infinite(value, type) else date_text(value)
        case Order.TIME:
            return time_text(value)
        case Order.TIMESTAMP:
            return infinity_text(value) if is_infinite(value, type) else _timestamp(value, type)
    match type.name:
        case "int128" | "uint128":
            return _whole(value, type)
        case "timetz":
            return f"{time_text(value)}+00"
        case "interval":
            months, days, micros = value
            return (_months(months) + _days(days) + _clock(micros)).strip() or _NO_TIME
    raise UnsupportedError(f"Penstock does not know the text that DuckLake has for a {type}")


def texts(array: pa.Array, type: Type) -> pa.Array:
    """The text of each value of a stored array; NULL stays NULL."""
    match type.order:
        case Order.TEXT:
            return _uuids(array) if type.name == "uuid" else array
        case Order.BOOLEAN | Order.INTEGER:
            return array.cast(pa.string())
        case Order.DECIMAL:
            return _decimals(array, type)
    return _intervals(array) if type.name == "interval" else mapped(array, partial(text, type=type))


def read_text(text: str, type: Type) -> Scalar:
    """The value that has this text; a ValueError where it is none of the type, or the type has no such texts.

    Read are booleans, numbers, text, and the times of the years 1 to 9999: timestamps also with a `T`, and in UTC
    whether they say so or not.
    """
    read = _READERS.get(type.order)
    if read is None:
        raise ValueError(f"Penstock reads no {type} from text")
    value = read(text, type)
    if value is None:
        raise ValueError(f"{text!r} is no {type}")
    return value


def is_infinite(value: Scalar, type: Type) -> bool:
    """Whether a date or timestamp is one of DuckDB's infinities, which Spark shows as far-off numbers."""
    far: int = INFINITE_DAYS if type.order is Order.DATE else INFINITE_TIME
    return value in (far, -far)


def infinity_text(value: int) -> str:
    """DuckDB's text of an infinite date or timestamp."""
    return "infinity" if value > 0 else "-infinity"


def _real(value: float, type: Type) -> str:
    if isnan(value):
        return "nan"
    # The shortest digits of a float32, in the form of a double; DuckDB rarely has more, which read as the same float32.
    shortest = float(str(np.float32(value))) if type.name == "float32" else float(value)
    return repr(shortest + 0.0)


def _whole(value: float, type: Type) -> str:
    if not isfinite(value):
        raise InvalidError(f"{value} is no {type}; remove it or make it NULL")
    return str(round(value))


def _decimal(value: Decimal, type: Type) -> str:
    written = f"{Decimal(value):.{type.scale}f}"  # whole numbers come as int, whose own format goes through a float
    return written.replace("0.", ".", 1) if type.precision == type.scale else written


def _decimals(array: pa.Array, type: Type) -> pa.Array:
    digits = unscaled(array).cast(pa.string())
    if type.scale == 0:
        return digits
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    width = type.scale + (type.precision > type.scale)
    padded = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), width, "0")
    pointed = pc.binary_replace_slice(padded, -type.scale, -type.scale, ".")
    return pc.binary_join_element_wise(sign, pointed, "")


def _uuid(value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError as error:
        raise InvalidError(f"{value!r} is no uuid; write it as 550e8400-e29b-41d4-a716-446655440000") from error


def _uuids(array: pa.Array) -> pa.Array:
    usual = pc.all(pc.equal(pc.binary_length(array), _UUID_LENGTH)).as_py() is not False
    return pc.ascii_lower(array) if usual else mapped(array, _uuid)


def _bytes(value: bytes) -> str:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"the blob {value!r} is not UTF-8: DuckLake can only use text as a partition value; partition by its bucket"
        ) from error
    return "".join(chr(byte) if byte in _PLAIN_BYTES else f"\\x{byte:02X}" for byte in value)


def _timestamp(value: int, type: Type) -> str:
    second = 1_000_000_000 if type.name == "timestamp_ns" else 1_000_000
    return timestamp_text(value, second) + ("+00" if type.name == "timestamptz" else "")


def _intervals(array: pa.Array) -> pa.Array:
    months, days, micros = array.flatten()
    joined = pc.binary_join_element_wise(mapped(months, _months), mapped(days, _days), mapped(micros, _clock), "")
    return pc.if_else(pc.equal(joined, ""), _NO_TIME, pc.ascii_ltrim(joined, " "))


def _months(months: int) -> str:
    """Like the other parts of an interval: empty or after a blank."""
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    return _counted(sign * years, "year") + _counted(sign * rest, "month")


def _days(days: int) -> str:
    return _counted(days, "day")


def _counted(number: int, unit: str) -> str:
    return f" {number} {unit}{'s' * (abs(number) > 1)}" if number else ""


def _clock(micros: int) -> str:
    if micros == 0:
        return ""
    return f" -{time_text(-micros)}" if micros < 0 else f" {time_text(micros)}"


def _read_boolean(text: str, type: Type) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _read_integer(text: str, type: Type) -> int | None:
    value = int(text) if _INTEGER.fullmatch(text) else None
    return value if value is not None and _fits(value, type) else None


def _read_real(text: str, type: Type) -> float | None:
    if not _REAL.fullmatch(text):
        return None
    with np.errstate(over="ignore"):
        value = float(np.float32(text)) if type.name == "float32" else float(text)
    return None if isinf(value) and "inf" not in text.lower() else value


def _read_decimal(text: str, type: Type) -> Decimal | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or len((match[2] or match[3] or "").rstrip("0")) > type.scale:
        return None
    value = Decimal(text)
    return value if _fits(value, type) else None


def _read_string(text: str, type: Type) -> str:
    return str(UUID(text)) if type.name == "uuid" else text


def _read_date(text: str, type: Type) -> int | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return _read_infinity(text, INFINITE_DAYS)
    day = date(*map(int, match.groups()))
    return days_of(day.year, day.month, day.day)


def _read_time(text: str, type: Type) -> int | None:
    clock = _nanoseconds(text)
    return clock // 1000 if clock is not None and clock % 1000 == 0 and _fits(clock // 1000, type) else None


def _read_timestamp(text: str, type: Type) -> int | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return _read_infinity(text, INFINITE_TIME)
    days, clock = _read_date(match[1], type), _nanoseconds(match[2])
    if days is None or clock is None or clock >= DAY * 1000 or clock % _NANOSECONDS.get(type.name, 1000):
        return None
    if type.name != "timestamp_ns":
        return days * DAY + clock // 1000
    value = days * DAY * 1000 + clock
    return value if abs(value) < INFINITE_TIME else None


def _read_infinity(text: str, far: int) -> int | None:
    return {"infinity": far, "-infinity": -far}.get(text)


def _nanoseconds(text: str) -> int | None:
    """The nanoseconds of a time of day."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((match[4] or "").ljust(9, "0"))


def _fits(value: int | Decimal, type: Type) -> bool:
    steps = grid(type)
    return steps is not None and not steps.beside(steps.step(value), steps.step(value) + 1)


_READERS: dict[Order, Callable[[str, Type], Scalar]] = {
    Order.BOOLEAN: _read_boolean,
    Order.INTEGER: _read_integer,
    Order.FLOAT: _read_real,
    Order.DECIMAL: _read_decimal,
    Order.TEXT: _read_string,
    Order.DATE: _read_date,
    Order.TIME: _read_time,
    Order.TIMESTAMP: _read_timestamp,
}
