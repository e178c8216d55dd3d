"""Turns rows of a Python program into Arrow: tuples, dicts, dataclasses, and what libraries hand over as Arrow.

Each value stands for one type of Spark's, whatever column it goes to: an int for bigint, a float for double, a Decimal
for a decimal of its digits, a str for string, a datetime without a zone for timestamp_ntz and one with a zone for
timestamp. What fits the column is decided afterwards, by the rules that hold for DataFrames.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any
from uuid import UUID

import pyarrow as pa

from penstock.errors import InvalidError
from penstock.schema.columns import Column, find_column
from penstock.spark.column_assignment import writer_type
from penstock.spark.releases import arrow_type_of

_DIGITS = 38
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_MICROSECONDS, _NANOSECONDS = pa.timestamp("us"), pa.timestamp("ns")
_INSTANTS = pa.timestamp("us", "UTC")
_MISSING = ("NaTType", "NAType")  # of pandas: no value; the first of them would pass for a datetime
_TIMES_OF_NUMPY = {"M": "datetime64[us]", "m": "timedelta64[us]"}


@dataclass(frozen=True)
class GivenRows:
    """Rows in Arrow, and whether their columns go by name."""

    table: pa.Table
    by_name: bool


def given_rows(rows: object, columns: Sequence[Column], *, by_name: bool) -> GivenRows | None:
    """The rows that a program gives for a table; None where there is not one, nor anything that names columns.

    Dicts and dataclasses go by name.
    """
    if isinstance(rows, pa.Table):
        return GivenRows(rows, by_name)
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return GivenRows(pa.table(rows), by_name)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InvalidError(
            f"rows cannot be a {type(rows).__name__}; give a DataFrame, a pyarrow.Table, or a list of tuples or dicts"
        )
    listed = list(rows)
    if not listed:
        return None
    names, values, named = _by_columns(listed)
    if by_name and names is None:
        raise InvalidError("the rows are tuples, which have no names for by_name=True; give dicts, or leave it out")
    by_name = by_name or named
    if names is None:  # as many as there are; that they are as many as the table's is looked at later
        names = [columns[i].name if i < len(columns) else f"column {i + 1}" for i in range(len(values))]
    found = [
        find_column(columns, name) if by_name else columns[i] if i < len(columns) else None
        for i, name in enumerate(names)
    ]
    places = range(len(listed))
    arrays = [
        _column(_Values(name, items, places), column) for name, items, column in zip(names, values, found, strict=True)
    ]
    return GivenRows(pa.Table.from_arrays(arrays, names=names), by_name)


def _by_columns(rows: Sequence[Any]) -> tuple[list[str] | None, list[list[Any]], bool]:
    """The names of the rows' columns, if they have names, the values of each, and whether they must go by name."""
    if all(isinstance(row, tuple | list) for row in rows):
        names = _names_of(rows[0])
        for place, row in enumerate(rows):
            if len(row) != len(rows[0]) or _names_of(row) != names:
                raise InvalidError(
                    f"row {place} is {_shown(row)}, and row 0 is {_shown(rows[0])}; give the same columns in all rows"
                )
        return names, [list(items) for items in zip(*rows, strict=True)], False
    mappings = [_mapping(row, f"row {place}") for place, row in enumerate(rows)]
    keys = list(mappings[0])
    _check_keys(mappings, keys, "row {}".format, "column")
    return keys, [[row[key] for row in mappings] for key in keys], True


def _names_of(row: Any) -> list[str] | None:
    """The names of a Row's or a named tuple's fields."""
    names = getattr(row, "__fields__", None) or getattr(row, "_fields", None)
    return None if names is None else list(names)


def _mapping(row: Any, place: str) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    raise InvalidError(
        f"{place} is {_shown(row)}, a {type(row).__name__}; give rows that are all tuples, or all dicts or dataclasses"
    )


def _check_keys(
    mappings: Sequence[Mapping[Any, Any]], keys: Sequence[Any], place: Callable[[int], str], thing: str
) -> None:
    """Refuse keys that are no names, and rows that give others than the first one."""
    for key in keys:
        if not isinstance(key, str):
            raise InvalidError(f"{place(0)} has the key {_shown(key)}; the keys of a dict are names of columns")
    wanted = set(keys)
    for number, mapping in enumerate(mappings):
        others = () if mapping.keys() == wanted else (*keys, *mapping)
        for key in (key for key in others if key not in mapping or key not in wanted):
            gives, lacks = (number, 0) if key in mapping else (0, number)
            raise InvalidError(
                f"{place(gives)} gives {thing} {key!r} and {place(lacks)} does not; give the same to all rows, "
                "None for no value"
            )


@dataclass(frozen=True)
class _Values:
    """The values of a column or of a part of it, with the row of each."""

    path: str
    items: Sequence[Any]
    rows: Sequence[int]

    def error(self, place: int, what: str) -> InvalidError:
        return InvalidError(f"row {self.rows[place]}, column {self.path}: {what}")


