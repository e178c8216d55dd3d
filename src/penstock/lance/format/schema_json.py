"""Writes an Arrow schema as the JSON text of Lance namespaces (JsonArrowSchema), and reads it back.

That form knows no units, time zones, dictionaries or views. So the schema's metadata carries the exact schema too:
a field is read from there as long as its JSON says the same.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import InvalidError, UnsupportedError

EXACT_SCHEMA = "penstock:arrow-schema"
_NAMED = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32": pa.time32("ms"),
    "time64": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "duration": pa.duration("us"),
    "utf8": pa.string(),
    "large_utf8": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
}
_NAMES = {kind: name for name, kind in _NAMED.items()} | {pa.string_view(): "utf8", pa.binary_view(): "binary"}
_UNITS_LOST: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (kinds.is_time32, "time32"),
    (kinds.is_time64, "time64"),
    (kinds.is_timestamp, "timestamp"),
    (kinds.is_duration, "duration"),
    (kinds.is_interval, "interval"),
    (kinds.is_union, "union"),
)
_DECIMALS = {
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}
_LISTS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (kinds.is_list, "list"),
    (kinds.is_list_view, "list"),
    (kinds.is_large_list, "large_list"),
    (kinds.is_large_list_view, "large_list"),
    (kinds.is_fixed_size_list, "fixed_size_list"),
)
_SIZED = {"fixed_size_binary", "fixed_size_list", *_DECIMALS}
_EXTENSION = "ARROW:extension:name"


def schema_to_json(schema: pa.Schema) -> str:
    """The schema as the text of a JsonArrowSchema, which `schema_from_json` turns into an equal one."""
    metadata = {key: text for key, text in _texts(schema.metadata).items() if key != EXACT_SCHEMA}
    plain = schema.with_metadata(
        {key: value for key, value in (schema.metadata or {}).items() if key != EXACT_SCHEMA.encode()}
    )
    exact = b64encode(plain.serialize().to_pybytes()).decode()
    fields = [_field_json(field, field.name) for field in schema]
    return json.dumps({"fields": fields, "metadata": metadata | {EXACT_SCHEMA: exact}}, ensure_ascii=False)


def schema_from_json(text: str) -> pa.Schema:
    """The schema that a JsonArrowSchema describes, whoever wrote it.

    What its JSON cannot say, and no exact schema adds, is taken as microseconds without time zone.
    """
    try:
        node = json.loads(text)
    except ValueError as error:
        raise InvalidError(f"the namespace's schema is no JSON ({error}); write a JsonArrowSchema") from error
    fields = _member(node, "fields", list, "the schema")
    metadata = _metadata(node, "the schema")
    exact = _exact(metadata.pop(EXACT_SCHEMA, None))
    known = {(field.name, _shape(_type_json(field.type, field.name))): field for field in exact}
    if _texts(exact.metadata) == metadata:
        metadata = exact.metadata
    return pa.schema([_field(field, "", known) for field in fields], metadata or None)


def _exact(encoded: str | None) -> pa.Schema:
    if encoded is None:
        return pa.schema([])
    try:
        return pa.ipc.read_schema(pa.py_buffer(b64decode(encoded, validate=True)))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InvalidError(
            f"the schema's metadata {EXACT_SCHEMA} is no Arrow schema ({error}); remove it to read the JSON's types"
            " alone"
        ) from error


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Arrow's metadata is bytes, JSON's is text: bytes that are no UTF-8 are whole in the exact schema only."""
    pairs = (metadata or {}).items()
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in pairs}


def _field_json(field: pa.Field, path: str) -> dict[str, Any]:
    return {
        "name": field.name,
        "nullable": field.nullable,
        "metadata": _field_metadata(field),
        "type": _type_json(field.type, path),
    }


def _field_metadata(field: pa.Field) -> dict[str, str]:
    extension = {_EXTENSION: field.type.extension_name} if isinstance(field.type, pa.BaseExtensionType) else {}
    return _texts(field.metadata) | extension


def _type_json(kind: pa.DataType, path: str) -> dict[str, Any]:
    if isinstance(kind, pa.BaseExtensionType):
        return _type_json(kind.storage_type, path)
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return _type_json(kind.value_type, path)
    if kinds.is_struct(kind):
        return _node("struct", [_field_json(field, f"{path}.{field.name}") for field in kind])
    if kinds.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return _node("map", [_field_json(entries, path)])
    for belongs, name in _LISTS:
        if belongs(kind):
            element = _field_json(kind.value_field, f"{path}.element")
            return _node(name, [element], kind.list_size if name == "fixed_size_list" else None)
    return _atomic_json(kind, path)


