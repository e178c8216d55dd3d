"""Reads whole rows of a table by their places: DuckDB, in the workers, reads little of files that have few of them.

Spark's reader decodes every value of a file to find a few rows of it. So a statement that writes few rows anew looks
for them by the columns that its conditions need, and reads the others of the rows that it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog.file_pruning import Condition, keep_condition, prunings
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.changing.row_places import CLAUSE, MATCH_COLUMNS, MATCHED, PLACE, unpack_matches
from penstock.ducklake.changing.target_rows import TargetRows, as_target_rows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.model.files import DataFile
from penstock.ducklake.reading.column_layout import ColumnLayout
from penstock.ducklake.reading.duckdb_reader import Job, read_rows_of
from penstock.ducklake.reading.duckdb_rows import shown_columns, transfer_schema
from penstock.ducklake.reading.scan_columns import CHANGED_IN, FILE, POSITION, ROW_ID, ROW_ID_SQL, ROW_ID_START
from penstock.predicates.implication import Implication
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID
from penstock.spark.local_rows import local_frame
from penstock.spark.projection import SqlColumn, named, projected
from penstock.spark.workers import map_in_workers
from penstock.storage.paths import is_local

# To read so many values, once, takes Spark no longer than a second pass takes to begin.
FEW_VALUES = 4_000_000
# Of more of its rows than that, a table is read faster in one pass.
MOST_SHARE = 0.3
_TAKEN = ("file_row_number", "_penstock")  # how names of columns begin that DuckDB would mistake for others
_FILE_COLUMNS = "file bigint, row_id_start bigint, changed_in bigint, location string, key string"


def second_pass_pays(table: TargetTable, unchanged: int, possible: Callable[[], Implication]) -> bool:
    """Whether to look for rows first, and then to read those that were found, for the columns that do not change.

    `possible` says what is true of all rows that can be found.
    """
    groups = table.contents.groups
    if not (unchanged and reads_places(table) and rest_is_large(table, _file_count(table), unchanged)):
        return False
    kept = possible_files(table, possible)
    return rest_is_large(table, sum(table.scan.scope.count(group, kept) for group in groups), unchanged)


def possible_files(table: TargetTable, possible: Callable[[], Implication]) -> Condition:
    """Which files can have rows of which all that is true."""
    scan = table.scan
    by_id = {item.id: item for column in scan.layout.columns for item in column.walk()}
    return keep_condition(prunings(possible(), scan.scope.table_id, scan.specs, by_id, scan.scope.database.dialect))


def rest_is_large(table: TargetTable, files: int, unchanged: int) -> bool:
    """Whether so many columns of so many of its files are worth to be read apart."""
    return bool(files) and table.file_rows * files // _file_count(table) * unchanged > FEW_VALUES


def _file_count(table: TargetTable) -> int:
    return sum(group.file_count for group in table.contents.groups)


def are_few(table: TargetTable, rows: int) -> bool:
    """Whether so many rows of a table are few enough to be read by their places."""
    return rows <= MOST_SHARE * table.file_rows


def reads_places(table: TargetTable) -> bool:
    """Whether all files can be read so: those that were written here or by the extension, in today's shape.

    In a store, DuckDB may lack what reaches it.
    """
    names = [column.name.lower() for column in table.scan.layout.columns]
    return (
        is_local(table.target.info.path)
        and not any(group.is_of_others for group in table.contents.groups)
        and _never_changed(table.scan.layout)
        and not any(name.startswith(_TAKEN) for name in names)
    )


def _never_changed(layout: ColumnLayout) -> bool:
    """Whether the table has the columns that it was made with."""
    ended = any(version.end_snapshot is not None for version in layout.history)
    return not ended and len({version.column.begin_snapshot for version in layout.history}) == 1


def matched_rows(table: TargetTable, matches: DataFrame, touched: frozenset[int]) -> TargetRows:
    """The rows of some files, and of the catalog, that `matches` tells with FILE; with CLAUSE and MATCHED."""
    seal = Seal()
    files = local_frame(table.scan.spark, list(_described(table, seal, touched).values()), _FILE_COLUMNS)
    rows = matches.join(F.broadcast(files), F.col(FILE) == F.col("file")).drop(FILE) if touched else None
    others = matches.where(f"{FILE} IS NULL").drop(FILE) if table.contents.inlined else None
    return _rows(table, seal, rows, others)


def _rows(table: TargetTable, seal: Seal, of_files: DataFrame | None, of_catalog: DataFrame | None) -> TargetRows:
    found = [] if of_files is None else [_of_files(table, seal, of_files)]
    found += [] if of_catalog is None else [_of_catalog(table, of_catalog)]
    return as_target_rows(table.scan, reduce(DataFrame.union, found), (CLAUSE, MATCHED))


def _of_files(table: TargetTable, seal: Seal, given: DataFrame) -> DataFrame:
    columns, nanoseconds = table.scan.layout.columns, table.scan.layout.nanoseconds
    others = (
        FILE, ROW_ID_START, CHANGED_IN, POSITION, EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID, CLAUSE, MATCHED,
    )  # fmt: skip
    schema = transfer_schema(columns, nanoseconds, others)
    rows = map_in_workers(given, read_rows_of(schema, seal, table.scan.layout, _chosen, MATCH_COLUMNS), schema)
    shown = [*shown_columns(columns, nanoseconds), SqlColumn(ROW_ID, ROW_ID_SQL)]
    return projected(rows, [*shown, *named(FILE, POSITION, CLAUSE, MATCHED)])


def _described(table: TargetTable, seal: Seal, touched: frozenset[int]) -> dict[int | None, tuple[object, ...]]:
    """How to read files, by their ids."""
    return {
        file.id: (file.id, file.row_id_start, file.changed_in, file.path, seal.close(file.encryption_key, file.path))
        for file in _files(table, touched)
    }


def _files(table: TargetTable, touched: frozenset[int]) -> Iterator[DataFile]:
    for group in table.contents.groups:
        for listed in id_lists(touched):
            yield from table.scan.scope.data_files(group, Condition(f"d.data_file_id IN ({listed})"))


def _chosen(job: Job) -> pa.Table:
    return unpack_matches(job["matches"])


def _of_catalog(table: TargetTable, given: DataFrame) -> DataFrame:
    """Rows that the catalog keeps: their positions are their row ids."""
    own = table.scan.frame(replace(table.contents, groups=()))
    chosen = map_in_workers(given, _all_chosen, ", ".join(f"{name} bigint" for name in MATCH_COLUMNS))
    return own.join(chosen, F.col(POSITION) == F.col(PLACE)).drop(PLACE)


def _all_chosen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for job in batch.to_pylist():
            yield from _chosen(job).to_batches()
