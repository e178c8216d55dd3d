"""Stages files that others wrote: linked by their absolute paths, their columns mapped by name."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.ducklake.catalog.commits.staged_files import add_file
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.files.name_matching import ForeignFile
from penstock.ducklake.model.files import MappedField
from penstock.partitioning import Identity, PartitionSpec
from penstock.storage.paths import resolve

Mapping = tuple[MappedField, ...]


def known_paths(database: Database, at: At, table_id: int, table_path: str) -> set[str]:
    """The files that a table has."""
    sql = f"SELECT path, path_is_relative FROM ducklake_data_file WHERE table_id = ? AND {at.visible()}"
    return {resolve(table_path, path, bool(is_relative)) for path, is_relative in database.query(sql, [table_id])}


def known_mappings(database: Database, table_id: int) -> dict[Mapping, int]:
    """The table's mappings, each with its id."""
    rows = database.query(
        """SELECT m.mapping_id, n.column_id, n.source_name, n.target_field_id, n.parent_column, n.is_partition
           FROM ducklake_column_mapping m JOIN ducklake_name_mapping n ON n.mapping_id = m.mapping_id
           WHERE m.table_id = ? AND m.type = 'map_by_name' ORDER BY m.mapping_id, n.column_id""",
        [table_id],
    )
    found: dict[int, list[MappedField]] = {}
    for number, place, name, column_id, parent, is_partition in rows:
        found.setdefault(number, []).append(MappedField(place, name, column_id, parent, bool(is_partition)))
    return {tuple(fields): number for number, fields in found.items()}


def link_files(
    staging: Staging, table_id: int, spec: PartitionSpec | None, known: dict[Mapping, int], files: Iterable[ForeignFile]
) -> None:
    """Make files part of a table, whose mappings are `known`; one of the same names is used again.

    A file belongs to a partition where its directories give the value of every column that the table is partitioned
    by. The others have none, like those from before a table was partitioned: their statistics prune them.
    """
    for file in files:
        mapping_id = known.get(file.mapping)
        if mapping_id is None:
            mapping_id = known[file.mapping] = _add_mapping(staging, table_id, file.mapping)
        values = _partition_values(spec, file)
        add_file(
            staging, table_id, file, path_is_relative=False, partition_values=values, mapping_id=mapping_id,
            partition_id=spec.partition_id if spec and values else None,
        )  # fmt: skip


def _add_mapping(staging: Staging, table_id: int, mapping: Mapping) -> int:
    number = staging.ids.file_id()  # the documents say catalog ids; the extension counts mappings with the files
    staging.add("ducklake_column_mapping", mapping_id=number, table_id=table_id, type="map_by_name")
    for item in mapping:
        staging.add(
            "ducklake_name_mapping",
            mapping_id=number,
            column_id=item.id,
            source_name=item.source_name,
            target_field_id=item.column_id,
            parent_column=item.parent_id,
            is_partition=item.is_partition,
        )
    return number


def _partition_values(spec: PartitionSpec | None, file: ForeignFile) -> list[str]:
    fields = spec.fields if spec else ()
    told = all(isinstance(item.transform, Identity) and item.column_id in file.hive for item in fields)
    return [file.hive[item.column_id] for item in fields] if told else []
