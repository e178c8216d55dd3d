"""Reads data files in a task, in the columns that a new file of the table has, and tells which it cannot read so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.delta.format.actions import DeletionVectorDescriptor
from penstock.delta.format.deletion_vectors import deleted_positions
from penstock.delta.writing.file_copies import has_old_calendar
from penstock.errors import PenstockError
from penstock.schema.columns import Column
from penstock.storage.filesystems import open_file
from penstock.storage.parquet.schema import file_field

_ROWS_AT_ONCE = 65536
_FIELD_ID = b"PARQUET:field_id"


class UnfitFileError(Exception):
    """A file holds a column in a form of which it is not sure that every reader understands it as we do."""


@dataclass(frozen=True)
class SourceFile:
    """A data file of the table, by its number among those that a job works on, its absolute path and its vector."""

    number: int
    path: str
    deletion_vector: DeletionVectorDescriptor | None = None

    def deleted(self, root: str) -> npt.NDArray[np.int64]:
        """Returns the positions of its deleted rows, in order; `root` is the table's directory."""
        vector = self.deletion_vector
        if vector is None:
            return np.empty(0, np.int64)
        return deleted_positions(
            vector.storage_type,
            vector.path_or_inline_dv,
            vector.offset,
            vector.size_in_bytes,
            vector.cardinality,
            root,
        )


@dataclass(frozen=True)
class SourceColumns:
    """The data columns of new files, which sources are read in. `by_id` says that ids tell columns apart."""

    columns: Sequence[Column]
    by_id: bool = False

    def live_rows(self, source: SourceFile) -> int:
        """Counts the rows of a file that are not deleted, by its footer alone.

        An UnfitFileError where its columns cannot be those of a new file.
        """
        with open_file(source.path) as opened, _parquet(opened) as file:
            self._check(file)
            deleted = 0 if source.deletion_vector is None else source.deletion_vector.cardinality
            return int(file.metadata.num_rows) - deleted

    def batches(self, source: SourceFile, root: str) -> Iterator[list[pa.Array]]:
        """Yields the rows of a file that are not deleted, some at a time, as an array for each column.

        An UnfitFileError where a value does not fit into its column.
        """
        deleted = source.deleted(root)
        with open_file(source.path) as opened, _parquet(opened) as file:
            self._check(file)
            if len(deleted) and deleted[-1] >= file.metadata.num_rows:
                raise PenstockError(f"{source.path} has {file.metadata.num_rows} rows, and more of them are deleted")
            first = 0
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                left = _left(batch, deleted, first)
                first += batch.num_rows
                if left.num_rows:
                    yield [_converted(column, left) for column in self.columns]

    def _check(self, file: pq.ParquetFile) -> None:
        wanted = [file_field(column) for column in self.columns]
        leaves = [file.schema.column(index) for index in range(len(file.schema))]
        twelve_bytes = any(leaf.physical_type == "INT96" for leaf in leaves)
        told = file.schema_arrow.metadata or {}
        is_old = has_old_calendar(told, False) or (twelve_bytes and has_old_calendar(told, True))
        if is_old and _has(_is_time, wanted):
            raise UnfitFileError("it may have dates of the calendar before 1582")
        if twelve_bytes and (_has(_is_local_time, wanted) or any(map(_is_local_leaf, leaves))):
            raise UnfitFileError("it has timestamps in twelve bytes beside others without a zone")
        _check_fields(wanted, list(file.schema_arrow), self.by_id, twelve_bytes, "")


def _parquet(opened: pa.NativeFile) -> pq.ParquetFile:
    return pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")


def _left(batch: pa.RecordBatch, deleted: npt.NDArray[np.int64], first: int) -> pa.RecordBatch:
    """Returns the rows of a batch that are not deleted; `first` is the position of its first row in the file."""
    start, end = np.searchsorted(deleted, [first, first + batch.num_rows])
    if start == end:
        return batch
    kept = np.ones(batch.num_rows, bool)
    kept[deleted[start:end] - first] = False
    return batch.filter(pa.array(kept))


