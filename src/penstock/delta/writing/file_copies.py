"""Copies a data file with other partition columns, and proves that its data columns stay what they were."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import PenstockError, UnsupportedError
from penstock.storage.filesystems import open_file, open_output
from penstock.storage.parquet.schema import columns_with_statistics

Constant = Callable[[pa.Field, int], pa.Array]  # a partition column's value, as often as there are rows

_ROWS_A_DIGEST = 8192
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_LEGACY = b"org.apache.spark.legacyDateTime"
_SPARK = b"org.apache.spark.version"
_NEW_CALENDAR, _NEW_TIMES = -141_427, -2_208_988_800_000_000  # days to 1582-10-15, microseconds to 1900
_OF_THE_OLD_COLUMNS = (b"ARROW:schema", b"org.apache.spark.sql.parquet.row.metadata")
_TYPE_FIELDS = ("Type", "isAdjustedToUTC", "timeUnit", "bitWidth", "isSigned", "precision", "scale")


def copy_with_columns(source: str, target: str, added: pa.Schema, constant: Constant) -> None:
    """Copies a file; the columns of `added` stand last, in place of those of these names that the file has.

    The finished copy is read again: a PenstockError where a row, a value or a type of another column is not as it was.
    """
    with open_file(source) as opened, pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as file:
        kept = [item.name for item in file.schema_arrow if item.name not in added.names]
        form = _WrittenForm.of(file, kept, added)
        _check_calendar(form, added, constant)
        digest = _RowDigest()
        with open_output(target) as out, form.writer(out, added) as writer:
            for rows in _groups(file, kept):
                digest.add(rows)
                constants = [constant(item, rows.num_rows) for item in added]
                columns = [*rows.cast(form.kept).columns, *constants]
                table = pa.Table.from_arrays(columns, schema=form.schema(added))
                writer.write_table(table, row_group_size=rows.num_rows)
        _prove(file, target, kept, form, digest)


@dataclass(frozen=True)
class _WrittenForm:
    """How the data columns are written, so that they are what they were.

    PyArrow writes either all timestamps in twelve bytes (INT96) or none. In a file that has both, those of twelve bytes
    become what they mean in Delta: microseconds of UTC.
    """

    kept: pa.Schema
    metadata: dict[bytes, bytes]
    int96: bool
    integer_decimals: bool

    @classmethod
    def of(cls, file: pq.ParquetFile, names: Sequence[str], added: pa.Schema) -> _WrittenForm:
        leaves = _leaves(file, file.schema_arrow.names)
        own = _leaves(file, names)
        twelve = any(leaf.physical_type == "INT96" for leaf in own)
        eight = any(_logical(leaf).get("Type") == "Timestamp" for leaf in own)
        naive = any(pa.types.is_timestamp(item.type) and item.type.tz is None for item in added)
        told = file.schema_arrow.metadata or {}
        mixed = twelve and (eight or naive)
        if mixed and (has_old_calendar(told, True) or has_old_calendar(told, False)):
            raise UnsupportedError(
                "a file of the old calendar has timestamps in twelve bytes beside others, which cannot be copied as "
                "they are; overwrite its rows with Spark"
            )
        types = _with_instants(file.schema_arrow, iter(leaves)) if mixed else file.schema_arrow
        kept = pa.schema([types.field(types.names.index(name)) for name in names])
        metadata = {key: value for key, value in told.items() if key not in _OF_THE_OLD_COLUMNS}
        integers = any(leaf.physical_type.startswith("INT") and leaf.precision > 0 for leaf in own)
        return cls(kept, metadata, twelve and not mixed, integers)

    def schema(self, added: pa.Schema) -> pa.Schema:
        return pa.schema([*self.kept, *added])

    def writer(self, out: Any, added: pa.Schema) -> pq.ParquetWriter:
        writer = pq.ParquetWriter(
            out,
            self.schema(added),
            compression="snappy",
            version="2.6",
            store_schema=False,
            write_statistics=columns_with_statistics(self.schema(added)),
            use_deprecated_int96_timestamps=self.int96,
            store_decimal_as_integer=self.integer_decimals,
        )
        writer.add_key_value_metadata(self.metadata)  # by which Spark knows the calendar of old dates
        return writer


class _RowDigest:
    """A checksum of rows in their order: of which are NULL and of the bits of the others, at every depth."""

    def __init__(self) -> None:
        self.rows = 0
        self._state = blake2b()

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        for start in range(0, rows.num_rows, _ROWS_A_DIGEST):
            for column in rows.slice(start, _ROWS_A_DIGEST).combine_chunks().columns:
                for chunk in column.chunks:
                    self._add(chunk)

    @property
    def told(self) -> tuple[int, bytes]:
        return self.rows, self._state.digest()

    def _add(self, array: pa.Array) -> None:
        array = _in_one_layout(array)
        self._leaf(array.is_valid().cast(pa.uint8()))
        values = array.drop_null()
        kind = values.type
        if pa.types.is_struct(kind):
            for child in values.flatten():
                self._add(child)
        elif pa.types.is_large_list(kind):
            self._leaf(pc.list_value_length(values))
            self._add(pc.list_flatten(values))
        elif pa.types.is_timestamp(kind):
            self._leaf(values.view(pa.int64()))  # with a zone or without: that is a matter of the types
        else:
            self._leaf(values.cast(pa.uint8()) if pa.types.is_boolean(kind) else values)

    def _leaf(self, values: pa.Array) -> None:
        """Adds an array without NULLs: Arrow's message of it is the same for the same values."""
        self._state.update(pa.record_batch([values], names=["_"]).serialize())


