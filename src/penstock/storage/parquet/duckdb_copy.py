"""Writes data files with DuckDB's COPY: how they are stored, the ids of their fields, and where they go."""

from __future__ import annotations

import base64
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from penstock.errors import PenstockError
from penstock.schema.columns import Column
from penstock.storage.duckdb_files import load_httpfs
from penstock.storage.duckdb_sql import text_literal
from penstock.storage.ended_tasks import check_task
from penstock.storage.filesystems import delete_file, make_directory, upload_file
from penstock.storage.parquet.options import FileOptions
from penstock.storage.paths import is_local

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


@dataclass(frozen=True)
class Copied:
    """What COPY tells of the file that it wrote: `statistics` by the quoted path of each leaf."""

    rows: int
    size: int
    footer_size: int
    statistics: Mapping[str, Mapping[str, Any]]


def copy_rows(
    connection: duckdb.DuckDBPyConnection, select: str, location: str, options: str, key: str | None
) -> Copied:
    """Write the rows of a query to a file; nothing is left of it where that fails, or the worker's task has ended.

    The key is kept out of the statement, since errors quote those.
    """
    if key:
        load_httpfs(connection)
        connection.execute(f"SET VARIABLE {KEY} = from_base64(?)", [key])
    make_directory(location[: location.rfind("/") + 1])
    try:
        if is_local(location):
            copied = _copied(connection, select, location.removeprefix("file://"), options)
        else:
            with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
                local = f"{directory}/file.parquet"
                copied = _copied(connection, select, local, options)
                upload_file(local, location)
        check_task()
        return copied
    except duckdb.Error as error:
        delete_file(location)
        raise PenstockError(f"DuckDB cannot write {location}: {str(error).splitlines()[0]}") from None
    except BaseException:
        delete_file(location)
        raise


def _copied(connection: duckdb.DuckDBPyConnection, select: str, path: str, options: str) -> Copied:
    answer = connection.execute(f"COPY ({select}) TO {text_literal(path)} ({options})").fetchone()
    assert answer is not None  # RETURN_STATS answers with one line a file
    _, count, size, footer_size, statistics, _ = answer
    return Copied(count, size, footer_size, statistics)
