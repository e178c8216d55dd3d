"""Matches the fields of a foreign file with a table's columns, by name, and says where that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.ducklake.files.foreign_files import FileField, Footer, read_footer
from penstock.ducklake.model.files import MappedField
from penstock.errors import InvalidError, PenstockError, UnsupportedError
from penstock.partitioning.texts import read_text, text
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_PREFIX
from penstock.schema.statistics import ColumnStatistics
from penstock.storage.paths import hive_values

# DuckLake finds these by name in every file.
# Types whose values Spark and DuckDB read alike from the text of a directory; others depend on a zone or a spelling.
_IN_DIRECTORIES = (
    "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "decimal", "date", "timestamp",
    "varchar",
)  # fmt: skip


@dataclass(frozen=True)
class MatchingRules:
    """What a file may lack or have too much of, and where its columns are to be found.

    With `hive_partitioning`, directories like `region=EU` give a column's value; None means where there are any.
    `names` are the names of columns in files, by column id, where they are not the columns' own. Where files know their
    columns by ids, `ids` are those, by column id; `named_ids` tell them for files without any, by the path of names.
    """

    allow_missing: bool = False
    ignore_extra_columns: bool = False
    hive_partitioning: bool | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    ids: Mapping[int, int] = field(default_factory=dict)
    named_ids: Mapping[tuple[str, ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignFile:
    """A file that fits a table: the catalog's facts about it."""

    path: str  # absolute
    record_count: int
    size: int
    footer_size: int
    mapping: tuple[MappedField, ...]
    columns: tuple[ColumnStatistics, ...]
    hive: Mapping[int, str]  # the values that directories give, by column id


def match_file(path: str, columns: Sequence[Column], rules: MatchingRules) -> ForeignFile:
    """Match a file with a table's columns, or raise an error that names the file and the column."""
    try:
        footer = read_footer(path)
    except (pa.ArrowException, OSError) as error:
        raise InvalidError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    except PenstockError as error:
        raise UnsupportedError(f"{path} cannot be added: {error}") from None
    return _Matching(path, footer, rules).file(columns)


