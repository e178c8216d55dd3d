"""What a partitioned namespace is: its schema and partition fields, and the properties that say so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.lance.format.field_ids import NEXT_ID, PartitionSource, field_id, partition_sources, with_field_ids
from penstock.lance.format.nested_hashes import nested_bytes
from penstock.lance.format.object_ids import encode_value
from penstock.lance.format.schema_json import schema_from_json, schema_to_json
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

ENABLED = "lance.partitioning.enabled"
PARTITION_COLUMNS = "lance.partitioning.partition-columns"
SCHEMA = "lance.partitioning.schema"
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
    """One level of the partitioning: its columns by id, and what is made of them.

    `name` is what the names of partitions begin with, and stays when a column is renamed. A field that is not `trusted`
    does not say how it hashes, or what the width of decimals counts: even our own leaves can have been named otherwise.
    """

    name: str
    sources: tuple[int, ...]
    transform: Transform
    trusted: bool = True
    given: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # the properties it was read with
    columns: str = field(default="", compare=False)  # what its columns are called now

    @property
    def key(self) -> str:
        """What stands before the `=` in the names of partitions: `country`, `city_bucket`, `ts_year`."""
        return encode_value(self._suffixed(self.name))

    @property
    def keys(self) -> frozenset[str]:
        """All that other writers may put there: without the suffix, or with the name that the column has now."""
        names = [name for name in (self.name, self.columns) if name]
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


@dataclass(frozen=True)
class NamespaceDefinition:
    """A namespace's schema, every field with its id in the metadata, and its partition fields."""

    schema: pa.Schema
    fields: tuple[PartitionField, ...]
    texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)  # the properties it was read from

    def id(self, name: str) -> int:
        return field_id(self.schema.field(name))

    def source(self, number: int) -> PartitionSource:
        return partition_sources(self.schema)[number]

    @property
    def next_id(self) -> int:
        return int((self.schema.metadata or {})[NEXT_ID])

    def properties(self) -> dict[str, str]:
        """The properties of the root namespace."""
        sources = partition_sources(self.schema)
        columns = [_to_json(field, sources) for field in self.fields]
        return {ENABLED: "true", PARTITION_COLUMNS: json.dumps(columns), SCHEMA: schema_to_json(self.schema)}


def transform_type(type: Type) -> Type:
    """The type as transforms take it: every timestamp is one of microseconds, in UTC."""
    return _INSTANT if type.order is Order.TIMESTAMP else type


def new_definition(schema: pa.Schema, columns: Sequence[Column], partitioned_by: Sequence[str]) -> NamespaceDefinition:
    """The definition of a new namespace; `columns` are the schema's, with its ids."""
    if not partitioned_by:
        raise InvalidError("a partitioned namespace needs at least one partition field: partitioned_by=['country']")
    fields = tuple(_parsed(text, columns) for text in partitioned_by)
    twice = next((text for i, text in enumerate(partitioned_by) if fields[i] in fields[:i]), None)
    if twice is not None:
        raise InvalidError(f"partitioned by {', '.join(partitioned_by)}: {twice} is there twice; leave one out")
    return NamespaceDefinition(schema, fields)


def read_definition(name: str, properties: Mapping[str, str]) -> NamespaceDefinition:
    """The definition that a namespace's properties tell of."""
    if properties.get(ENABLED) != "true":
        raise InvalidError(
            f"namespace {name!r} is not partitioned: its property {ENABLED} is not 'true'; make one with lance.create"
        )
    absent = next((key for key in (SCHEMA, PARTITION_COLUMNS) if key not in properties), None)
    if absent is not None:
        raise InvalidError(f"namespace {name!r} has no property {absent}: its writer did not finish, or left it out")
    own = schema_from_json(properties[SCHEMA])
    schema = with_field_ids(own)
    try:
        described = json.loads(properties[PARTITION_COLUMNS])
        if not described or not isinstance(described, list):
            raise ValueError("it is no list of at least one field")
        sources = partition_sources(schema)
        fields = tuple(_from_json(item, sources, own is schema) for item in described)
        return NamespaceDefinition(schema, fields, {key: properties[key] for key in (SCHEMA, PARTITION_COLUMNS)})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidError(f"namespace {name!r}: {PARTITION_COLUMNS} cannot be read ({error!r})") from None


