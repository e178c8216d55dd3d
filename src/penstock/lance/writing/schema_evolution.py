"""Changes a namespace's schema. Leaves stay as they are: readers and writers match their columns by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.errors import InvalidError, NotFoundError
from penstock.lance.commits.column_notes import has_column_notes, with_column_notes
from penstock.lance.commits.namespace_commit import begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.field_ids import field_id, fields_in_type, with_field_id, with_next_field_id
from penstock.lance.format.leaf_columns import with_column_name
from penstock.lance.format.manifest import Manifest
from penstock.lance.reading.leaf_scan import LeafScan

_RESERVED = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_FLOATS = [pa.float16(), pa.float32(), pa.float64()]


def check_column_names(items: Sequence[pa.Field]) -> None:
    """Raise InvalidError for column names that Lance cannot keep, or that are there twice."""
    seen: set[str] = set()
    for item in items:
        if not item.name or "." in item.name or "`" in item.name or item.name.lower() in _RESERVED:
            raise InvalidError(
                f"a Lance column cannot be called {item.name!r}: no dots, no backticks, not empty, and none of"
                f" {', '.join(_RESERVED)}; choose another name"
            )
        if item.name.lower() in seen:
            raise InvalidError(f"there are two columns called {item.name!r} (in any case); rename one")
        seen.add(item.name.lower())


def add_column(definition: NamespaceDefinition, item: pa.Field) -> NamespaceDefinition:
    """The definition with a new column, which is NULL in all rows that are there."""
    if not item.nullable:
        raise InvalidError(f"column {item.name!r} cannot be NOT NULL: the rows that are there have no value for it")
    number = definition.next_id
    schema = with_next_field_id(
        definition.schema.append(with_field_id(item, number)), number + fields_in_type(item.type)
    )
    check_column_names(list(schema))
    return replace(definition, schema=schema)


def drop_column(definition: NamespaceDefinition, name: str) -> NamespaceDefinition:
    """The definition without a column; partition columns, and the last one, cannot be dropped."""
    place = _place(definition, name)
    sources = [definition.source(number) for field in definition.fields for number in field.sources]
    inside = next((source for source in sources if source.path[0] == definition.schema.names[place]), None)
    if inside is not None:
        partitioned = "" if len(inside.path) == 1 else f" (by {inside.name})"
        raise InvalidError(
            f"column {name!r} is partitioned by{partitioned}, so it cannot be dropped; make a new namespace"
        )
    if len(definition.schema) == 1:
        raise InvalidError(f"column {name!r} is the only one; a namespace has at least one")
    return replace(definition, schema=definition.schema.remove(place))


def rename_column(definition: NamespaceDefinition, name: str, new: str) -> NamespaceDefinition:
    """The definition with another name for a column; the names of partitions stay as they are."""
    place = _place(definition, name)
    schema = definition.schema.set(place, with_column_name(definition.schema.field(place), new))
    check_column_names(list(schema))
    return replace(definition, schema=schema)


def set_type(definition: NamespaceDefinition, name: str, kind: pa.DataType) -> NamespaceDefinition:
    """The definition with another type for a column, which holds every value of the old one."""
    place = _place(definition, name)
    item = definition.schema.field(place)
    if not _widens(item.type, kind):
        raise InvalidError(
            f"column {name!r} is {item.type}, which {kind} does not hold every value of; choose a wider type"
        )
    partitioned = any(field_id(item) in field.sources for field in definition.fields)
    if partitioned and item.type != kind and not (pa.types.is_integer(item.type) and pa.types.is_integer(kind)):
        raise InvalidError(
            f"column {name!r} is partitioned by, and as {kind} its values could have other partitions; leave its type"
        )
    return replace(definition, schema=definition.schema.set(place, item.with_type(kind)))


def commit_definition(manifest: Manifest, scan: LeafScan, new: NamespaceDefinition, operation: str, column: str) -> int:
    """Put a new definition in place of the scan's; no leaf is touched. Returns the namespace's new version.

    Of leaves whose columns go by the namespace's names, it is noted what these have meant so far.
    """
    with begin_commit(manifest, scan.name, scan.definition, new_writer_id()) as commit:
        root = commit.state.entry(scan.name)
        assert root is not None  # or the commit would not have begun
        others = [(entry, leaf) for entry, leaf in commit.leaves() if not has_column_notes(entry, leaf)]
        noted = commit.for_each(others, lambda one: with_column_notes(scan.definition, commit.store, *one))
        return commit.publish([root.with_properties(new.properties()), *noted], [], operation, column=column)


def _place(definition: NamespaceDefinition, name: str) -> int:
    names = definition.schema.names
    if name in names:
        return int(names.index(name))
    folded = [other.lower() for other in names]
    if name.lower() not in folded:
        raise NotFoundError(f"there is no column {name!r}; the columns are {', '.join(names)}")
    return folded.index(name.lower())


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    for family in (_INTEGERS, _UNSIGNED, _FLOATS):
        if old in family and new in family:
            return family.index(old) <= family.index(new)
    if old in _UNSIGNED and new in _INTEGERS:
        return bool(old.bit_width < new.bit_width)
    if pa.types.is_integer(old) and pa.types.is_float64(new):
        return bool(old.bit_width <= 32)
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    if pa.types.is_date(old) and pa.types.is_timestamp(new):
        return new.tz is None
    if pa.types.is_timestamp(old) and pa.types.is_timestamp(new):
        units = ["s", "ms", "us"]
        return (
            old.tz == new.tz
            and old.unit in units
            and new.unit in units
            and units.index(old.unit) <= units.index(new.unit)
        )
    if pa.types.is_list(new) and (pa.types.is_list(old) or pa.types.is_fixed_size_list(old)):
        return _widens(old.value_type, new.value_type)
    return old == new or {old, new} in ({pa.string(), pa.large_string()}, {pa.binary(), pa.large_binary()})