class _Matching:
    """Matches one file with a table's columns."""

    def __init__(self, path: str, footer: Footer, rules: MatchingRules) -> None:
        self.path, self.footer, self.rules = path, footer, rules
        self.mapping: list[MappedField] = []
        self.statistics: dict[int, ColumnStatistics] = {}
        self.hive: dict[int, str] = {}
        self.in_path: set[int] = set()  # columns whose value, or NULL, is in the path

    def file(self, columns: Sequence[Column]) -> ForeignFile:
        stated = dict(self._hive(columns))
        self.in_path = set(stated)
        self._level(columns, self._fields(), None, "")
        mapped = {item.column_id for item in self.mapping}
        for column in columns:
            if column.id in self.hive and column.id not in mapped:
                self._map(stated[column.id][0], column, None)
            self._check_nulls(column)
        rows = self.footer.metadata.num_rows
        return ForeignFile(
            self.path, rows, self.footer.size, self.footer.footer_size,
            tuple(self.mapping), tuple(self.statistics[number] for number in sorted(self.statistics)), self.hive,
        )  # fmt: skip

    def _fields(self) -> Sequence[FileField]:
        """The fields of the file, with the ids that it should have."""
        fields = self.footer.fields
        if not self.rules.ids or any(item.id is not None for item in fields):
            return fields
        if not self.rules.named_ids:
            raise self._error("it has no field ids, and nothing says which names they go by")
        return [self._with_ids(item, (item.name,)) for item in fields]

    def _with_ids(self, item: FileField, path: tuple[str, ...]) -> FileField:
        inner = {"list": ("element",), "map": ("key", "value")}.get(item.nested or "")
        names = inner or tuple(child.name for child in item.children)
        children = (self._with_ids(child, (*path, name)) for child, name in zip(item.children, names, strict=True))
        return replace(item, id=self.rules.named_ids.get(path), children=tuple(children))

    def _hive(self, columns: Sequence[Column]) -> Iterator[tuple[int, tuple[str, str | None]]]:
        """The columns that directories speak of, each with its name there and its value."""
        if self.rules.hive_partitioning is False:
            return
        found = hive_values(self.path)
        if self.rules.hive_partitioning and not found:
            raise self._error("it is in no directory like name=value; leave hive_partitioning out")
        for column in columns:
            own = [name for name in found if name.lower() == column.name.lower()]
            for name in own[:1]:
                value = found[name]
                yield column.id, (name, value)
                if value is not None:
                    self._constant(column, value)

    def _constant(self, column: Column, value: str) -> None:
        try:
            if column.type.name not in _IN_DIRECTORIES:
                raise ValueError("not told the same by every reader")
            shown = text(read_text(value, column.type), column.type)
        except ValueError:
            raise self._error(
                f"column {column.name!r} is {column.type}, and its directory says {value!r}; "
                "hive_partitioning=False takes the column from the file"
            ) from None
        rows = self.footer.metadata.num_rows
        self.hive[column.id] = shown
        self.statistics[column.id] = ColumnStatistics(column.id, 0, rows, 0, shown, shown)

    def _level(self, columns: Sequence[Column], fields: Sequence[FileField], parent: int | None, above: str) -> None:
        """The fields of a struct, or of the file: mapped in the file's order, as the extension does it."""
        owners = self._owners(columns, fields, above)
        found = {column.id for column in owners.values()}
        for position, item in enumerate(fields):
            if position in owners:
                self._field(owners[position], item, parent, above)
            elif item.name.startswith(EMBEDDED_PREFIX):
                raise self._error(f"{item.name!r} is DuckLake's own; read the file and append its rows instead")
            elif not self.rules.ignore_extra_columns:
                raise self._error(
                    f"the table has no column {above + item.name!r}, which the file has; ignore_extra_columns=True "
                    "leaves it out, add_column makes room for it"
                )
        for column in columns:
            if column.id not in found and column.id not in self.hive:
                self._missing(column, above)

    def _owners(self, columns: Sequence[Column], fields: Sequence[FileField], above: str) -> dict[int, Column]:
        """The column of each field, by the field's place."""
        owners: dict[int, Column] = {}
        for column in columns:
            name = self.rules.names.get(column.id, column.name)
            number = self.rules.ids.get(column.id)
            places = [
                place
                for place, item in enumerate(fields)
                if (item.name.lower() == name.lower() if not self.rules.ids else item.id == number)
            ]
            if len(places) > 1:
                raise self._error(f"it has column {above + name!r} twice, in different case; write it anew with one")
            owners.update(dict.fromkeys(places, column))
        return owners

    def _field(self, column: Column, item: FileField, parent: int | None, above: str) -> None:
        if parent is None and column.id in self.hive:
            self._map(item.name, column, None)
            return
        path = above + column.name
        nested = column.type.name if column.type.nested else None
        if item.nested != nested or (item.held and not item.held.fits(column.type)):
            raise self._error(
                f"column {path!r} is {column.type} and the file has {item.shown}, which does not fit; "
                "read the file with Spark and append its rows, which converts them"
            )
        number = self._map(item.name, column, parent)
        if column.type.name == "struct":
            self._level(column.children, item.children, number, f"{path}.")
        elif nested:
            for child, inner in zip(column.children, item.children, strict=True):
                self._field(child, inner, number, f"{path}.")
        else:
            self.statistics[column.id] = self.footer.statistics(column, item)

    def _map(self, name: str, column: Column, parent: int | None) -> int:
        number = len(self.mapping)
        is_partition = parent is None and column.id in self.hive
        self.mapping.append(MappedField(number, name, column.id, parent, is_partition))
        return number

    def _missing(self, column: Column, above: str) -> None:
        if column.id in self.in_path:  # NULL by its directory: the reader finds no such column, and shows NULL
            if column.initial_default is None:
                self.statistics[column.id] = ColumnStatistics(column.id, 0, 0, self.footer.metadata.num_rows)
                return
            raise self._error(f"column {column.name!r} is NULL by its directory, and would read as its default")
        if not self.rules.allow_missing:
            raise self._error(
                f"column {above + column.name!r} of the table is not in the file; allow_missing=True lets it read as "
                "NULL, or as the default that it was added with"
            )

    def _check_nulls(self, column: Column) -> None:
        """A leaf without NULLs has none above it either."""
        if column.nulls_allowed or not self.footer.metadata.num_rows:
            return
        counts = [self.statistics[item.id].null_count for item in column.walk() if item.id in self.statistics]
        missing = not counts and column.initial_default is not None
        if not missing and 0 not in counts:
            raise self._error(
                f"column {column.name!r} is NOT NULL, and the file may hold NULLs; drop_not_null allows them"
            )

    def _error(self, reason: str) -> InvalidError:
        return InvalidError(f"{self.path}: {reason}")