def has_old_calendar(metadata: Mapping[bytes, bytes], twelve_bytes: bool) -> bool:
    """Tells whether Spark takes old dates, or timestamps of twelve bytes, for those of the calendar before 1582."""
    key, since = (_LEGACY_INT96, (3, 1)) if twelve_bytes else (_LEGACY, (3, 0))
    spark = re.match(rb"(\d+)\.(\d+)", metadata.get(_SPARK, b""))
    return key in metadata or (spark is not None and (int(spark[1]), int(spark[2])) < since)


def _check_calendar(form: _WrittenForm, added: pa.Schema, constant: Constant) -> None:
    """Refuses old dates and times for a file whose footer says that such are of the calendar before 1582."""
    for item in added:
        if pa.types.is_date32(item.type):
            first, number = _NEW_CALENDAR, pa.int32()
        elif pa.types.is_timestamp(item.type) and item.type.tz is not None:
            first, number = _NEW_TIMES, pa.int64()
        else:
            continue
        value = constant(item, 1).view(number)[0].as_py()
        twelve_bytes = form.int96 and pa.types.is_timestamp(item.type)
        if value is not None and value < first and has_old_calendar(form.metadata, twelve_bytes):
            raise UnsupportedError(
                f"a file has dates of the old calendar, by which Spark would read the value of partition column "
                f"{item.name!r} too, and show another; overwrite its rows with Spark"
            )


def _in_one_layout(array: pa.Array) -> pa.Array:
    """Converts values to that of Arrow's types for them which holds the most: files do not tell them apart."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _in_one_layout(array.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_map(kind):
        members = pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
        return array.cast(pa.large_list(members))
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def _prove(file: pq.ParquetFile, target: str, kept: Sequence[str], form: _WrittenForm, expected: _RowDigest) -> None:
    """Raises a PenstockError where a copy has not the rows and the types of the file."""
    with open_file(target) as opened, pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as copy:
        before, after = _types(file, kept), _types(copy, kept)
        if not form.int96:
            before = [_INSTANT if kind == _INT96 else kind for kind in before]
        found = _RowDigest()
        for rows in _groups(copy, kept):
            found.add(rows)
        if before == after and found.told == expected.told:
            return
    what = "types" if before != after else "values"
    raise PenstockError(
        f"the copy {target} has not the {what} of its file, of {expected.rows} rows, and is not taken; "
        "overwrite the rows of that file with Spark"
    )


_INT96 = ("INT96", {"Type": "None"})
_INSTANT = ("INT64", {"Type": "Timestamp", "isAdjustedToUTC": True, "timeUnit": "microseconds"})


def _types(file: pq.ParquetFile, names: Sequence[str]) -> list[tuple[str, dict[str, object]]]:
    """Returns the types of the leaves of some columns; decimals are the same in whatever bytes they stand."""
    own = [(leaf, _logical(leaf)) for leaf in _leaves(file, names)]
    return [("" if kind["Type"] == "Decimal" else leaf.physical_type, kind) for leaf, kind in own]


def _logical(leaf: pq.ColumnSchema) -> dict[str, object]:
    told = json.loads(leaf.logical_type.to_json())
    return {key: told[key] for key in _TYPE_FIELDS if key in told}


def _leaves(file: pq.ParquetFile, names: Collection[str]) -> list[pq.ColumnSchema]:
    """Returns the leaves of some columns by their places: column `a.b` has the path of field `b` of column `a`."""
    found, first = [], 0
    for item in file.schema_arrow:
        behind = first + _width(item.type)
        if item.name in names:
            found += [file.schema.column(index) for index in range(first, behind)]
        first = behind
    return found


def _width(kind: pa.DataType) -> int:
    """Counts the leaves of a column of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    return sum(_width(kind.field(index).type) for index in range(kind.num_fields)) or 1


def _groups(file: pq.ParquetFile, names: Sequence[str]) -> Iterator[pa.Table]:
    for group in range(file.num_row_groups):
        if file.metadata.row_group(group).num_rows:
            yield file.read_row_group(group, columns=list(names)).select(names)


def _with_instants(schema: pa.Schema, leaves: Iterator[pq.ColumnSchema]) -> pa.Schema:
    return pa.schema([item.with_type(_with_instant(item.type, leaves)) for item in schema])


def _with_instant(kind: pa.DataType, leaves: Iterator[pq.ColumnSchema]) -> pa.DataType:
    """Makes instants of what a file keeps in twelve bytes, at every depth of a type."""

    def changed(item: pa.Field) -> pa.Field:
        return item.with_type(_with_instant(item.type, leaves))

    if pa.types.is_struct(kind):
        return pa.struct([changed(item) for item in kind])
    if pa.types.is_map(kind):
        key = changed(kind.key_field)
        return pa.map_(key, changed(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(changed(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(changed(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(changed(kind.value_field), kind.list_size)
    return pa.timestamp("us", "UTC") if next(leaves).physical_type == "INT96" else kind
