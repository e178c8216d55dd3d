"""Converts partition values to the texts of Delta's log, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from math import isinf, isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning.arrow import mapped, plain, stored_form
from penstock.partitioning.texts import read_text
from penstock.predicates.calendar import DAY, date_text, days_of
from penstock.predicates.values import Scalar
from penstock.schema.types import Type

_TYPES = {
    "string": Type("varchar"),
    "byte": Type("int8"),
    "short": Type("int16"),
    "integer": Type("int32"),
    "long": Type("int64"),
    "float": Type("float32"),
    "double": Type("float64"),
    "boolean": Type("boolean"),
    "date": Type("date"),
    "timestamp": Type("timestamptz"),
    "timestamp_ntz": Type("timestamp"),
    "binary": Type("blob"),
}
_DECIMAL_TYPE = re.compile(r"decimal\((\d+), ?(\d+)\)")
_MOST_DIGITS = 76  # more than any decimal has; a text with a huge exponent would else fill the memory
_FIRST_DAY, _LAST_DAY = days_of(1), days_of(10_000) - 1
_EPOCH = date(1970, 1, 1)
_ZONE = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
_ESCAPED_BYTES = re.compile(r"(\\u00[0-9A-Fa-f]{2})+")


def value_type(type_name: str) -> Type:
    """Returns Penstock's type for one of Delta's; an UnsupportedError for those that cannot partition a table."""
    decimal = _DECIMAL_TYPE.fullmatch(type_name)
    if decimal:
        return Type("decimal", int(decimal[1]), int(decimal[2]))
    if type_name not in _TYPES:
        raise UnsupportedError(
            f"Delta tables are not partitioned by a {type_name}; partition by a column of another type"
        )
    return _TYPES[type_name]


def to_text(value: Scalar, type_name: str) -> str | None:
    """Returns the text of a value; None is NULL, and so are '' and no bytes, for which Delta has no text.

    Dates are days and timestamps microseconds since 1970 (of UTC, but of `timestamp_ntz`), or Python's own.
    """
    value_type(type_name)
    if value is None:
        return None
    return _writer(type_name)(value) or None


def from_text(text: str | None, type_name: str) -> Scalar:
    """Returns the value of a text: dates are days, timestamps microseconds since 1970; '' is NULL.

    A timestamp without a zone is one of UTC: that of its writer is not in the log.
    """
    type = value_type(type_name)
    if not text:
        return None
    if type_name == "binary":
        return _bytes(text)
    try:
        return read_text(_without_exponent(text) if type.name == "decimal" else text, type)
    except ValueError as error:
        raise InvalidError(
            f"the partition value {text!r} is no {type_name}: the log is damaged; remove its file and write it again"
        ) from error


def is_zoneless(text: str | None, type_name: str) -> bool:
    """Returns whether a text is that of an instant, and does not say in which zone."""
    return type_name == "timestamp" and bool(text) and not _ZONE.search(text or "")


def array_texts(array: pa.Array, type_name: str) -> pa.StringArray:
    """Returns the text of each value of an array."""
    type = value_type(type_name)
    array = stored_form(plain(array), type)
    match type_name:
        case "string":
            written = array
        case "byte" | "short" | "integer" | "long" | "boolean":
            written = array.cast(pa.string())
        case "float" | "double":
            bits = array.view(pa.int32() if type_name == "float" else pa.int64())  # or 0.0 and -0.0 might be one
            written = mapped(bits, _of_bits(bits.type, _writer(type_name)))
        case _:
            written = mapped(array, _writer(type_name))
    written = written.cast(pa.string())
    return pc.if_else(pc.equal(written, ""), pa.scalar(None, pa.string()), written)


def repeated_value(text: str | None, type_name: str, kind: pa.DataType, rows: int) -> pa.Array:
    """Returns the value of a text as often as there are rows, in the Arrow type that files hold it in."""
    value = from_text(text, type_name)
    if value is None:
        return pa.nulls(rows, kind)
    numeric = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    one = pa.array([value], pa.int32() if pa.types.is_date(kind) else pa.int64() if numeric else None)
    typed = one.view(kind) if numeric else one.cast(kind)
    return typed.take(pa.array([0] * rows, pa.int32()))


def _writer(type_name: str) -> Callable[[Scalar], str]:
    type = value_type(type_name)
    return partial(_decimal, type=type) if type.name == "decimal" else _WRITERS[type_name]


def _of_bits(bits: pa.DataType, write: Callable[[Scalar], str]) -> Callable[[int], str]:
    integer, real = (np.int32, np.float32) if bits == pa.int32() else (np.int64, np.float64)
    return lambda number: write(float(integer(number).view(real)))


def _real(value: float, shortest: Callable[[float], str] = repr) -> str:
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return shortest(value)


def _single(value: float) -> str:
    return repr(float(str(np.float32(value))))


def _decimal(value: Decimal, type: Type) -> str:
    written = f"{Decimal(value):.{type.scale}f}"
    if Decimal(written) != value or Decimal(written).adjusted() >= type.precision - type.scale:
        raise InvalidError(f"{value} does not fit into a {type}; round it, or widen the column")
    return written


def _without_exponent(text: str) -> str:
    """Writes out the exponent of a decimal, which Spark puts behind very small ones."""
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        raise ValueError(text)
    return f"{value:f}"


def _date(value: int | date) -> str:
    days = (value - _EPOCH).days if isinstance(value, date) else value
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise InvalidError(f"a date {days} days from 1970 is outside of the years 1 to 9999; make it NULL")
    return date_text(days)


def _clock(value: int | datetime, separator: str) -> str:
    days, micros = divmod(_micros(value), DAY)
    seconds, fraction = divmod(micros, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{_date(days)}{separator}{clock}.{fraction:06}"


def _micros(value: int | datetime) -> int:
    if isinstance(value, int):
        return value
    return (value - datetime(1970, 1, 1, tzinfo=value.tzinfo)) // timedelta(microseconds=1)


def _instant(value: int | datetime) -> str:
    if isinstance(value, datetime) and (value.tzinfo is None or value.utcoffset() != timedelta()):
        raise InvalidError(f"{value.isoformat()} is no timestamp of UTC; convert it with astimezone(UTC)")
    return _clock(value, "T") + "Z"


def _local(value: int | datetime) -> str:
    return _clock(value, " ").removesuffix(".000000")


def _escaped_bytes(value: bytes) -> str:
    """Returns bytes as the text that they are in UTF-8, as Spark does it, or each as the protocol escapes it."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and not _ESCAPED_BYTES.fullmatch(text):
        return text
    return "".join(f"\\u{byte:04X}" for byte in value)


def _bytes(text: str) -> bytes:
    """Reads bytes of either form: delta-rs escapes all of them, others only those that JSON escapes anyway."""
    if _ESCAPED_BYTES.fullmatch(text):
        return bytes(int(escape, 16) for escape in text.split("\\u")[1:])
    return text.encode()


_WRITERS: dict[str, Callable[[Scalar], str]] = {
    "string": str,
    "byte": str,
    "short": str,
    "integer": str,
    "long": str,
    "float": partial(_real, shortest=_single),
    "double": _real,
    "boolean": lambda value: "true" if value else "false",
    "date": _date,
    "timestamp": _instant,
    "timestamp_ntz": _local,
    "binary": _escaped_bytes,
}
