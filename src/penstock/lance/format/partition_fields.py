"""Partition fields: what partitions are made of, parsed from users' texts and from the properties of a namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import NotFoundError, UnsupportedError
from penstock.lance.format.field_ids import PartitionSource
from penstock.lance.format.nested_hashes import nested_bytes
from penstock.lance.format.object_ids import encode_value
from penstock.partitioning import (
    MURMUR3,
    Bucket,
    Calendar,
    Hash,
    Identity,
    Transform,
    Truncate,
    Unknown,
    parse_partition_field,
    parse_transform,
)
from penstock.partitioning.transforms import MOST_BUCKETS
from penstock.schema.columns import Column, find_path
from penstock.schema.types import Order, Type

_HASH = "murmur3_x86_32"
_PARTITION_NAME = "partition-name"  # what names of partitions begin with, where that is not the column's name
_DECIMALS, _BY_VALUE = "decimals", "by-value"  # a width counts ones, not last digits
_BUCKETS = ("num-buckets", "num_buckets", "bucket_size", "bucket-size")
_WIDTHS = ("width", "truncate_size", "truncate-size")
_WITH_ARGUMENT = re.compile(r"(\w+)\s*[\[(]\s*(\d+)\s*[\])]")
_INSTANT, _BLOB = Type("timestamp"), Type("blob")
_NESTED = ("list", "struct", "map")


@dataclass(frozen=True)
class PartitionField:
    """One level of the partitioning: the ids of its columns, and the transform that makes values of them.

    `name` is what the names of partitions begin with, and stays when a column is renamed. A field that is not `trusted`
    does not say how it hashes, or what the width of decimals counts: even our own leaves can have been named otherwise.
    """

    name: str
    sources: tuple[int, ...]
    transform: Transform
    trusted: bool = True
    properties: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # that it was read with
    current_name: str = field(default="", compare=False)  # made of what its columns are called now

    @property
    def key(self) -> str:
        """What stands before the `=` in the names of partitions: `country`, `city_bucket`, `ts_year`."""
        return encode_value(self._suffixed(self.name))

    @property
    def keys(self) -> frozenset[str]:
        """All that other writers may put there: without the suffix, or with the name that the column has now."""
        names = [name for name in (self.name, self.current_name) if name]
        return frozenset([*names, *map(self._suffixed, names)])

    def _suffixed(self, name: str) -> str:
        suffix = self.transform.suffix
        return f"{name}_{suffix}" if suffix else name

    def values(self, arrays: Sequence[pa.Array], types: Sequence[Type]) -> pa.StringArray:
        """The partition values of rows, given the columns that the field is made of."""
        if isinstance(self.transform, Hash):
            nested = [type.order is Order.NONE for type in types]
            arrays = [nested_bytes(array) if inside else array for array, inside in zip(arrays, nested, strict=True)]
            types = [_BLOB if inside else type for type, inside in zip(types, nested, strict=True)]
        texts = self.transform.combined(arrays, types)
        if isinstance(self.transform, Calendar):
            return pc.utf8_zero_fill(texts, self.transform.digits)
        if isinstance(self.transform, Identity) and types[0].order is Order.DECIMAL:
            return pc.replace_substring_regex(texts, r"^(-?)\.", r"\10.")  # DuckDB, whose texts these are, writes .50
        return texts


def transform_type(type: Type) -> Type:
    """A column's type as transforms take it: every timestamp is one of microseconds, in UTC."""
    return _INSTANT if type.order is Order.TIMESTAMP else type


def new_partition_field(text: str, columns: Sequence[Column]) -> PartitionField:
    """The partition field that a user's text describes, `bucket(4, city)`; `columns` are the namespace's."""
    names, transform = parse_partition_field(text)
    sources = tuple(_source_column(name, columns, text) for name in names)
    if isinstance(transform, Bucket):
        transform = replace(transform, hashing=MURMUR3)
    for column in sources:
        check_transform(transform, column)
    decimals = isinstance(transform, Truncate) and sources[0].type.order is Order.DECIMAL
    properties = {_DECIMALS: _BY_VALUE} if decimals else {}
    paths = {column.id: path for column, path in _paths(columns)}
    name = "_".join(paths[column.id] for column in sources)
    return PartitionField(
        name, tuple(column.id for column in sources), transform, properties=properties, current_name=name
    )


def check_transform(transform: Transform, column: Column) -> None:
    """Raise an error of ours for a column that cannot be partitioned by this transform."""
    if isinstance(transform, Hash) and column.type.name in _NESTED:
        unhashable = next((one for one in column.walk() if not one.children and one.type.order is Order.NONE), None)
        if unhashable is not None:
            raise UnsupportedError(
                f"hash({column.name}): Lance hashes no {unhashable.type}; partition by another column"
            )
        return
    if isinstance(transform, Identity) and column.type.order in (Order.BYTES, Order.NONE):
        raise UnsupportedError(
            f"{column.name} is a {column.type}, whose values have no text that names a partition;"
            f" partition by bucket(16, {column.name}) or another column"
        )
    transform.check(replace(column, type=transform_type(column.type)))


