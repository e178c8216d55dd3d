"""Finds the columns of a table from the Parquet files that it is to have: from their footers and their directories."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.ducklake.files.foreign_files import FileField, HeldType, read_footer
from penstock.errors import InvalidError, PenstockError, UnsupportedError
from penstock.partitioning.texts import read_text, text
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.workers import map_in_workers
from penstock.storage.paths import hive_values

_MOST_TASKS = 200
_RESULT = "told binary"
# What values of different types are kept as, where neither type holds both.
_WIDER = [Type(name) for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64", "float64")]
# The units of time that each unit holds: add_files takes others too, and rounds.
_COARSER: dict[str, tuple[str, ...]] = {
    "timestamp_s": (),
    "timestamp_ms": ("timestamp_s",),
    "timestamp": ("timestamp_s", "timestamp_ms"),
    "timestamp_ns": (),
}
_IN_DIRECTORIES = [Type("int64"), Type("date"), Type("timestamp")]
_MOST_DIGITS = 38


@dataclass(frozen=True)
class _Found:
    """A field of some files: what it is, and the first file that has it so."""

    name: str
    path: str
    nested: str | None
    held: HeldType | None
    children: tuple[_Found, ...] = ()

    @property
    def shown(self) -> str:
        """Its type, for messages."""
        return self.nested or (self.held.shown if self.held else "")


@dataclass(frozen=True)
class _FieldsJob:
    """Reads the fields of files, in a task: paths in, fields out, or errors that say why not."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            told = [pickle.dumps((path, self._fields(path))) for path in batch["path"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"told": pa.array(told, pa.binary())})

    @staticmethod
    def _fields(path: str) -> tuple[FileField, ...] | PenstockError:
        try:
            return read_footer(path).fields
        except (pa.ArrowException, OSError) as error:
            return InvalidError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}")
        except PenstockError as error:
            return UnsupportedError(f"{path}: {error}")


def columns_of_files(
    spark: SparkSession, paths: Sequence[str], *, allow_missing: bool, hive_partitioning: bool | None
) -> tuple[Column, ...]:
    """The columns that hold what all files have; InvalidError names two files that do not go together."""
    rows = spark.createDataFrame([(path,) for path in paths], "path string").repartition(min(len(paths), _MOST_TASKS))
    told = dict(pickle.loads(row.told) for row in map_in_workers(rows, _FieldsJob(), _RESULT).collect())
    for answer in (told[path] for path in paths):
        if isinstance(answer, PenstockError):
            raise answer
    level = _Level(allow_missing)
    merged: tuple[_Found, ...] | None = None
    for path in paths:
        found = tuple(_found(path, item) for item in told[path])
        merged = found if merged is None else level.merged(merged, found, path, "")
    ids = count(1)
    columns = [_column(item, ids, item.name) for item in merged or ()]
    if hive_partitioning is not False:
        known = {column.name.lower() for column in columns}
        hive = _hive_types({path: hive_values(path) for path in paths})
        columns += [Column(next(ids), name, kind, 0) for name, kind in hive if name.lower() not in known]
    return tuple(columns)


@dataclass(frozen=True)
class _Level:
    """Puts the fields of files together, those of the whole file or of a struct in it."""

    allow_missing: bool

    def merged(self, known: Sequence[_Found], new: Sequence[_Found], path: str, above: str) -> tuple[_Found, ...]:
        """The fields that hold those of the files before and those of another file."""
        others = {item.name.lower(): item for item in new}
        if len(others) < len(new):
            raise InvalidError(f"{path} has two columns of one name, in different case; write it anew with one")
        together = []
        for item in known:
            other = others.pop(item.name.lower(), None)
            if other is None:
                self._missing(above + item.name, item.path, path)
            together.append(item if other is None else self._both(item, other, above + item.name))
        for item in others.values():
            self._missing(above + item.name, item.path, known[0].path if known else path)
        return (*together, *others.values())

    def _both(self, one: _Found, other: _Found, name: str) -> _Found:
        if one.nested != other.nested:
            raise _disagree(one, other, name)
        if one.nested == "struct":
            children = self.merged(one.children, other.children, other.path, f"{name}.")
            return _Found(one.name, one.path, one.nested, None, children)
        if one.nested:
            pairs = zip(one.children, other.children, strict=True)
            parts = tuple(self._both(a, b, f"{name}.{a.name}") for a, b in pairs)
            return _Found(one.name, one.path, one.nested, None, parts)
        kind = _common(one.held, other.held)
        if kind is None:
            raise _disagree(one, other, name)
        return one if kind == one.held else _Found(one.name, other.path, None, kind)

    def _missing(self, name: str, having: str, lacking: str) -> None:
        if not self.allow_missing:
            raise InvalidError(
                f"{having} has a column {name!r} and {lacking} has not; allow_missing=True lets it read as NULL"
            )


