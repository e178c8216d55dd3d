"""What the tests of writing share: tables made here like one of the extension's, and what a write left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import Lake
from penstock.schema.columns import Column
from support.catalogs import Catalog
from support.reference import METADATA, Reference


def ddl(columns: Sequence[Column]) -> str:
    """Columns as `create_table` takes them."""
    return ", ".join(f"`{column.name}` {_type(column)}" for column in columns)


def _type(column: Column) -> str:
    match column.type.name:
        case "list":
            return f"ARRAY<{_type(column.children[0])}>"
        case "map":
            return f"MAP<{', '.join(map(_type, column.children))}>"
        case "struct":
            return f"STRUCT<{', '.join(f'`{child.name}`: {_type(child)}' for child in column.children)}>"
        case "timestamp":
            return "TIMESTAMP_NTZ"
        case _:
            return str(column.type)


@contextmanager
def attached(catalog: Catalog, spark: SparkSession, **parameters: Any) -> Iterator[Lake]:
    """The lake, made by Penstock if it is not there."""
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark, **parameters) as lake:
        yield lake


def files_of(catalog: Catalog) -> set[str]:
    """All files below the data path."""
    root = Path(catalog.data_path)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@contextmanager
def leaving_nothing(
    catalog: Catalog, lake: Lake, match: str, error: type[Exception] = penstock.InvalidError
) -> Iterator[None]:
    """An error that leaves no snapshot and no file."""
    snapshot, files = lake.current_snapshot(), files_of(catalog)
    with pytest.raises(error, match=match):
        yield
    assert lake.current_snapshot() == snapshot
    assert files_of(catalog) == files


def data_files(reference: Reference, table: str) -> list[tuple[str, tuple[str | None, ...], int]]:
    """Directory, partition values and number of rows of a table's files, in the order of those."""
    rows = reference.rows(
        "SELECT regexp_replace(f.path, '[^/]*$', ''), (SELECT list(partition_value ORDER BY partition_key_index)"
        f" FROM {METADATA}.ducklake_file_partition_value v WHERE v.data_file_id = f.data_file_id), record_count"
        f" FROM {METADATA}.ducklake_data_file f JOIN {METADATA}.ducklake_table t USING (table_id)"
        f" WHERE table_name = '{table}' AND f.end_snapshot IS NULL"
    )
    return sorted(((path, tuple(values or ()), count) for path, values, count in rows), key=repr)