def _source_column(name: str, columns: Sequence[Column], text: str) -> Column:
    column = find_path(columns, name.split("."))
    if column is None:
        names = ", ".join(column.name for column in columns)
        raise NotFoundError(f"{text}: the schema has no column {name!r}; its columns are {names}")
    if column.id < 0:
        raise UnsupportedError(f"{text}: {name} has no id of its own in this namespace; make it a column")
    return column


def _paths(columns: Sequence[Column], around: str = "") -> Iterator[tuple[Column, str]]:
    """Columns and fields of structs with their names, `s.a`."""
    for column in columns:
        yield column, around + column.name
        yield from _paths(column.children, f"{around}{column.name}.")


def field_to_json(field: PartitionField, by_id: Mapping[int, PartitionSource]) -> dict[str, Any]:
    """The JSON of a partition field in the namespace's properties."""
    sources = list(field.sources)
    names = [by_id[number].name for number in sources]
    # A name is that of a column: of several columns there are the ids alone.
    source = {"name": names[0], "source-id": sources[0]} if len(sources) == 1 else {"source-ids": sources}
    transform = field.transform
    function = str(transform) if isinstance(transform, Unknown) else str(transform).partition("(")[0]
    properties = {key: value for key, value in field.properties.items() if key != _PARTITION_NAME}
    if field.name != "_".join(names):
        properties[_PARTITION_NAME] = field.name
    match transform:
        case Bucket():
            properties["num-buckets"] = str(transform.count)
        case Truncate():
            properties["width"] = str(transform.width)
    if field.trusted and isinstance(transform, Bucket | Hash):
        properties["hash"] = _HASH
    return {**source, "function": function, "properties": properties}


def field_from_json(
    described: Mapping[str, Any], by_id: Mapping[int, PartitionSource], has_ids: bool
) -> PartitionField:
    """The partition field of its JSON, whoever wrote it; `has_ids` tells whether the schema carries ids of its own.

    Raises ValueError, TypeError, KeyError or AttributeError where it cannot be understood.
    """
    sources = _sources(described, by_id, has_ids)
    properties = dict(described.get("properties") or {})
    transform, trusted = _transform(str(described["function"]), properties)
    missing = next((number for number in sources if number not in by_id), None)
    if missing is not None:
        raise KeyError(f"no column has the id {missing}")
    if isinstance(transform, Truncate) and any(pa.types.is_decimal(by_id[number].type) for number in sources):
        trusted = properties.get(_DECIMALS) == _BY_VALUE
    current_name = "_".join(by_id[number].name for number in sources)
    name = properties.get(_PARTITION_NAME) or described.get("name") or current_name
    return PartitionField(str(name), sources, transform, trusted, properties, current_name)


def _sources(described: Mapping[str, Any], by_id: Mapping[int, PartitionSource], has_ids: bool) -> tuple[int, ...]:
    name = described.get("name")
    alone = described.get("source-id")
    ids = described.get("source-ids") or ([] if alone is None else [alone])
    named = next((number for number, source in by_id.items() if source.name == name), None)
    # Without ids of the schema's own it is uncertain how another writer counts: a name is better.
    if named is not None and (not ids or (not has_ids and len(ids) == 1)):
        return (named,)
    if not ids:
        raise KeyError(f"no column is called {name!r}")
    return tuple(int(number) for number in ids)


def _transform(function: str, properties: Mapping[str, Any]) -> tuple[Transform, bool]:
    """The transform, and whether its values can be told from a row's."""
    argument = _WITH_ARGUMENT.fullmatch(function.strip())
    name = (argument[1] if argument else function).strip().lower()
    given = [argument[2]] if argument else []
    hashed = properties.get("hash") == _HASH
    match name:
        case "bucket":
            return Bucket(_number(name, [*given, *(properties.get(key) for key in _BUCKETS)]), MURMUR3), hashed
        case "truncate":
            return Truncate(_number(name, [*given, *(properties.get(key) for key in _WIDTHS)])), True
        case "hash":
            return Hash(), hashed
        case _:
            known = parse_transform(name)
            return Unknown(function) if argument or isinstance(known, Unknown) else known, True


def _number(function: str, given: Sequence[Any]) -> int:
    """The number of buckets, or a width: the first that is given."""
    number = next((int(text) for text in given if text is not None), 0)
    if not 1 <= number <= MOST_BUCKETS:
        raise ValueError(f"{function} needs a number from 1 to {MOST_BUCKETS}")
    return number