def _found(path: str, item: FileField) -> _Found:
    return _Found(item.name, path, item.nested, item.held, tuple(_found(path, child) for child in item.children))


def _common(one: HeldType | None, other: HeldType | None) -> HeldType | None:
    """The type that holds the values of both, or None."""
    if one is None or other is None or one.type is None or other.type is None:
        return one if one == other else None
    candidates = [one.type, other.type, *_WIDER]
    if one.type.name == other.type.name == "decimal":
        scale = max(one.type.scale, other.type.scale)
        digits = scale + max(one.type.precision - one.type.scale, other.type.precision - other.type.scale)
        candidates = [Type("decimal", digits, scale)] if digits <= _MOST_DIGITS else []
    kind = next((each for each in candidates if _keeps(each, one) and _keeps(each, other)), None)
    if kind is None:
        return None
    return one if kind == one.type else other if kind == other.type else HeldType(kind, str(kind))


def _keeps(kind: Type, held: HeldType) -> bool:
    """Whether a type holds all values of a leaf as they are; nanoseconds do not reach as far as other times."""
    if held.type is not None and kind.name in _COARSER:
        return held.type.name in (kind.name, *_COARSER[kind.name])
    return held.fits(kind)


def _disagree(one: _Found, other: _Found, name: str) -> InvalidError:
    return InvalidError(
        f"column {name!r} is {one.shown} in {one.path} and {other.shown} in {other.path}, which no type holds both of; "
        "make a table with the type that it should have, and append the rows of the other files"
    )


def _column(item: _Found, ids: Iterator[int], name: str) -> Column:
    number = next(ids)
    if item.nested:
        parts = {"list": ("element",), "map": ("key", "value")}.get(item.nested)
        names = parts or tuple(child.name for child in item.children)
        children = tuple(_column(child, ids, part) for child, part in zip(item.children, names, strict=True))
        return Column(number, name, Type(item.nested), 0, children=children)
    held = item.held
    if held is None or held.type is None or not held.fits(held.type):
        raise UnsupportedError(f"column {name!r} of {item.path} is {item.shown}, which DuckLake cannot show from files")
    return Column(number, name, held.type, 0)


def _hive_types(values: Mapping[str, Mapping[str, str | None]]) -> Iterator[tuple[str, Type]]:
    """The columns that directories give values of, in their order: whole numbers, dates, timestamps or texts."""
    [first, *_] = values
    for name in values[first]:
        for path, own in values.items():
            if name not in own:
                raise InvalidError(
                    f"{first} is in a directory {name}=..., and {path} is not; hive_partitioning=False takes no values "
                    "from directories"
                )
        yield name, _type_of({own[name] for own in values.values()} - {None})
    for path, own in values.items():
        for name in own.keys() - values[first].keys():
            raise InvalidError(
                f"{path} is in a directory {name}=..., and {first} is not; hive_partitioning=False takes no values "
                "from directories"
            )


def _type_of(texts: Iterable[str | None]) -> Type:
    """The first type of whose values these are the texts, letter by letter: 007 is no number."""
    known = [each for each in texts if each is not None]
    for kind in _IN_DIRECTORIES if known else ():
        with suppress(ValueError):
            if all(text(read_text(each, kind), kind) == each for each in known):
                return kind
    return Type("varchar")
