"""Compares the types of columns in Parquet files with Delta's."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from penstock.delta.format.partition_values import value_type


def is_of_type(leaf: pq.ColumnSchema, type_name: str) -> bool:
    """Tells whether a file's column is what the Delta type is to a reader that knows only the file."""
    physical, logical = str(leaf.physical_type), json.loads(leaf.logical_type.to_json())
    kind = str(logical["Type"])
    match type_name:
        case "string":
            return physical == "BYTE_ARRAY" and kind == "String"
        case "binary":
            return physical == "BYTE_ARRAY" and kind == "None"
        case "byte" | "short" | "integer":
            return physical == "INT32" and _is_signed(logical)
        case "long":
            return physical == "INT64" and _is_signed(logical)
        case "float" | "double" | "boolean":
            return physical == type_name.upper() and kind == "None"
        case "date":
            return physical == "INT32" and kind == "Date"
        case "timestamp" if physical == "INT96":
            return True
        case "timestamp" | "timestamp_ntz":
            known = kind == "Timestamp" and logical["timeUnit"] in ("milliseconds", "microseconds")
            return known and logical["isAdjustedToUTC"] is (type_name == "timestamp")
    wanted = value_type(type_name)
    return kind == "Decimal" and (logical["precision"], logical["scale"]) == (wanted.precision, wanted.scale)


def describe_type(leaf: pq.ColumnSchema) -> str:
    """Describes a file's type for messages: `INT64 Timestamp(isAdjustedToUTC=false, timeUnit=microseconds, ...)`."""
    return leaf.physical_type if str(leaf.logical_type) == "None" else f"{leaf.physical_type} {leaf.logical_type}"


def _is_signed(logical: dict[str, object]) -> bool:
    return logical["Type"] == "None" or (logical["Type"] == "Int" and logical["isSigned"] is True)
