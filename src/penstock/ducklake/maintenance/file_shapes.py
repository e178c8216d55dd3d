"""Works out how the files of a compaction are read into the columns of the file that they become."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.ducklake.catalog.compactable_files import CompactableFile, TableHistory
from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.files import MappedField
from penstock.ducklake.reading.name_mapping import hive_texts, source_names
from penstock.errors import PenstockError
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID_FIELD, EMBEDDED_SNAPSHOT_ID_FIELD
from penstock.schema.types import Type
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, evolved_values, read_schema, text_literal
from penstock.storage.filesystems import open_file

ROW_ID_READ, SNAPSHOT_ID_READ = "_penstock_row_id", "_penstock_snapshot_id"  # what shapes call the embedded columns
_EMBEDDED = ((EMBEDDED_ROW_ID_FIELD, ROW_ID_READ), (EMBEDDED_SNAPSHOT_ID_FIELD, SNAPSHOT_ID_READ))
_KEPT_AS_FLOATS = ("int128", "uint128")  # what does not fit them is no reason to fail
_OF_THE_FILE = Type("of the file")  # no column has it: such a value is cast to what its column is


@dataclass(frozen=True)
class Shape:
    """How files are read: by field ids under the names of a `schema`, or by their own; a value for each column.

    `checked` are those that have to tell the names of their fields themselves. Those of one `signature` can be read
    together.
    """

    values: tuple[str, ...]
    schema: str | None = None
    checked: bool = False
    signature: str | None = None


@dataclass
class FileShapes:
    """The shapes of the files that become one, each once."""

    columns: tuple[Column, ...]
    history: TableHistory
    mappings: Mapping[int, Sequence[MappedField]]
    _known: dict[Shape, int] = field(default_factory=dict)
    _by_snapshot: dict[tuple[int, bool], Shape] = field(default_factory=dict)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes, by their numbers."""
        return tuple(self._known)

    def number(self, file: CompactableFile) -> int:
        """The number of a file's shape."""
        shape = self._by_field_ids(file) if file.mapping_id is None else self._by_names(file)
        return self._known.setdefault(shape, len(self._known))

    def _by_field_ids(self, file: CompactableFile) -> Shape:
        key = self.history.columns_since(file.begin_snapshot), file.encryption_key is not None
        if key not in self._by_snapshot:
            source = columns_at(self.history.columns, At(file.begin_snapshot))
            self._by_snapshot[key] = self._shape(source, encrypted=key[1])
        return self._by_snapshot[key]

    def _shape(self, source: Sequence[Column], *, encrypted: bool) -> Shape:
        """DuckDB finds columns by their ids, and fields by their names, which files may have of their own."""
        nested = any(column.type.nested for column in self.columns)
        if nested and encrypted:  # whose names nobody else can look up: DuckDB complains where one is not there
            values = evolved_values(self.columns, source, {column.id: duckdb_quoted(column.name) for column in source})
            return Shape(tuple(values))
        names = {column.id: f"c{place}" for place, column in enumerate(source)}
        values = evolved_values(self.columns, source, names)
        return Shape(tuple(values), read_schema(source, names, _EMBEDDED), nested)

    def _by_names(self, file: CompactableFile) -> Shape:
        assert file.mapping_id is not None
        mapping = self.mappings[file.mapping_id]
        names, hive = source_names(mapping), {item.column_id: item.source_name for item in mapping if item.is_partition}
        texts = hive_texts(file.path, hive.values()) if hive else {}
        source, values = [], {}
        for column in columns_at(self.history.columns, At(file.begin_snapshot)):
            if column.id in hive:
                values[column.id] = _constant(texts[hive[column.id].lower()], column)
                source.append(column)
            elif column.id in names:
                values[column.id] = duckdb_quoted(names[column.id])
                source.append(_named(column, names))
        return Shape(tuple(evolved_values(self.columns, source, values)))


def file_shape(path: str, columns: Sequence[Column]) -> Shape:
    """How a file with nested columns is read: by the names that it says itself, of the field ids that are wanted.

    The catalog may not know them: the extension's rewritten files have those of their sources, and a transaction may
    rename fields of rows that it has written.
    """
    try:
        with open_file(path) as source:
            schema = pq.ParquetFile(source).schema_arrow
    except (OSError, pa.ArrowException) as error:
        raise PenstockError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    names = dict(_names_by_id(schema))
    there = [column for column in columns if column.id in names]
    values = {column.id: duckdb_quoted(names[column.id]) for column in there}
    found = evolved_values(columns, [_named(column, names) for column in there], values)
    return Shape(tuple(found), signature=schema.to_string(show_field_metadata=False))


def _names_by_id(fields: Iterable[pa.Field]) -> Iterator[tuple[int, str]]:
    for item in fields:
        number = (item.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            yield int(number), item.name
        kind = item.type
        if pa.types.is_map(kind):
            yield from _names_by_id([kind.key_field, kind.item_field])
        elif pa.types.is_struct(kind) or pa.types.is_list(kind):
            yield from _names_by_id([kind.field(place) for place in range(kind.num_fields)])


def _constant(text: str | None, column: Column) -> str:
    return f"CAST({'NULL' if text is None else text_literal(text)} AS {duckdb_type(column)})"


def _named(column: Column, names: Mapping[int, str]) -> Column:
    """A column as a file has it: under its own names, and without the fields that are not there."""
    if not column.type.nested:
        kind = column.type if column.type.name in _KEPT_AS_FLOATS else _OF_THE_FILE
        return replace(column, name=names.get(column.id, column.name), type=kind)
    there = [child for child in column.children if column.type.name != "struct" or child.id in names]
    children = tuple(_named(child, names) for child in there)
    return replace(column, name=names.get(column.id, column.name), children=children)