def _parsed(text: str, columns: Sequence[Column]) -> PartitionField:
    names, transform = parse_partition_field(text)
    sources = tuple(_found(name, columns, text) for name in names)
    if isinstance(transform, Bucket):
        transform = replace(transform, hashing=MURMUR3)
    for column in sources:
        check_transform(transform, column)
    decimals = isinstance(transform, Truncate) and sources[0].type.order is Order.DECIMAL
    given = {_DECIMALS: _BY_VALUE} if decimals else {}
    paths = {column.id: path for column, path in _paths(columns)}
    name = "_".join(paths[column.id] for column in sources)
    return PartitionField(name, tuple(column.id for column in sources), transform, given=given, columns=name)


def check_transform(transform: Transform, column: Column) -> None:
    """Refuse a column that cannot be partitioned by this transform."""
    if isinstance(transform, Hash) and column.type.name in _NESTED:
        odd = next((one for one in column.walk() if not one.children and one.type.order is Order.NONE), None)
        if odd is not None:
            raise UnsupportedError(f"hash({column.name}): Lance hashes no {odd.type}; partition by another column")
        return
    if isinstance(transform, Identity) and column.type.order in (Order.BYTES, Order.NONE):
        raise UnsupportedError(
            f"{column.name} is a {column.type}, whose values have no text that names a partition;"
            f" partition by bucket(16, {column.name}) or another column"
        )
    transform.check(replace(column, type=transform_type(column.type)))


def _found(name: str, columns: Sequence[Column], text: str) -> Column:
    column = find_path(columns, name.split("."))
    if column is None:
        there = ", ".join(column.name for column in columns)
        raise NotFoundError(f"{text}: the schema has no column {name!r}; its columns are {there}")
    if column.id < 0:
        raise UnsupportedError(f"{text}: {name} has no id of its own in this namespace; make it a column")
    return column


def _paths(columns: Sequence[Column], around: str = "") -> Iterator[tuple[Column, str]]:
    """Columns and fields of structs with their names, `s.a`."""
    for column in columns:
        yield column, around + column.name
        yield from _paths(column.children, f"{around}{column.name}.")


def _to_json(field: PartitionField, by_id: Mapping[int, PartitionSource]) -> dict[str, Any]:
    sources = list(field.sources)
    names = [by_id[number].name for number in sources]
    # A name is that of a column: of several columns there are the ids alone.
    told = {"name": names[0], "source-id": sources[0]} if len(sources) == 1 else {"source-ids": sources}
    transform = field.transform
    function = str(transform) if isinstance(transform, Unknown) else str(transform).partition("(")[0]
    properties = {key: value for key, value in field.given.items() if key != _PARTITION_NAME}
    if field.name != "_".join(names):
        properties[_PARTITION_NAME] = field.name
    match transform:
        case Bucket():
            properties["num-buckets"] = str(transform.count)
        case Truncate():
            properties["width"] = str(transform.width)
    if field.trusted and isinstance(transform, Bucket | Hash):
        properties["hash"] = _HASH
    return {**told, "function": function, "properties": properties}


def _from_json(described: Mapping[str, Any], by_id: Mapping[int, PartitionSource], has_ids: bool) -> PartitionField:
    sources = _sources(described, by_id, has_ids)
    given = dict(described.get("properties") or {})
    transform, trusted = _transform(str(described["function"]), given)
    missing = next((number for number in sources if number not in by_id), None)
    if missing is not None:
        raise KeyError(f"no column has the id {missing}")
    if isinstance(transform, Truncate) and any(pa.types.is_decimal(by_id[number].type) for number in sources):
        trusted = given.get(_DECIMALS) == _BY_VALUE
    columns = "_".join(by_id[number].name for number in sources)
    name = given.get(_PARTITION_NAME) or described.get("name") or columns
    return PartitionField(str(name), sources, transform, trusted, given, columns)


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
