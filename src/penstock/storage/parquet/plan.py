"""Defines what a task is told about the files it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from penstock.errors import UnsupportedError
from penstock.partitioning import directory as hive_directory
from penstock.schema.columns import Column
from penstock.storage.parquet.names import DUCKLAKE_PREFIX, new_write_id
from penstock.storage.parquet.options import FileOptions


@dataclass(frozen=True)
class SortColumn:
    """A column of the batches, by position, that rows are sorted by."""

    index: int
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class WritePlan:
    """What a task must know to write the files of one table.

    Batches have, by position: the table's columns, in Spark's Arrow form of the types that Penstock shows; the row id,
    where `row_ids`; a text column for each of `partition_names`, NULL for the NULL partition; and `extra_columns`
    that are not written, only sorted by. `directory` is the table's own, absolute, with a trailing slash; `folder`
    gives that of a partition's files in it. Files are named after the `write_id`, by which those of a write that failed
    are found.
    """

    columns: tuple[Column, ...]
    directory: str
    options: FileOptions
    partition_names: tuple[str, ...] = ()
    sort: tuple[SortColumn, ...] = ()
    extra_columns: int = 0
    encrypted: bool = False
    row_ids: bool = False
    prefix: str = DUCKLAKE_PREFIX  # of the files' names
    suffix: str = ""
    field_ids: bool = True
    folder: Callable[[Sequence[str], Sequence[str | None]], str] = hive_directory
    write_id: str = field(default_factory=new_write_id)

    @property
    def written_width(self) -> int:
        """How many of a batch's first columns the files hold."""
        return len(self.columns) + self.row_ids

    @property
    def width(self) -> int:
        """How many columns a batch has."""
        return self.written_width + len(self.partition_names) + self.extra_columns


def check_writable(columns: Iterable[Column]) -> None:
    """Raise an UnsupportedError for a column that no writer at hand can write, before anything is done."""
    for column in columns:
        for child in column.children:
            if any(item.type.name == "variant" for item in child.walk()):
                raise UnsupportedError(
                    f"column {column.name!r} has a variant inside a {column.type.name}, which DuckDB cannot write to"
                    " Parquet yet; make the variant a column of its own"
                )