def _column(values: _Values, column: Column | None) -> pa.Array:
    """The values of a column; with the nanoseconds of NumPy's and pandas' times, where it has room for them."""
    if column is not None and column.type.name == "timestamp_ns":
        plain = [_plain(item) for item in values.items]
        if {_kind(item) for item in plain if item is not None} == {"datetime"}:
            given = [None if item is None else finer for item, finer in zip(plain, values.items, strict=True)]
            with suppress(pa.ArrowException, OverflowError):  # of times that nanoseconds do not reach
                return pa.array(given, _NANOSECONDS)
    return _array(values, column)


def _array(values: _Values, column: Column | None) -> pa.Array:
    """The values as Arrow, in the type of Spark's that they stand for."""
    values = dataclasses.replace(values, items=[_plain(item) for item in values.items])
    kinds = {_kind(item) for item in values.items if item is not None}
    if not kinds:
        return pa.nulls(len(values.items))
    made = _MAKERS.get(_merged(kinds))
    if made is None:
        raise _mixed(values)
    return made(values, column)


def _plain(item: Any) -> Any:
    """A value of Python's own: those of NumPy and pandas are taken for what they stand for."""
    kind = type(item)
    if kind.__module__ == "numpy":
        return _of_numpy(item)
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas."):
        return None
    return str(item) if isinstance(item, UUID) else item


def _of_numpy(item: Any) -> Any:
    """What a value or an array of NumPy's stands for; a time that Python has none for stays, and is refused."""
    unit = _TIMES_OF_NUMPY.get(item.dtype.kind)
    if unit is None:
        return item.tolist()
    if item.ndim:
        return list(item)
    value = item.astype(unit).tolist()  # finer ones would come as numbers
    return item if isinstance(value, int) else value


def _kind(item: Any) -> str:
    match item:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case Decimal():
            return "Decimal"
        case str():
            return "str"
        case bytes() | bytearray() | memoryview():
            return "bytes"
        case datetime():
            return "datetime" if item.tzinfo is None else "instant"
        case date():
            return "date"
        case time():
            return "time"
    if isinstance(item, Mapping) or _names_of(item) is not None or _is_dataclass(item):
        return "fields"
    return "list" if isinstance(item, list | tuple) else type(item).__qualname__


def _is_dataclass(item: Any) -> bool:
    return dataclasses.is_dataclass(item) and not isinstance(item, type)


def _merged(kinds: set[str]) -> str:
    """The one kind that values are of; whole numbers go with floats, and with decimals."""
    for wide in ("float", "Decimal"):
        if kinds == {"int", wide}:
            return wide
    return kinds.pop() if len(kinds) == 1 else ""


def _mixed(values: _Values) -> InvalidError:
    """The error of a value that no column takes, or of the first that is of another kind than those before it."""
    first = next(item for item in values.items if item is not None)
    for place, item in enumerate(values.items):
        if item is not None and _kind(item) not in _MAKERS:
            return values.error(
                place, f"{_shown(item)} is a {type(item).__name__}, which no column takes; give it as a DataFrame"
            )
        if item is not None and not _merged({_kind(first), _kind(item)}):
            return values.error(
                place, f"{_shown(item)} is a {type(item).__name__}, and {_shown(first)} before it is none; convert one"
            )
    return values.error(0, "the values are of several types; convert them to one")


def _whole(values: _Values, _: Column | None) -> pa.Array:
    if all(item is None or _LEAST <= item <= _GREATEST for item in values.items):
        return pa.array([item if item is None else int(item) for item in values.items], pa.int64())
    return _decimals(values, _)


def _decimals(values: _Values, _: Column | None) -> pa.Array:
    """In a decimal that holds the digits of each."""
    digits = scale = 0
    numbers = [None if item is None else _without_exponent(Decimal(item)) for item in values.items]
    for place, number in enumerate(numbers):
        if number is None:
            continue
        parts = number.as_tuple()
        if not isinstance(parts.exponent, int):
            raise values.error(place, f"{_shown(values.items[place])} is no number of a decimal")
        fraction = max(0, -parts.exponent)
        whole = max(0, len(parts.digits) + parts.exponent) if any(parts.digits) else 0
        digits, scale = max(digits, whole), max(scale, fraction)
        if digits + scale > _DIGITS:
            raise values.error(
                place, f"{_shown(values.items[place])} takes a decimal of more than {_DIGITS} digits, with those before"
            )
    return pa.array(numbers, pa.decimal128(max(1, digits + scale), scale))


def _without_exponent(number: Decimal) -> Decimal:
    """A zero has no digits, however far from the point: Arrow would look for room for them."""
    return number if number or -_DIGITS <= number.adjusted() <= 0 else Decimal(0)


def _floats(values: _Values, column: Column | None) -> pa.Array:
    """As doubles; a whole number among them that is none is refused, unless the column rounds it anyway."""
    rounds = column is not None and column.type.name in ("float32", "float64")
    for place, item in enumerate(values.items):
        if isinstance(item, int) and not rounds and _is_beyond_doubles(item):
            raise values.error(place, f"{_shown(item)} is no double, which the floats beside it are; convert one")
    return _of_type(pa.float64(), float)(values, column)


