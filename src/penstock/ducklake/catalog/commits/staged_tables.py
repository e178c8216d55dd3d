"""Stages tables: their definition, columns, partitioning and sort order."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.commits.staged_schemas import own_path
from penstock.ducklake.catalog.commits.staging import Ending, Staging
from penstock.ducklake.model.objects import Schema, SortKey, TableInfo
from penstock.ducklake.model.schema_evolution import ColumnRow, Evolution
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.partitioning import PartitionField, PartitionSpec

_VERSIONED_BY_TABLE = (
    "ducklake_table", "ducklake_column", "ducklake_data_file", "ducklake_delete_file", "ducklake_partition_info",
    "ducklake_sort_info", "ducklake_column_tag",
)  # fmt: skip


def create_table(staging: Staging, schema: Schema, name: str, rows: Iterable[ColumnRow]) -> TableInfo:
    """Add a table with its columns."""
    table_id, identifier = staging.ids.catalog_id(), str(uuid.uuid4())
    path = own_path(name, identifier)
    staging.add_versioned(
        "ducklake_table",
        table_id=table_id,
        table_uuid=identifier,
        schema_id=schema.id,
        table_name=name,
        path=path,
        path_is_relative=True,
    )
    _add_columns(staging, table_id, rows)
    staging.new_schema_version(table_id)
    staging.log("created_table", quoted_name(schema.name, name))
    return TableInfo(table_id, identifier, schema, name, schema.path + path)


def drop_table(staging: Staging, table: TableInfo) -> None:
    """End a table and everything that belongs to it."""
    staging.unlog("created_table", quoted_name(table.schema.name, table.name))
    if is_provisional(table.id):
        staging.forget(table.id)
        return
    for catalog_table in _VERSIONED_BY_TABLE:
        staging.end(catalog_table, table_id=table.id)
    staging.end("ducklake_tag", object_id=table.id)
    staging.forget(table.id)
    staging.log("dropped_table", table.id)


def rename_table(staging: Staging, table: TableInfo, stored_path: tuple[str, bool], name: str) -> None:
    """Give a table another name; it stays in the same directory."""
    staging.end("ducklake_table", table_id=table.id)
    staging.unlog("created_table", quoted_name(table.schema.name, table.name))
    path, is_relative = stored_path
    staging.add_versioned(
        "ducklake_table",
        table_id=table.id,
        table_uuid=table.uuid,
        schema_id=table.schema.id,
        table_name=name,
        path=path,
        path_is_relative=is_relative,
    )
    staging.new_schema_version(table.id)
    staging.log("created_table", quoted_name(table.schema.name, name))


def evolve_columns(staging: Staging, table_id: int, evolution: Evolution) -> None:
    """End and add columns, as an evolution says."""
    if evolution.ended:
        _end_columns(staging, table_id, frozenset(evolution.ended))
    _add_columns(staging, table_id, evolution.added)
    staging.new_schema_version(table_id)
    staging.log("altered_table", table_id)


def _end_columns(staging: Staging, table_id: int, ids: frozenset[int]) -> None:
    """End columns; of those that this very transaction made and wrote files under, a row stays that no snapshot shows.

    Readers learn from it what names and types the files may hold, and nobody gives their ids to other columns.
    """
    where: dict[str, int | str | frozenset[int]] = {"table_id": table_id, "column_id": ids}
    own = [row for row in staging.added.get("ducklake_column", ()) if Ending("", where).matches(row)]
    staging.end("ducklake_column", **where)
    if has_files(staging, table_id):
        for row in own:
            staging.add("ducklake_column", **{**row, "end_snapshot": staging.own})


def has_files(staging: Staging, table_id: int) -> bool:
    """Whether the transaction wrote data files of a table."""
    return any(row["table_id"] == table_id for row in staging.added.get("ducklake_data_file", ()))


def _add_columns(staging: Staging, table_id: int, rows: Iterable[ColumnRow]) -> None:
    for row in rows:
        staging.add_versioned(
            "ducklake_column",
            column_id=row.id,
            table_id=table_id,
            column_order=row.order,
            column_name=row.name,
            column_type=row.type,
            initial_default=row.initial_default,
            default_value=row.default_value,
            nulls_allowed=row.nulls_allowed,
            parent_column=row.parent_id,
            default_value_type=row.default_value_type,
            default_value_dialect=row.default_value_dialect,
        )


def set_partitioning(staging: Staging, table_id: int, fields: Sequence[PartitionField]) -> PartitionSpec:
    """Set how new rows are partitioned; no fields means not at all. Files that are there keep what they have."""
    _end_specification(staging, "ducklake_partition_info", "ducklake_partition_column", "partition_id", table_id)
    partition_id = staging.ids.catalog_id()
    staging.add_versioned("ducklake_partition_info", partition_id=partition_id, table_id=table_id)
    for field in fields:
        staging.add(
            "ducklake_partition_column",
            partition_id=partition_id,
            table_id=table_id,
            partition_key_index=field.key_index,
            column_id=field.column_id,
            transform=str(field.transform),
        )
    staging.new_schema_version(table_id)
    staging.log("altered_table", table_id)
    return PartitionSpec(partition_id, tuple(fields))


def set_sort_order(staging: Staging, table_id: int, keys: Sequence[SortKey]) -> None:
    """Set how new rows are sorted; no keys means not at all."""
    _end_specification(staging, "ducklake_sort_info", "ducklake_sort_expression", "sort_id", table_id)
    if keys:
        sort_id = staging.ids.catalog_id()
        staging.add_versioned("ducklake_sort_info", sort_id=sort_id, table_id=table_id)
        for index, key in enumerate(keys):
            staging.add(
                "ducklake_sort_expression",
                sort_id=sort_id,
                table_id=table_id,
                sort_key_index=index,
                expression=key.expression,
                dialect=key.dialect,
                sort_direction=key.direction,
                null_order=key.null_order,
            )
    staging.log("altered_table", table_id)


def _end_specification(staging: Staging, info: str, parts: str, key: str, table_id: int) -> None:
    """End a specification; of one that this transaction made, its parts go too, which have no end of their own."""
    own = {row[key] for row in staging.added.get(info, ()) if row["table_id"] == table_id}
    staging.end(info, table_id=table_id)
    staging.remove(parts, key, own)
