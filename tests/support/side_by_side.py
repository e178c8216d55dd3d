"""Two lakes, one made by the extension and one by Penstock with the same statements: their catalogs say the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import Lake
from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.ducklake.model.snapshot_changes import parse_changes
from support import dumps
from support.catalogs import Catalog, DuckDBCatalog

Step = tuple[str | tuple[str, ...], Callable[[Lake], object]]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OWN_NAME = re.compile(r"(?<=\d)_[0-9a-f]{8}_penstock$")  # of inlined tables in MySQL
_SIZES = ("file_size_bytes", "footer_size", "column_size_bytes")


def assert_same_catalogs(
    catalog: Catalog, spark: SparkSession, directory: Path, request: pytest.FixtureRequest, steps: Sequence[Step]
) -> None:
    """Where the extension cannot work on the catalog's database, it works on a DuckDB file."""
    if catalog.kind == "mysql":
        directory.mkdir()
        _compare(catalog, DuckDBCatalog(directory), spark, steps)
        return
    with dumps.twin(catalog, directory, request) as theirs:
        _compare(catalog, theirs, spark, steps)


def _compare(ours: Catalog, theirs: Catalog, spark: SparkSession, steps: Sequence[Step]) -> None:
    with theirs.reference() as reference:
        for statements, _ in steps:
            reference.execute(*([statements] if isinstance(statements, str) else statements))
    with penstock.attach(ours.uri, data_path=ours.data_path, spark=spark) as lake:
        for _, change in steps:
            change(lake)
    expected, made = _rows(theirs), _rows(ours)
    assert set(made) == set(expected)
    for table in expected:
        if not table.startswith("ducklake_inlined_data_") or ours.kind == theirs.kind:
            assert made[table] == expected[table], table


def _rows(catalog: Catalog) -> dict[str, list[str]]:
    found = dumps.rows(catalog)
    del found["ducklake_metadata"]
    return {_OWN_NAME.sub("", table): sorted(_normal(table, row) for row in rows) for table, rows in found.items()}


def _normal(table: str, row: Sequence[Any]) -> str:
    columns = TABLES[table].column_names if table in TABLES else map(str, range(len(row)))
    values = {name: _value(name, value) for name, value in zip(columns, row, strict=True)}
    if table == "ducklake_column" and (values["parent_column"] is not None or values["column_type"] == "struct"):
        # An altered field gets nulls_allowed = false and another default_value_type, neither of which means anything.
        del values["nulls_allowed"], values["default_value_type"]
    if table == "ducklake_snapshot_changes":
        values["changes_made"] = _changes(values["changes_made"])
    return repr(values)


def _changes(text: str) -> list[tuple[str, str]]:
    """In any order; of a table that is new, Penstock does not say that it was altered as well."""
    changes = sorted((change.kind, change.value) for change in parse_changes(text))
    new = any(kind == "created_table" for kind, _ in changes)
    return [(kind, value) for kind, value in changes if not (new and kind == "altered_table")]


def _value(name: str, value: Any) -> Any:
    if name in _SIZES:
        return "a size"
    match value:
        case bool():
            return int(value)
        case UUID():
            return "uuid"
        case datetime():
            return "time"
        case str() if name == "snapshot_time":
            return "time"
        case str():
            return _OWN_NAME.sub("", _UUID.sub("uuid", value))
        case _:
            return value
