"""Tells Spark's reader, while Spark plans, which rows of each data file are deleted: without a join or a job before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from penstock.ducklake.model.files import DataFile, DeleteFile, DeleteKind
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.spark.deleted_rows import Format, PositionFile, deletes_text
from penstock.spark.file_records import file_records

# DuckDB gives deletion vectors a key in an encrypted lake, and does not use it.
_READABLE = {("parquet", False), ("puffin", False), ("puffin", True)}
_DATED = DeleteKind("parquet", False, 0)  # what comes in the place of others, and tells the snapshot of each delete


def are_readable(kinds: Iterable[DeleteKind]) -> bool:
    """Whether Spark's reader can read delete files of all these kinds."""
    return {(kind.format, kind.encrypted) for kind in kinds} <= _READABLE


def inlined_positions(inlined: Iterable[tuple[int, int, int]]) -> dict[int, list[int]]:
    """The positions that the catalog itself keeps, by data file."""
    positions: dict[int, list[int]] = {}
    for file, position, _ in inlined:
        positions.setdefault(file, []).append(position)
    return positions


@dataclass(frozen=True)
class PlannedDeletes:
    """Plans the files of a group whose rows were deleted, each with where its deleted positions are."""

    planner: FilePlanner
    kinds: Sequence[DeleteKind]  # of delete files that there were
    inlined: Mapping[int, Sequence[int]]

    def __call__(self, filters: str) -> str:
        planner, scope = self.planner, self.planner.scope
        kinds = (*self.kinds, _DATED)
        with scope.database.consistent():
            files = planner.files_for(filters)
            deletes = scope.delete_files(planner.group, kinds, planner.keep(filters)) if files else []
        return file_records(self._records(files, deletes))

    def _records(
        self, files: Iterable[DataFile], deletes: Iterable[DeleteFile]
    ) -> Iterator[tuple[str, int, tuple[object, ...]]]:
        of_files: dict[int, list[PositionFile]] = {}
        for file in deletes:
            told = PositionFile(cast(Format, file.format), file.path, file.size, file.last_snapshot)
            of_files.setdefault(file.data_file_id, []).append(told)
        for data in files:
            path, size, constants = self.planner.record(data)
            yield path, size, (*constants, deletes_text(of_files.get(data.id, ()), self.inlined.get(data.id, ())))