def _is_beyond_doubles(number: int) -> bool:
    try:
        return float(number) != number
    except OverflowError:  # has an error of its own
        return False


def _times(values: _Values, _: Column | None) -> pa.Array:
    for place, item in enumerate(values.items):
        if item is not None and item.tzinfo is not None:
            raise values.error(place, f"{_shown(item)} has a zone, and times of day have none; take it away")
    return pa.array(values.items, pa.time64("us"))


def _texts(values: _Values, _: Column | None) -> pa.Array:
    for place, item in enumerate(values.items):
        try:
            if item is not None:
                item.encode()
        except UnicodeEncodeError:
            raise values.error(place, f"{_shown(item)} is no text: half of a surrogate pair stands alone") from None
    # Not by `str(item)`, which a member of an Enum of texts answers with its name.
    return pa.array([item if item is None else str.__str__(item) for item in values.items], pa.string())


def _lists(values: _Values, column: Column | None) -> pa.Array:
    child = column.children[0] if column is not None and column.type.name == "list" else None
    offsets, rows = _offsets(values)
    items = [item for given in values.items if given is not None for item in given]
    return pa.ListArray.from_arrays(offsets, _array(_Values(f"{values.path}.element", items, rows), child))


def _offsets(values: _Values) -> tuple[pa.Array, list[int]]:
    """Where the items of each list or map begin, NULL for one that is NULL; and the row of each item."""
    starts: list[int | None] = []
    rows: list[int] = []
    for item, row in zip(values.items, values.rows, strict=True):
        starts.append(None if item is None else len(rows))
        rows.extend([row] * len(item or ()))
    return pa.array([*starts, len(rows)], pa.int32()), rows


def _fields(values: _Values, column: Column | None) -> pa.Array:
    """A map for a column of maps, else a struct."""
    if column is not None and column.type.name == "map" and all(isinstance(i, Mapping | None) for i in values.items):
        return _maps(values, column)
    present = [place for place, item in enumerate(values.items) if item is not None]
    mappings = [_members(values, place) for place in present]
    keys = list(mappings[0])
    _check_keys(mappings, keys, lambda n: f"row {values.rows[present[n]]}, column {values.path}:", "field")
    by_place = dict(zip(present, mappings, strict=True))
    arrays = []
    for key in keys:
        items = [by_place[place][key] if place in by_place else None for place in range(len(values.items))]
        child = find_column(column.children, key) if column is not None and column.type.name == "struct" else None
        arrays.append(_array(_Values(f"{values.path}.{key}", items, values.rows), child))
    mask = pa.array([item is None for item in values.items], pa.bool_())
    return pa.StructArray.from_arrays(arrays, names=keys, mask=mask)


def _members(values: _Values, place: int) -> Mapping[str, Any]:
    item = values.items[place]
    names = _names_of(item)
    if names is not None:
        if len(set(names)) < len(names):
            raise values.error(place, f"{_shown(item)} has two fields of one name; rename one")
        return dict(zip(names, item, strict=True))
    members = _mapping(item, f"row {values.rows[place]}, column {values.path}")
    if not members:
        raise values.error(place, "a struct needs at least one field")
    return members


def _maps(values: _Values, column: Column) -> pa.Array:
    offsets, rows = _offsets(values)
    keys = list(chain.from_iterable(item for item in values.items if item is not None))
    items = list(chain.from_iterable(item.values() for item in values.items if item is not None))
    if None in keys:
        raise InvalidError(f"row {rows[keys.index(None)]}, column {values.path}: a key of a map cannot be None")
    key, item = column.children
    # Keys may not be of no type, which those of maps without any would be.
    found = (
        _array(_Values(f"{values.path}.key", keys, rows), key)
        if keys
        else pa.array([], arrow_type_of(writer_type(key)))
    )
    return pa.MapArray.from_arrays(offsets, found, _array(_Values(f"{values.path}.value", items, rows), item))


def _of_type(kind: pa.DataType, convert: Callable[[Any], Any] = lambda item: item) -> Callable[..., pa.Array]:
    def made(values: _Values, _: Column | None) -> pa.Array:
        converted = []
        for place, item in enumerate(values.items):
            try:
                converted.append(None if item is None else convert(item))
            except OverflowError as error:
                raise values.error(place, f"{_shown(item)} is out of range: {error}") from None
        return pa.array(converted, kind)

    return made


_MAKERS: dict[str, Callable[[_Values, Column | None], pa.Array]] = {
    "bool": _of_type(pa.bool_()),
    "int": _whole,
    "float": _floats,
    "Decimal": _decimals,
    "str": _texts,
    "bytes": _of_type(pa.binary(), bytes),
    "datetime": _of_type(_MICROSECONDS),
    "instant": _of_type(_INSTANTS, lambda item: item.astimezone(UTC)),
    "date": _of_type(pa.date32()),
    "time": _times,
    "list": _lists,
    "fields": _fields,
}


def _shown(item: Any) -> str:
    text = repr(item)
    return text if len(text) <= 100 else f"{text[:100]}..."
