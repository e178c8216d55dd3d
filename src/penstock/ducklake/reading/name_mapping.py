"""Maps the columns of files without field ids: by the names in the catalog's mapping, or else by their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.files import MappedField
from penstock.ducklake.reading.hive_values import castable_text
from penstock.ducklake.reading.row_conversion import Conversion, Reading
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.spark.projection import type_sql
from penstock.storage.paths import hive_values


@dataclass(frozen=True)
class MappedReading:
    """How the files of one name mapping are read. Hive columns come from the path, as constants of each file."""

    reading: Reading
    hive: Mapping[int, str]  # column id -> the name in the path
    columns: Mapping[int, Column]  # those that are read, by id

    @property
    def constants(self) -> T.StructType:
        """The schema of the constants of each file: texts of its hive columns."""
        return T.StructType([T.StructField(_hive_name(column_id), T.StringType()) for column_id in self.hive])

    def constants_of(self, path: str) -> tuple[str | None, ...]:
        """The constants of the file at a path."""
        values = hive_texts(path, self.hive.values())
        return tuple(self._constant(column_id, values[name.lower()]) for column_id, name in self.hive.items())

    def _constant(self, column_id: int, text: str | None) -> str | None:
        column = self.columns.get(column_id)
        return text if column is None or text is None else castable_text(text, column, self.reading.nanoseconds)

    def shown(self, column: Column) -> str | None:
        """SQL of a hive column, cast from the path's text; None for a column of the file."""
        if column.id not in self.hive:
            return None
        return f"CAST({_hive_name(column.id)} AS {type_sql(self.reading.shown_type(column))})"


def mapped_reading(
    columns: Sequence[Column],
    mapping: Sequence[MappedField],
    nanoseconds: bool,
    conversions: Mapping[int, Conversion],
) -> MappedReading:
    """How to read files of a mapping."""
    hive = {item.column_id: item.source_name for item in mapping if item.is_partition}
    names = source_names(mapping)
    missing = {
        item.id for column in columns for item in _fields(column) if item.id not in names and item.id not in hive
    }
    reading = Reading(nanoseconds, columns=conversions, missing=frozenset(missing), names=names, by_field_id=False)
    return MappedReading(reading, hive, {column.id: column for column in columns})


def mapping_by_position(columns: Sequence[Column], names: Sequence[str]) -> tuple[MappedField, ...]:
    """The columns of a file without field ids: the first is the table's first when it was written, and so on.

    UnsupportedError for nested columns, whose fields have no position that readers agree about.
    """
    pairs = list(zip(columns, names, strict=False))
    for column, _ in pairs:
        if column.type.nested:
            raise UnsupportedError(
                f"a file without field ids holds the column {column.name!r}, a {column.type}, whose fields cannot be "
                "told; link the file by its names instead, with add_files to a new table"
            )
    return tuple(MappedField(number, name, column.id, None, False) for number, (column, name) in enumerate(pairs))


def hive_texts(path: str, names: Iterable[str]) -> dict[str, str | None]:
    """What the directories of a path say, by names in lower case; InvalidError where they do not say all of these."""
    values = {name.lower(): value for name, value in hive_values(path).items()}
    for name in names:
        if name.lower() not in values:
            raise InvalidError(
                f"{path} is in no directory {name}=..., by which the catalog takes a column of it, and no reader finds "
                "that; link the file anew from such a directory, with one `=` in its name"
            )
    return values


def source_names(mapping: Sequence[MappedField]) -> dict[int, str]:
    """The name in the files of each column that they hold."""
    return {item.column_id: item.source_name for item in mapping if not item.is_partition}


def _fields(column: Column) -> list[Column]:
    """The column and the struct fields below it; list elements and map entries are always there."""
    below = [item for child in column.children for item in _fields(child)]
    if column.type.name == "struct":
        return [column, *below]
    own = {child.id for child in column.children}
    return [column, *(item for item in below if item.id not in own)]


def _hive_name(column_id: int) -> str:
    return f"_penstock_hive_{column_id}"
