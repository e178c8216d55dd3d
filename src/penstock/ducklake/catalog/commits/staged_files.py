"""Stages data files that are written, rows for the catalog itself, and the removal of either."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ducklake.catalog.catalog_tables import FILE_DETAILS
from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.commits.staging import InlinedRows, Staging
from penstock.ducklake.files.name_matching import ForeignFile
from penstock.ducklake.model.objects import TableInfo
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile

_STATISTICS = (
    "column_id", "column_size_bytes", "value_count", "null_count", "min_value", "max_value", "contains_nan",
    "extra_stats",
)  # fmt: skip
_in_order = attrgetter(*(field.name for field in fields(ColumnStatistics)))
DescribedFile = WrittenFile | ForeignFile


def add_files(
    staging: Staging,
    table_id: int,
    partition_id: int | None,
    files: Iterable[WrittenFile],
    *,
    with_row_ids: bool = False,
) -> None:
    """Make data files that were written part of a table; `with_row_ids` those that bring the row ids of their rows."""
    for file in files:
        file_id = add_file(
            staging, table_id, file, path_is_relative=True, partition_id=partition_id,
            partition_values=file.partition_values, encryption_key=file.encryption_key, with_row_ids=with_row_ids,
        )  # fmt: skip
        _add_variants(staging, table_id, file_id, file)


def add_file(
    staging: Staging,
    table_id: int,
    file: DescribedFile,
    *,
    path_is_relative: bool,
    partition_id: int | None,
    partition_values: Sequence[str | None],
    with_row_ids: bool = False,
    **more: object,
) -> int:
    """Make a data file part of a table: its row, statistics and partition values. Returns its id."""
    growth = staging.growing(table_id)
    # With a number, the extension's merge would count the rows from it, and forget the ids that the file brings.
    row_id_start = None if with_row_ids else growth.row_ids
    file_id = add_file_row(
        staging, table_id, file, begin_snapshot=staging.own, path_is_relative=path_is_relative,
        row_id_start=row_id_start, partition_id=partition_id, **more,
    )  # fmt: skip
    columns = _add_columns(staging, table_id, file_id, file, partition_values)
    growth.records += file.record_count
    growth.row_ids += file.record_count  # also where the file brings its own
    growth.file_bytes += file.size
    growth.statistics.append(columns)
    staging.log("inserted_into_table", table_id)
    return file_id


def add_compacted_file(
    staging: Staging,
    table_id: int,
    file: WrittenFile,
    partition_id: int | None,
    partition_values: Sequence[str | None],
    **snapshots: int | None,
) -> int:
    """Add a data file of rows that the table has, under the row ids that it brings. Returns its id."""
    key = file.encryption_key
    file_id = add_file_row(
        staging, table_id, file, path_is_relative=True, partition_id=partition_id, encryption_key=key, **snapshots
    )
    _add_columns(staging, table_id, file_id, file, partition_values)
    _add_variants(staging, table_id, file_id, file)
    return file_id


def add_file_row(
    staging: Staging, table_id: int, file: DescribedFile, *, path_is_relative: bool, **more: object
) -> int:
    """Add the row of a data file. Returns its id."""
    file_id = staging.ids.file_id()
    staging.add(
        "ducklake_data_file",
        data_file_id=file_id,
        table_id=table_id,
        path=file.path,
        path_is_relative=path_is_relative,
        file_format="parquet",
        record_count=file.record_count,
        file_size_bytes=file.size,
        footer_size=file.footer_size,
        **more,
    )
    return file_id


def _add_columns(
    staging: Staging, table_id: int, file_id: int, file: DescribedFile, partition_values: Sequence[str | None]
) -> list[ColumnStatistics]:
    columns = [statistics.storable() for statistics in file.columns]
    for statistics in columns:
        _add_statistics(staging, "ducklake_file_column_stats", file_id, table_id, statistics)
    for index, value in enumerate(partition_values):
        staging.add(
            "ducklake_file_partition_value",
            data_file_id=file_id,
            table_id=table_id,
            partition_key_index=index,
            partition_value=value,
        )
    return columns


def _add_statistics(
    staging: Staging, table: str, file_id: int, table_id: int, statistics: ColumnStatistics, **more: str
) -> None:
    values = dict(zip(_STATISTICS, _in_order(statistics), strict=True))
    staging.add(table, data_file_id=file_id, table_id=table_id, **values, **more)


def _add_variants(staging: Staging, table_id: int, file_id: int, file: WrittenFile) -> None:
    for variant in file.variants:
        more = {"variant_path": variant.path, "shredded_type": variant.shredded_type}
        statistics = variant.statistics.storable()
        _add_statistics(staging, "ducklake_file_variant_stats", file_id, table_id, statistics, **more)


def add_inlined(
    staging: Staging,
    table_id: int,
    columns: tuple[Column, ...],
    rows: pa.Table,
    statistics: Sequence[ColumnStatistics],
    row_ids: pa.Int64Array | None = None,
) -> None:
    """Add rows to the catalog, new or under the row ids they had. They take a file's id too, as in the extension."""
    growth = staging.growing(table_id)
    staging.ids.file_id()
    if row_ids is None:
        new = pa.array(range(growth.row_ids, growth.row_ids + rows.num_rows), pa.int64())
        growth.row_ids += rows.num_rows
        inlined = InlinedRows(columns, rows, new)
    else:
        inlined = InlinedRows(columns, rows, row_ids, had_ids=True)
    staging.inlined.setdefault(table_id, []).append(inlined)
    growth.records += rows.num_rows
    growth.statistics.append(statistics)
    staging.log("inlined_insert", table_id)


def remove_files(staging: Staging, table: TableInfo, file_ids: Iterable[int]) -> None:
    """End data files; those that this transaction wrote itself are taken back."""
    ids, table_id = set(file_ids), table.id
    own = {file_id for file_id in ids if is_provisional(file_id)}
    if own:
        staging.remove("ducklake_data_file", "data_file_id", own)
        for name in FILE_DETAILS:
            staging.remove(name, "data_file_id", own)
    if ids - own:
        staging.end("ducklake_data_file", data_file_id=ids - own)
        staging.log("deleted_from_table", table_id)


def remove_inlined(staging: Staging, table_id: int, rows: dict[str, set[int]]) -> None:
    """End inlined rows, by the catalog's table that holds them."""
    for name, row_ids in rows.items():
        if row_ids:
            staging.inlined_ended.setdefault(name, set()).update(row_ids)
            staging.log("inlined_delete", table_id)


def own_inlined(staging: Staging, table_id: int) -> set[int]:
    """The row ids that a transaction's own inlined rows of a table are shown by."""
    first_new = staging.shown_row_ids.get(table_id, 0)
    return {number for batch in staging.inlined.get(table_id, ()) for number in batch.row_ids(first_new).to_pylist()}


def remove_own_inlined(staging: Staging, table_id: int, row_ids: Collection[int] | None) -> None:
    """Take back inlined rows that this transaction added to a table: all, or some by the row ids they are shown by."""
    kept = []
    first_new = staging.shown_row_ids.get(table_id, 0)
    gone = pa.array(row_ids or (), pa.int64())
    for batch in staging.inlined.get(table_id, ()) if row_ids is not None else ():
        stays = pc.invert(pc.is_in(batch.row_ids(first_new), gone))
        if pc.any(stays).as_py():
            kept.append(replace(batch, rows=batch.rows.filter(stays), numbers=batch.numbers.filter(stays)))
    if kept:
        staging.inlined[table_id] = kept
    elif staging.inlined.pop(table_id, None):
        staging.unlog("inlined_insert", table_id)
