"""Describes tables as Spark's catalog wants them: columns with defaults and comments, partitioning, properties."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.model.column_defaults import has_default
from penstock.ducklake.model.objects import SortKey, TableInfo
from penstock.ducklake.reading.column_layout import shown_schema
from penstock.ducklake.reading.row_conversion import Reading
from penstock.ducklake.transaction import Shown
from penstock.ducklake.writing.insert_defaults import default_expression
from penstock.errors import UnsupportedError
from penstock.partitioning import PartitionSpec, directory_names
from penstock.schema.columns import Column
from penstock.spark.expressions import spark_quoted
from penstock.spark.schemas import DEFAULT
from penstock.spark.versions import session_time_zone
from penstock.sql.column_texts import string_literal, type_text

PROVIDER = "ducklake"
NANOSECONDS = "nanoseconds"  # in a handle: how a read wants columns of type timestamp_ns
OPTION_PREFIX = "ducklake."
SORTED_BY = "ducklake.sorted_by"
COMMENT = "comment"
# DuckLake's transforms by Spark's names of them.
CALENDAR = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_BY_CALENDAR = {ours: spark for spark, ours in CALENDAR.items()}
_TRANSFORM = re.compile(r"(\w+)(?:\((\d+)\))?")


def described(attachment: Attachment, shown: Shown, info: TableInfo, handle: Mapping[str, Any], version: str) -> str:
    """What the Java class LakeTable is made of; `handle` is what finds the table again."""
    with shown.database.consistent():
        columns = objects.columns_at(objects.column_versions(shown.database, info.id), shown.at)
        comments = objects.column_comments(shown.database, shown.at, info.id)
        spec = objects.current_partition_spec(shown.database, shown.at, info.id)
        properties = _properties(attachment, shown, info)
    schema = shown_schema(columns, Reading(handle.get(NANOSECONDS) == "long"))
    zone = session_time_zone(attachment.spark) if any(map(has_default, columns)) else ""
    fields = [_field(f, c, comments.get(c.id), zone) for f, c in zip(schema, columns, strict=True)]
    return json.dumps(
        {
            "schema": T.StructType(fields).json(),
            "partitioning": _partitioning(spec, columns),
            "partitions": [] if spec is None else [unquote(name) for name in directory_names(spec, columns)],
            "properties": properties,
            "handle": json.dumps(handle, sort_keys=True),
            "id": info.uuid,
            "version": version,
        }
    )


def is_lasting(description: str | None) -> bool:
    """Whether a description depends on nothing but the catalog: defaults are written for the session's time zone."""
    return description is None or DEFAULT not in description


def _field(field: T.StructField, column: Column, comment: str | None, zone: str) -> T.StructField:
    """A column with what Spark reads in its metadata; the reader's own metadata stays out."""
    metadata: dict[str, str] = {} if comment is None else {COMMENT: comment}
    if has_default(column):
        sql = _default(column, field.dataType, zone)
        metadata |= {DEFAULT: sql, "EXISTS_DEFAULT": f"CAST(NULL AS {type_text(field.dataType)})"}
    return T.StructField(field.name, _plain(field.dataType), column.nulls_allowed, metadata)


def _default(column: Column, kind: T.DataType, zone: str) -> str:
    try:
        value = default_expression(column, zone)
    except UnsupportedError as error:
        # Spark puts it into rows that leave the column out, and only then it is an error.
        value = f"raise_error({string_literal(str(error))})"
    return f"CAST({value} AS {type_text(kind)})"


def _plain(kind: T.DataType) -> T.DataType:
    """A type without the metadata of its fields."""
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, _plain(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_plain(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(_plain(kind.keyType), _plain(kind.valueType), kind.valueContainsNull)
    return kind


def _partitioning(spec: PartitionSpec | None, columns: Sequence[Column]) -> list[list[Any]]:
    if spec is None:
        return []
    names = {column.id: column.name for column in columns}
    found = []
    for field in spec.fields:
        name, number = _TRANSFORM.fullmatch(str(field.transform)).groups()  # type: ignore[union-attr]
        parts = [_BY_CALENDAR.get(name, name), spark_quoted(names[field.column_id])]
        found.append([*parts, int(number)] if number else parts)
    return found


def _properties(attachment: Attachment, shown: Shown, info: TableInfo) -> dict[str, str]:
    tags = objects.tags(shown.database, shown.at, info.id)
    order = objects.sort_order(shown.database, shown.at, info.id)
    options = {
        OPTION_PREFIX + item.name: str(item.value)
        for item in attachment.catalog.options()
        if item.scope == "table" and item.scope_id == info.id
    }
    sorted_by = {SORTED_BY: ", ".join(map(_sort_key, order))} if order else {}
    kept = {name: value for name, value in tags.items() if value is not None}
    return {**kept, **options, **sorted_by, "provider": PROVIDER}


def _sort_key(key: SortKey) -> str:
    return f"{key.expression} {key.direction} {key.null_order.replace('_', ' ')}"