def _converted(column: Column, batch: pa.RecordBatch) -> pa.Array:
    """Returns a column as new files hold it: fields of structs go by name, and what a file has not is NULL."""
    kind = file_field(column).type
    place = batch.schema.get_field_index(column.name)
    if place < 0:
        return pa.nulls(batch.num_rows, kind)
    try:
        return batch.column(place).cast(kind)
    except pa.ArrowException as error:
        raise UnfitFileError(f"a value of column {column.name!r} does not fit: {error}") from None


def _has(kind_test: Callable[[pa.DataType], bool], fields: Sequence[pa.Field]) -> bool:
    return any(kind_test(item.type) or _has(kind_test, _members(item.type)) for item in fields)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _is_local_leaf(leaf: pq.ColumnSchema) -> bool:
    told = json.loads(leaf.logical_type.to_json())
    return told["Type"] == "Timestamp" and not told["isAdjustedToUTC"]


def _members(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _check_fields(
    wanted: Sequence[pa.Field], found: Sequence[pa.Field], by_id: bool, twelve_bytes: bool, path: str
) -> None:
    """Raises an UnfitFileError where fields, which go by name, are not those of the table."""
    folded = [item.name.lower() for item in found]
    for item in wanted:
        name = path + item.name
        same = [other for other in found if other.name == item.name]
        if len(same) != folded.count(item.name.lower()) or len(same) > 1:
            raise UnfitFileError(f"column {name!r} is there under another name, or twice")
        if by_id and _id(item) in {_id(other) for other in found if other.name != item.name}:
            raise UnfitFileError(f"column {name!r} is there under another name, with its id")
        if same:
            if by_id and _id(same[0]) != _id(item):
                raise UnfitFileError(f"column {name!r} is there without its id")
            _check_type(item.type, same[0].type, by_id, twelve_bytes, name)


def _id(item: pa.Field) -> bytes | None:
    return (item.metadata or {}).get(_FIELD_ID)


def _check_type(wanted: pa.DataType, found: pa.DataType, by_id: bool, twelve_bytes: bool, path: str) -> None:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        _check_fields(list(wanted), list(found), by_id, twelve_bytes, f"{path}.")
    elif pa.types.is_list(wanted) and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        _check_type(wanted.value_type, found.value_type, by_id, twelve_bytes, f"{path}.element")
    elif pa.types.is_map(wanted) and pa.types.is_map(found):
        _check_type(wanted.key_type, found.key_type, by_id, twelve_bytes, f"{path}.key")
        _check_type(wanted.item_type, found.item_type, by_id, twelve_bytes, f"{path}.value")
    elif not _is_same(wanted, found, twelve_bytes):
        raise UnfitFileError(f"column {path!r} is {found} there, and {wanted} in the table")


def _is_same(wanted: pa.DataType, found: pa.DataType, twelve_bytes: bool) -> bool:
    """Tells whether a file's type means what the table's does; of integers, the values decide."""
    kinds = pa.types
    if kinds.is_signed_integer(wanted):
        return bool(kinds.is_signed_integer(found))
    if kinds.is_string(wanted):
        return bool(kinds.is_string(found) or kinds.is_large_string(found) or kinds.is_string_view(found))
    if kinds.is_binary(wanted):
        return bool(kinds.is_binary(found) or kinds.is_large_binary(found) or kinds.is_binary_view(found))
    if kinds.is_decimal(wanted):
        return bool(kinds.is_decimal(found) and (wanted.precision, wanted.scale) == (found.precision, found.scale))
    if kinds.is_timestamp(wanted):
        if not kinds.is_timestamp(found) or found.unit not in ("ms", "us"):
            return False
        return (wanted.tz is None) == (found.tz is None) or (twelve_bytes and wanted.tz is not None)
    return bool(wanted == found)
