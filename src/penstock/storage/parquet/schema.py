"""Builds the Arrow schema of a data file: physical types as DuckDB writes them, and a field id at every level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD

# PyArrow has no annotation for these in Parquet, and readers would take them for something else.
DUCKDB_ONLY = ("variant", "interval", "timetz")


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """Geometries: PyArrow writes this name as Parquet's GEOMETRY, with bounding boxes."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WellKnownBinary:
        return cls()


_TYPES = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "int128": pa.float64(),
    "uint128": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "time": pa.time64("us"),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "varchar": pa.string(),
    "blob": pa.binary(),
    "json": pa.json_(),
    "uuid": pa.uuid(),
    "geometry": WellKnownBinary(),
}


_known_leaves: dict[str, list[tuple[str, str]]] = {}  # by the text of a schema: thousands of files may have the same


def file_schema(columns: Iterable[Column], row_ids: bool, *, ids: bool = True) -> pa.Schema:
    """The schema of a file that PyArrow writes, without field ids where the table has none."""
    fields = [file_field(column, ids) for column in columns]
    if row_ids:
        fields.append(_field(EMBEDDED_ROW_ID, pa.int64(), EMBEDDED_ROW_ID_FIELD))
    return pa.schema(fields)


def file_field(column: Column, ids: bool = True) -> pa.Field:
    """A column as a field of the file's Arrow schema."""
    return _field(column.name, file_type(column, ids), column.id if ids else None)


def file_type(column: Column, ids: bool = True) -> pa.DataType:
    """The Arrow type that a file holds a column in."""
    match column.type.name:
        case "list":
            return pa.list_(_member("element", column.children[0], ids))
        case "map":
            key, value = column.children
            return pa.map_(_member("key", key, ids, nullable=False), _member("value", value, ids))
        case "struct":
            return pa.struct([file_field(child, ids) for child in column.children])
        case "decimal":
            return pa.decimal128(column.type.precision, column.type.scale)
        case name:
            return _TYPES[name]


def columns_with_statistics(schema: pa.Schema) -> list[str]:
    """The paths of a file's columns that get statistics in its footer: all but floats.

    PyArrow leaves NaN out of the bounds of floats and does not say so: to readers NaN is greater than every number, and
    they would skip row groups that hold a match.
    """
    return [path for path, kind in _leaves(schema) if kind not in ("FLOAT", "DOUBLE")]


def leaf_paths(schema: pa.Schema) -> list[str]:
    """The paths of a file's columns, each column chunk's, in their order."""
    return [path for path, _ in _leaves(schema)]


def _leaves(schema: pa.Schema) -> list[tuple[str, str]]:
    """The path and the physical type of each column chunk."""
    text = str(schema)
    if text not in _known_leaves:
        sink = pa.BufferOutputStream()
        pq.ParquetWriter(sink, schema, store_schema=False).close()
        columns = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
        _known_leaves[text] = [(column.path, column.physical_type) for column in columns]
    return _known_leaves[text]


def needs_duckdb(columns: Iterable[Column]) -> bool:
    """Whether a table has a type that only DuckDB writes to Parquet."""
    return any(item.type.name in DUCKDB_ONLY for column in columns for item in column.walk())


def leaf_columns(columns: Iterable[Column]) -> Iterator[Column]:
    """The columns and fields that hold values, in the order of a file's column chunks."""
    for column in columns:
        if column.type.nested:
            yield from leaf_columns(column.children)
        else:
            yield column


def _member(name: str, column: Column, ids: bool, *, nullable: bool = True) -> pa.Field:
    return _field(name, file_type(column, ids), column.id if ids else None, nullable=nullable)


def _field(name: str, kind: pa.DataType, field_id: int | None, *, nullable: bool = True) -> pa.Field:
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, kind, nullable, metadata=metadata)
