"""Reads the footers of Parquet files that others wrote: the fields that they hold, and statistics of the values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil, floor

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import UnsupportedError
from penstock.partitioning.texts import is_infinite
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics
from penstock.schema.types import Order, Type
from penstock.storage.filesystems import open_file
from penstock.storage.parquet.files import file_sizes
from penstock.storage.parquet.texts import Value, bound_texts

_PLAIN = {
    "BOOLEAN": "boolean", "INT32": "int32", "INT64": "int64", "FLOAT": "float32", "DOUBLE": "float64",
    "BYTE_ARRAY": "blob", "FIXED_LEN_BYTE_ARRAY": "blob", "INT96": "timestamp",
}  # fmt: skip
_ANNOTATED = {
    "String": "varchar", "Enum": "varchar", "JSON": "json", "UUID": "uuid", "Date": "date", "Interval": "interval",
}  # fmt: skip
_TICKS = {"milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}  # in a second
_TIMES = {"microseconds": "time"}
_LOCAL = {"milliseconds": "timestamp_ms", "microseconds": "timestamp", "nanoseconds": "timestamp_ns"}
_INSTANTS = dict.fromkeys(_TICKS, "timestamptz")
_TICKS_OF = {"timestamp_s": 1, "timestamp_ms": 10**3, "timestamp_ns": 10**9}
_MICROSECONDS = 10**6
# What DuckLake lets a file hold under a column, besides the column's own type, and both Spark and DuckDB read.
_NARROWER = {
    "int16": ("int8", "uint8"),
    "int32": ("int8", "int16", "uint8", "uint16"),
    "int64": ("int8", "int16", "int32", "uint8", "uint16", "uint32"),
    "uint16": ("uint8",),
    "uint32": ("uint8", "uint16"),
    "uint64": ("uint8", "uint16", "uint32"),
    "float64": ("float32",),
    "timestamp": ("timestamp_ms", "timestamp_ns"),
    "timestamp_s": ("timestamp_ms", "timestamp"),  # rounded
    "timestamp_ms": ("timestamp",),
    "timestamp_ns": ("timestamp_ms", "timestamp"),
}
# The files of these say less than the type, or nobody but DuckDB writes them.
_NOT_ADDED = ("int128", "uint128", "timetz", "variant", "geometry")


@dataclass(frozen=True)
class HeldType:
    """What a leaf of a file holds: DuckLake's type, None where it has none, and the ticks of a second in times."""

    type: Type | None
    shown: str
    ticks: int = _MICROSECONDS

    def fits(self, column: Type) -> bool:
        """Whether a column of a type can hold the leaf's values."""
        if self.type is None or column.name in _NOT_ADDED:
            return False
        if column.name == "decimal":
            return self.type.name == "decimal" and _digits_fit(self.type, column)
        return self.type.name in (column.name, *_NARROWER.get(column.name, ()))


@dataclass(frozen=True)
class FileField:
    """A field of a file. `nested` is DuckLake's name of a nested type; a field without it is a leaf."""

    name: str
    nested: str | None = None
    children: tuple[FileField, ...] = ()
    leaf: int = -1
    held: HeldType | None = None
    repeated: bool = False  # a leaf inside a list or map
    id: int | None = None  # that the file gives it

    @property
    def shown(self) -> str:
        """Its type, for messages."""
        return self.nested or (self.held.shown if self.held else "")


@dataclass(frozen=True)
class Footer:
    """The fields of a file, and its footer."""

    fields: tuple[FileField, ...]
    metadata: pq.FileMetaData
    size: int
    footer_size: int

    def statistics(self, column: Column, field: FileField) -> ColumnStatistics:
        """What the footer says of a leaf, in the catalog's texts for the column's type."""
        groups = range(self.metadata.num_row_groups)
        return _statistics(column, field, [self.metadata.row_group(group).column(field.leaf) for group in groups])


def read_footer(path: str) -> Footer:
    """Read the footer of a Parquet file."""
    with open_file(path) as opened:
        file = pq.ParquetFile(opened)
        return Footer(_fields(file), file.metadata, *file_sizes(opened))


def _fields(file: pq.ParquetFile) -> tuple[FileField, ...]:
    """The nesting is Arrow's reading of it; leaves are told by Parquet, for Arrow may remember another type."""
    numbers = count()

    def field(name: str, item: pa.Field) -> FileField:
        kind, number = item.type, _field_id(item)
        while isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        if pa.types.is_struct(kind):
            return FileField(name, "struct", tuple(field(child.name, child) for child in kind), id=number)
        if pa.types.is_map(kind):
            parts = (field("key", kind.key_field), field("value", kind.item_field))
            return FileField(name, "map", parts, id=number)
        if _is_list(kind):
            return FileField(name, "list", (field("list", kind.value_field),), id=number)
        leaf = next(numbers)
        stored = file.schema.column(leaf)
        repeated = stored.max_repetition_level > 0
        return FileField(name, leaf=leaf, held=_held(stored), repeated=repeated, id=number)

    found = tuple(field(item.name, item) for item in file.schema_arrow)
    if next(numbers) != len(file.schema):
        raise UnsupportedError("its columns are nested in a way that Penstock does not know")
    return found