def _atomic_json(kind: pa.DataType, path: str) -> dict[str, Any]:
    if kind in _NAMES:
        return _node(_NAMES[kind])
    if kinds.is_decimal(kind):
        return _node(f"decimal{kind.bit_width}", length=kind.precision * 1000 + kind.scale)
    if kinds.is_fixed_size_binary(kind):
        return _node("fixed_size_binary", length=kind.byte_width)
    for belongs, name in _UNITS_LOST:
        if belongs(kind):
            return _node(name)
    raise UnsupportedError(f"column {path}: a Lance namespace's schema has no name for Arrow's {kind}; cast the column")


def _node(name: str, fields: list[dict[str, Any]] | None = None, length: int | None = None) -> dict[str, Any]:
    return {"type": name, "fields": fields or [], "length": length}


def _shape(node: Any) -> Any:
    """What a type's JSON says, however it is spelled; anything that is no type is a shape of its own."""
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        return repr(node)
    name = _type_name(node)
    fields = tuple(
        (field.get("name"), field.get("nullable"), _shape(field.get("type")))
        if isinstance(field, dict)
        else repr(field)
        for field in node.get("fields") or ()
    )
    return name, node.get("length") if name in _SIZED else None, fields


def _type_name(node: dict[str, Any]) -> str:
    name: str = node["type"].lower()
    return "bool" if name == "boolean" else name


def _field(node: Any, parent: str, known: Mapping[tuple[str, Any], pa.Field]) -> pa.Field:
    name = _member(node, "name", str, f"a field of {parent or 'the schema'}")
    path = f"{parent}.{name}" if parent else name
    nullable = _member(node, "nullable", bool, f"field {path}")
    kind_node = _member(node, "type", dict, f"field {path}")
    _member(kind_node, "type", str, f"the type of field {path}")
    metadata = _metadata(node, f"field {path}")
    exact = known.get((name, _shape(kind_node)))
    if not nullable and _type_name(kind_node) == "null":
        raise InvalidError(f"field {path} of the namespace's schema has the type null, so it must be nullable")
    if exact is None:
        return pa.field(name, _type(kind_node, path), nullable, metadata or None)
    exact = exact.with_nullable(nullable)
    return exact if _field_metadata(exact) == metadata else exact.with_metadata(metadata)


def _type(node: dict[str, Any], path: str) -> pa.DataType:
    name = _type_name(node)
    if name in _NAMED:
        return _NAMED[name]
    match name:
        case "struct":
            return pa.struct(_fields(node, path))
        case "list":
            return pa.list_(_only(node, path))
        case "large_list":
            return pa.large_list(_only(node, path))
        case "map":
            return _map(_only(node, path).type, path)
    if name not in _SIZED:
        raise UnsupportedError(f"field {path} of the namespace's schema has the type {name!r}, which is not understood")
    length = _member(node, "length", int, f"the type of field {path}")
    try:
        if name == "fixed_size_list":
            return pa.list_(_only(node, path), length)
        return pa.binary(length) if name == "fixed_size_binary" else _decimal(name, length)
    except (ValueError, pa.ArrowException) as error:
        raise InvalidError(f"field {path} of the namespace's schema: {name} of length {length}: {error}") from error


def _decimal(name: str, length: int) -> pa.DataType:
    precision = (length + 128) // 1000  # scales go from -128 to 127
    return _DECIMALS[name](precision, length - precision * 1000)


def _map(entries: pa.DataType, path: str) -> pa.DataType:
    if not kinds.is_struct(entries) or entries.num_fields != 2:
        raise InvalidError(f"field {path} of the namespace's schema: a map has one field, a struct of key and value")
    return pa.map_(entries.field(0).with_nullable(False), entries.field(1))


def _fields(node: dict[str, Any], path: str) -> list[pa.Field]:
    return [_field(child, path, {}) for child in _member(node, "fields", list, f"the type of field {path}")]


def _only(node: dict[str, Any], path: str) -> pa.Field:
    fields = _fields(node, path)
    if len(fields) != 1:
        raise InvalidError(
            f"field {path} of the namespace's schema: its {node['type']} has {len(fields)} fields, not one"
        )
    return fields[0]


def _metadata(node: dict[str, Any], place: str) -> dict[str, str]:
    metadata = node.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise InvalidError(f"{place} has metadata that is no map of texts; write a JsonArrowSchema")
    return dict(metadata)


def _member(node: Any, key: str, kind: type, place: str) -> Any:
    value = node.get(key) if isinstance(node, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidError(f"{place} of a namespace has no {key!r} that is a {kind.__name__}; write a JsonArrowSchema")
    return value
