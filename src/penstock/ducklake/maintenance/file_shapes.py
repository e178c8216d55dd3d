"""Works out how the files of a compaction are read into the columns of the file that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.ducklake.catalog.compactable_files import CompactableFile, TableHistory
from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.maintenance.compaction_job import ROW_ID_READ, SNAPSHOT_ID_READ, Shape
from penstock.ducklake.model.files import MappedField
from penstock.ducklake.reading.name_mapping import source_names
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID_FIELD, EMBEDDED_SNAPSHOT_ID_FIELD
from penstock.schema.types import Type
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type, evolved_values, read_schema, text_literal
from penstock.storage.paths import hive_values

_EMBEDDED = ((EMBEDDED_ROW_ID_FIELD, ROW_ID_READ), (EMBEDDED_SNAPSHOT_ID_FIELD, SNAPSHOT_ID_READ))
_OF_THE_FILE = Type("of the file")  # no column has it: such a value is cast to what its column is


@dataclass
class FileShapes:
    """The shapes of the files that become one, each once."""

    columns: tuple[Column, ...]
    history: TableHistory
    mappings: Mapping[int, Sequence[MappedField]]
    _known: dict[Shape, int] = field(default_factory=dict)
    _by_snapshot: dict[int, Shape] = field(default_factory=dict)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes, by their numbers."""
        return tuple(self._known)

    def number(self, file: CompactableFile) -> int:
        """The number of a file's shape."""
        shape = self._by_field_ids(file) if file.mapping_id is None else self._by_names(file)
        return self._known.setdefault(shape, len(self._known))

    def _by_field_ids(self, file: CompactableFile) -> Shape:
        begin = self.history.columns_since(file.begin_snapshot)
        if begin not in self._by_snapshot:
            source = columns_at(self.history.columns, At(file.begin_snapshot))
            names = {column.id: f"c{place}" for place, column in enumerate(source)}
            values = evolved_values(self.columns, source, names)
            self._by_snapshot[begin] = Shape(tuple(values), read_schema(source, names, _EMBEDDED))
        return self._by_snapshot[begin]

    def _by_names(self, file: CompactableFile) -> Shape:
        assert file.mapping_id is not None
        mapping = self.mappings[file.mapping_id]
        names, hive = source_names(mapping), {item.column_id: item.source_name for item in mapping if item.is_partition}
        texts = {name.lower(): value for name, value in hive_values(file.path).items()} if hive else {}
        source, values = [], {}
        for column in columns_at(self.history.columns, At(file.begin_snapshot)):
            if column.id in hive:
                values[column.id] = _constant(texts.get(hive[column.id].lower()), column)
                source.append(column)
            elif column.id in names:
                values[column.id] = duckdb_quoted(names[column.id])
                source.append(_named(column, names))
        return Shape(tuple(evolved_values(self.columns, source, values)))


def _constant(text: str | None, column: Column) -> str:
    return f"CAST({'NULL' if text is None else text_literal(text)} AS {duckdb_type(column)})"


def _named(column: Column, names: Mapping[int, str]) -> Column:
    """A column as a file has it: under its own names, and without the fields that are not there."""
    if not column.type.nested:
        return replace(column, name=names.get(column.id, column.name), type=_OF_THE_FILE)
    there = [child for child in column.children if column.type.name != "struct" or child.id in names]
    children = tuple(_named(child, names) for child in there)
    return replace(column, name=names.get(column.id, column.name), children=children)