def _field_id(item: pa.Field) -> int | None:
    number = (item.metadata or {}).get(b"PARQUET:field_id")
    return None if number is None else int(number)


def _is_list(kind: pa.DataType) -> bool:
    known = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(is_one(kind) for is_one in known) or bool(pa.types.is_large_list_view(kind))


def _held(leaf: pq.ColumnSchema) -> HeldType:
    said = json.loads(leaf.logical_type.to_json())
    kind, unit = said["Type"], said.get("timeUnit", "microseconds")
    shown = f"{kind.lower()} ({leaf.physical_type})" if kind != "None" else leaf.physical_type
    name: str | None = None
    match kind:
        case "None" | "Null":
            name = _PLAIN[leaf.physical_type]
        case "Int":
            name = f"{'' if said['isSigned'] else 'u'}int{said['bitWidth']}"
        case "Decimal":
            return HeldType(Type("decimal", leaf.precision, leaf.scale), f"decimal({leaf.precision},{leaf.scale})")
        case "Time":
            name = None if said["isAdjustedToUTC"] else _TIMES.get(unit)
        case "Timestamp" if not said.get("is_from_converted_type"):  # those have a zone for some readers only
            name = (_INSTANTS if said["isAdjustedToUTC"] else _LOCAL).get(unit)
        case _:
            name = _ANNOTATED.get(kind)
    if leaf.physical_type == "INT96":
        return HeldType(Type("timestamp"), "timestamp (INT96), which readers disagree about the zone of")
    return HeldType(Type(name) if name else None, name or shown, _TICKS[unit])


def _digits_fit(held: Type, column: Type) -> bool:
    """DuckLake asks that neither number is greater, and Spark that the digits before the point are not more."""
    before = held.precision - held.scale <= column.precision - column.scale
    return held.precision <= column.precision and held.scale <= column.scale and before


def _statistics(column: Column, field: FileField, chunks: Sequence[pq.ColumnChunkMetaData]) -> ColumnStatistics:
    stated = [chunk.statistics for chunk in chunks]
    values: int | None = None
    nulls: int | None = None
    # DuckDB's files count those of lists and maps wrong.
    if not field.repeated and all(item is not None and item.has_null_count for item in stated):
        nulls = sum(item.null_count for item in stated)
        values = sum(chunk.num_values for chunk in chunks) - nulls
    minimum, maximum = _bounds(column, field, stated)
    return ColumnStatistics(
        column_id=column.id,
        size=sum(chunk.total_compressed_size for chunk in chunks),
        value_count=values,
        null_count=nulls,
        minimum=minimum,
        maximum=maximum,
        # Writers leave NaN out of the bounds without a word: whoever goes by them has to reckon with it.
        contains_nan=True if column.type.order is Order.FLOAT and minimum is not None else None,
    )


def _bounds(column: Column, field: FileField, stated: Sequence[pq.Statistics | None]) -> tuple[str | None, str | None]:
    if column.type.order is Order.NONE or field.held is None:
        return None, None
    if any(item is None or (not item.has_min_max and item.num_values) for item in stated):
        return None, None
    found = [(item.min_raw, item.max_raw) for item in stated if item is not None and item.has_min_max]
    pairs = [_converted(column.type, field.held, low, high) for low, high in found]
    if not pairs or any(value != value for pair in pairs for value in pair):
        return None, None
    try:
        return bound_texts(column.type, min(low for low, _ in pairs), max(high for _, high in pairs))
    except UnicodeDecodeError:  # a text that was cut inside a character
        return None, None


def _converted(kind: Type, held: HeldType, low: Value, high: Value) -> tuple[Value, Value]:
    """A leaf's bounds as values of the column's type; a time that it has no tick for goes outwards."""
    match kind.order:
        case Order.DECIMAL:
            factor = 10 ** (kind.scale - (held.type.scale if held.type else 0))
            return _unscaled(low) * factor, _unscaled(high) * factor
        case Order.INTEGER if held.type and held.type.name.startswith("uint"):
            wrap = 2**64 if held.type.name == "uint64" else 2**32
            return int(low) % wrap, int(high) % wrap
        case Order.TIMESTAMP | Order.TIME:
            return _time(kind, held, int(low), floor), _time(kind, held, int(high), ceil)
        case Order.FLOAT:
            # Zero has two signs, of which a footer may name either.
            return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return low, high


def _time(kind: Type, held: HeldType, value: int, whole: Callable[[Fraction], int]) -> int:
    """A time in the ticks that statistics of its column are in, of which a timestamp_s has those of microseconds."""
    if kind.order is Order.TIMESTAMP and is_infinite(value, kind):
        return value
    ticks = whole(Fraction(value * _TICKS_OF.get(kind.name, _MICROSECONDS), held.ticks))
    return ticks * _MICROSECONDS if kind.name == "timestamp_s" else ticks


def _unscaled(value: Value) -> int:
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)
