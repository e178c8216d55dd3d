"""Matches the columns of a leaf with the namespace's: by ids in their metadata, by what is noted of them, by name.

Other programs rename, re-type, drop and add columns of leaves. Lance keeps a column's metadata and its own field id
when it is renamed, and nothing but the name when it is re-typed. So the manifest tells what each column of a leaf was
called, and its field id, when a writer of ours last saw it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.errors import InvalidError
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.field_ids import FIELD_ID, field_id

if TYPE_CHECKING:
    from lance import LanceDataset

COLUMN_NOTES = "lance.partitioning.columns"
_MOST_NOTES = 100  # columns, if they have ids of their own: the manifest is written whole with every change.
_NOT_OURS = -1
_FORMER_NAMES = b"lance.partitioning.former-names"


class ColumnNote(NamedTuple):
    """A column of a leaf as a writer of ours last saw it: the namespace's id or -1, Lance's field id, and its name."""

    id: int
    field: int
    name: str


def read_column_notes(properties: Mapping[str, str]) -> tuple[ColumnNote, ...]:
    """The notes of a leaf's columns, from the properties of its manifest entry."""
    return tuple(ColumnNote(*one) for one in json.loads(properties.get(COLUMN_NOTES, "[]")))


def new_column_notes(columns: Mapping[int, str], dataset: LanceDataset) -> tuple[ColumnNote, ...]:
    """Notes of a leaf's columns, given which of them are the namespace's: `columns` are their names by its ids."""
    ids = {name: number for number, name in columns.items()}
    return tuple(
        ColumnNote(ids.get(name, _NOT_OURS), number, name) for name, number in lance_field_ids(dataset).items()
    )


def column_notes_text(notes: Sequence[ColumnNote], definition: NamespaceDefinition, leaf: pa.Schema) -> str:
    """The notes as a property of the leaf's entry: of very many columns, those alone that ids and names do not tell."""
    names = {field_id(item): item.name for item in definition.schema}

    def tells(one: ColumnNote) -> bool:
        return FIELD_ID in (leaf.field(one.name).metadata or {}) and names.get(one.id, one.name) == one.name

    return json.dumps(notes if len(notes) <= _MOST_NOTES else [one for one in notes if not tells(one)])


def lance_field_ids(dataset: LanceDataset) -> dict[str, int]:
    """Lance's own field id of each column, by name."""
    return {item.name(): item.id() for item in dataset.lance_schema.fields()}


def leaf_columns(
    definition: NamespaceDefinition,
    leaf: str,
    dataset: LanceDataset,
    notes: Sequence[ColumnNote],
    overwritten: bool = False,
) -> dict[int, str]:
    """The names of a leaf's columns by the namespace's ids, those of columns that it has dropped among them.

    A leaf that was `overwritten` since the notes were made counts its fields from the start. Raises InvalidError where
    a column may be one of the namespace's or not.
    """
    fields = {} if overwritten else lance_field_ids(dataset)
    found = match_columns(definition, dataset.schema, notes, fields)
    names = {item.name for item in dataset.schema if FIELD_ID not in (item.metadata or {})}
    new = names - set(found.values()) - {one.name for one in notes}
    lost = next((one for one in notes if one.id not in (*found, _NOT_OURS) and _has(definition, one.id)), None)
    if new and lost is not None:
        raise InvalidError(
            f"leaf {leaf} had a column {lost.name!r}, which is gone, and has a new column {min(new)!r}: it may be the"
            f" same or not. If it is, rename it to {lost.name!r} with pylance; if not, add an empty {lost.name!r} there"
        )
    return found


def match_columns(
    definition: NamespaceDefinition, leaf: pa.Schema, notes: Sequence[ColumnNote] = (), fields: Mapping[str, int] = {}
) -> dict[int, str]:
    """The names of a leaf's columns by the namespace's ids, those of dropped columns among them.

    Ids in the metadata decide; then Lance's field ids, and the names, of columns that are noted; then the names of the
    namespace's columns, now and before, in any case.
    """
    found = {field_id(item): item.name for item in leaf if FIELD_ID in (item.metadata or {})}
    anonymous = [item.name for item in leaf if FIELD_ID not in (item.metadata or {})]

    def claim(number: int, name: str | None) -> None:
        if name is not None and number not in found:
            found[number] = name
            anonymous.remove(name)

    ours = [one for one in notes if one.id != _NOT_OURS]
    for one in ours:
        claim(one.id, next((name for name in anonymous if fields.get(name) == one.field), None))
    for one in ours:
        claim(one.id, one.name if one.name in anonymous else None)
    present = {item.name.lower() for item in definition.schema}
    for item in definition.schema:
        former = [name for name in former_names(item) if name.lower() not in present]
        claim(field_id(item), _same_name(anonymous, [item.name, *former]))
    return found


def _has(definition: NamespaceDefinition, number: int) -> bool:
    return any(field_id(item) == number for item in definition.schema)


def former_names(item: pa.Field) -> list[str]:
    """The names that a column had before, the newest first."""
    return list(json.loads((item.metadata or {}).get(_FORMER_NAMES, b"[]")))


def with_column_name(item: pa.Field, name: str) -> pa.Field:
    """The column under a new name, with the old one among its former names."""
    names = json.dumps([item.name, *former_names(item)]).encode()
    return item.with_name(name).with_metadata({**(item.metadata or {}), _FORMER_NAMES: names})


def has_namespace_columns(definition: NamespaceDefinition, leaf: pa.Schema, columns: Mapping[int, str]) -> bool:
    """Whether a leaf's columns, so matched, are just the namespace's: none missing, none more, of the same types."""
    return len(leaf) == len(columns) == len(definition.schema) and all(
        columns.get(field_id(item)) == item.name and leaf.field(item.name).type == item.type
        for item in definition.schema
    )


def new_leaf_schema(definition: NamespaceDefinition) -> pa.Schema:
    """The schema of a new leaf: the namespace's, without what only concerns the namespace."""
    return pa.schema(
        [
            item.with_metadata({key: value for key, value in item.metadata.items() if key != _FORMER_NAMES})
            for item in definition.schema
        ]
    )


def _same_name(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    for name in wanted:
        if name in names:
            return name
        folded = next((other for other in names if other.lower() == name.lower()), None)
        if folded is not None:
            return folded
    return None
