"""Writes columns as Spark's DDL: what ALTER TABLE adds, as `Table.add_column` takes it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as T  # noqa: N812

from penstock.spark.expressions import spark_quoted


def column_text(path: Sequence[str], kind: T.DataType, nullable: bool, default: str | None, comment: str | None) -> str:
    """A column, or a field at a path, with all that Spark says of it."""
    parts = [".".join(map(spark_quoted, path)), type_text(kind)]
    parts += [] if nullable else ["NOT NULL"]
    parts += [] if default is None else [f"DEFAULT {default}"]
    parts += [] if comment is None else [f"COMMENT {string_literal(comment)}"]
    return " ".join(parts)


def type_text(kind: T.DataType) -> str:
    """A type as DDL, with the names of its fields quoted."""
    if isinstance(kind, T.ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    if isinstance(kind, T.StructType):
        return f"STRUCT<{', '.join(map(_field_text, kind.fields))}>"
    return str(kind.simpleString())


def _field_text(field: T.StructField) -> str:
    comment = field.metadata.get("comment")
    return f"{spark_quoted(field.name)}: {type_text(field.dataType)}" + (
        f" COMMENT {string_literal(comment)}" if comment else ""
    )


def string_literal(text: str) -> str:
    """A text as Spark's SQL quotes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
