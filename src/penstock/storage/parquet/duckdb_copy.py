"""Writes the options of DuckDB's COPY for a data file of a table: how it is stored, and the ids of its fields."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from penstock.schema.columns import Column
from penstock.storage.duckdb_sql import text_literal
from penstock.storage.parquet.options import FileOptions

KEY = "file_key"  # the variable of a connection that the key of an encrypted file is put into
_KEY_BYTES = 16
EmbeddedColumn = tuple[str, int]


def new_key() -> str:
    """A fresh key for a file, as the catalog keeps it."""
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def copy_options(
    columns: Sequence[Column],
    options: FileOptions,
    row_group_rows: int,
    *,
    embedded: Sequence[EmbeddedColumn] = (),
    encrypted: bool = False,
) -> str:
    """The options of COPY. `embedded` are columns after the table's, with their field ids."""
    ids = [*map(_field_id, columns), *(f"{text_literal(name)}: {field}" for name, field in embedded)]
    parts = [
        "FORMAT parquet",
        f"COMPRESSION {options.compression}",
        f"ROW_GROUP_SIZE {row_group_rows}",
        f"PARQUET_VERSION V{options.version}",
        "GEOPARQUET_VERSION 'NONE'",
        f"FIELD_IDS {{{', '.join(ids)}}}",
        "RETURN_STATS",
    ]
    if options.compression == "zstd" and options.compression_level is not None:
        parts.append(f"COMPRESSION_LEVEL {options.compression_level}")
    if encrypted:
        parts.append(f"ENCRYPTION_CONFIG {{footer_key_value: getvariable({text_literal(KEY)})}}")
    return ", ".join(parts)


def _field_id(column: Column) -> str:
    if not column.type.nested:
        return f"{text_literal(column.name)}: {column.id}"
    children = ", ".join(_field_id(child) for child in column.children)
    return f"{text_literal(column.name)}: {{__duckdb_field_id: {column.id}, {children}}}"
