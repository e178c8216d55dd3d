"""Converts a column from Spark's Arrow form to the form that its file holds. A value that does not fit is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError
from penstock.partitioning.arrow import in_units, instants
from penstock.schema.columns import Column
from penstock.storage.duckdb_files import duckdb_cursor
from penstock.storage.parquet.schema import WellKnownBinary, file_field, file_type

_UUID = re.compile(r"\{?[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\}?", re.IGNORECASE)
_LARGEST = {"int128": 2.0**127, "uint128": 2.0**128}
_LONGEST_SAMPLE = 200


def check_not_null(columns: Sequence[Column], rows: pa.Table) -> None:
    """Raise an InvalidError, which shows a row, for a column that takes no NULL and has one.

    The columns are the first of the rows.
    """
    for position, column in enumerate(columns):
        values = rows.column(position)
        if column.nulls_allowed or not values.null_count:
            continue
        bad = rows.slice(pc.index(pc.is_null(values), True).as_py(), 1)
        row = ", ".join(f"{item.name}: {sample_text(bad.column(i)[0])}" for i, item in enumerate(columns))
        raise InvalidError(
            f"column {column.name!r} is NOT NULL, but {values.null_count} of {len(values)} rows have no value for it, "
            f"such as ({_shortened(row)})"
        )


def to_file_form(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a top-level column to what its file holds; an InvalidError names the column and a bad value."""
    kind = file_type(column)
    if values.type == kind and not column.type.nested and column.type.name not in _CONVERSIONS:
        return values
    return pa.chunked_array([_converted(column, chunk, column.name) for chunk in values.chunks], type=kind)


def _converted(column: Column, array: pa.Array, path: str) -> pa.Array:
    match column.type.name:
        case "list":
            offsets, mask, (values,) = _list_parts(array, array.values)
            [child] = column.children
            return pa.ListArray.from_arrays(
                offsets, _converted(child, values, f"{path}.element"), type=file_type(column), mask=mask
            )
        case "map":
            offsets, mask, parts = _list_parts(array, array.keys, array.items)
            keys, items = (
                _converted(child, part, f"{path}.{child.name}")
                for child, part in zip(column.children, parts, strict=True)
            )
            return pa.MapArray.from_arrays(offsets, keys, items, type=file_type(column), mask=mask)
        case "struct":
            children = [
                _converted(child, part, f"{path}.{child.name}")
                for child, part in zip(column.children, array.flatten(), strict=True)
            ]
            fields = [file_field(child) for child in column.children]
            return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))
        case _:
            return _checked(column, array, path)


def _list_parts(array: pa.Array, *children: pa.Array) -> tuple[pa.Array, pa.Array | None, list[pa.Array]]:
    """The offsets of lists, where they are NULL, and the slices of their children that they really use."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, pa.scalar(first, array.offsets.type)).cast(pa.int32())
    return offsets, _mask(array), [child.slice(first, last - first) for child in children]


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _checked(column: Column, array: pa.Array, path: str) -> pa.Array:
    convert = _CONVERSIONS.get(column.type.name, _cast)
    try:
        return convert(column, array)
    except (pa.ArrowException, ValueError) as error:
        bad = _first_bad(lambda part: convert(column, part), array)
        raise InvalidError(
            f"column {path!r} is {column.type}: {sample_text(bad)} does not fit ({_reason(error)})"
        ) from None


def _first_bad(convert: Callable[[pa.Array], object], array: pa.Array) -> Any:
    """A value that cannot be converted, found by halving what cannot."""
    while len(array) > 1:
        half = len(array) // 2
        try:
            convert(array.slice(0, half))
        except (pa.ArrowException, ValueError):
            array = array.slice(0, half)
        else:
            array = array.slice(half)
    return array[0]


def sample_text(value: Any) -> str:
    """A value as an error message shows it."""
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        text = str(value.cast(pa.string()))  # a date that Python has no value for
    return _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SAMPLE else text[:_LONGEST_SAMPLE] + "..."


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0]


def _cast(column: Column, array: pa.Array) -> pa.Array:
    kind = file_type(column)
    return array if array.type == kind else array.cast(kind)


def _large_integer(column: Column, array: pa.Array) -> pa.Array:
    """128-bit integers: a DOUBLE in DuckDB's files, which they are read back from."""
    values = array.cast(pa.float64())
    lowest = -_LARGEST["int128"] if column.type.name == "int128" else 0.0
    fits = pc.and_(pc.greater_equal(values, lowest), pc.less(values, _LARGEST[column.type.name]))
    if pc.all(fits).as_py() is False:
        raise ValueError("not a number of 128 bits")
    return pc.round(values, round_mode="half_to_even")


def _uuid(column: Column, array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    if pc.all(pc.match_substring_regex(texts, f"(?i)^{_UUID.pattern}$")).as_py() is False:
        raise ValueError("not a UUID")
    digits = pc.fill_null(pc.replace_substring_regex(texts, "[{}-]", ""), "0" * 32)
    octets = bytes.fromhex("".join(digits.to_pylist()))
    validity = None if not texts.null_count else pc.is_valid(texts).buffers()[1]
    storage = pa.Array.from_buffers(pa.binary(16), len(texts), [validity, pa.py_buffer(octets)])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _json(column: Column, array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    check = duckdb_cursor().register("texts", pa.table({"text": texts}))
    if check.execute("SELECT 1 FROM texts WHERE NOT json_valid(text) LIMIT 1").fetchone():
        raise ValueError("not JSON")
    return pa.ExtensionArray.from_storage(pa.json_(), texts)


def _geometry(column: Column, array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(WellKnownBinary(), well_known_binary(array).cast(pa.binary()))


def well_known_binary(array: pa.Array) -> pa.Array:
    """The bytes of geometries; Spark may hand them over beside their SRID."""
    if not pa.types.is_struct(array.type):
        return array
    return array.flatten()[array.type.get_field_index("wkb")]


def _instants(column: Column, array: pa.Array) -> pa.Array:
    return instants(array, column.type).view(file_type(column))


def _milliseconds(column: Column, array: pa.Array) -> pa.Array:
    return in_units(instants(array, column.type), column.type).view(file_type(column))


_CONVERSIONS: dict[str, Callable[[Column, pa.Array], pa.Array]] = {
    "int128": _large_integer,
    "uint128": _large_integer,
    "uuid": _uuid,
    "json": _json,
    "geometry": _geometry,
    "timestamp_s": _instants,
    "timestamp_ms": _milliseconds,
    "timestamp_ns": _instants,
}
