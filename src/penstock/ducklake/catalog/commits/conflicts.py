"""Detects conflicts with snapshots committed since the transaction began, by DuckLake's documented rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.ducklake.model.snapshot_changes import SnapshotChange, quoted_parts

_CREATED_RELATIONS = ("created_table", "created_view")
_CREATED_ENTRIES = (*_CREATED_RELATIONS, "created_scalar_macro", "created_table_macro")
_DROPPED_ENTRIES = tuple(kind.replace("created", "dropped") for kind in _CREATED_ENTRIES)
_ALTERED_ENTRIES = ("altered_table", "altered_view")
INSERTED = ("inserted_into_table", "inlined_insert")
DELETED = ("deleted_from_table", "inlined_delete")
COMPACTED = ("merge_adjacent", "rewrite_delete", "compacted_table", "inline_flush", "flushed_inlined")
CHECKED = "checked_table"  # never in the log: somebody relies on the rows that the table has
_KNOWN = {
    "created_schema", "dropped_schema", *_CREATED_ENTRIES, *_DROPPED_ENTRIES, *_ALTERED_ENTRIES,
    *INSERTED, *DELETED, *COMPACTED,
}  # fmt: skip


@dataclass(frozen=True)
class Conflict:
    """One conflict: a kind of thing (`table`), its quoted name or its id, and what happened to it."""

    thing: str
    value: str
    event: str


@dataclass(frozen=True)
class OtherChanges:
    """The changes of all snapshots since a transaction began, by kind."""

    values: Mapping[str, frozenset[str]]

    @staticmethod
    def of(changes: Iterable[SnapshotChange]) -> OtherChanges:
        """Group changes by kind."""
        found: dict[str, set[str]] = {}
        for change in changes:
            found.setdefault(change.kind, set()).add(change.value)
        return OtherChanges({kind: frozenset(values) for kind, values in found.items()})

    @property
    def unknown(self) -> list[str]:
        """Kinds of changes that are not known, and that may stand in the way of anything."""
        return sorted(self.values.keys() - _KNOWN)

    def did(self, value: str, *kinds: str) -> bool:
        """Whether one of these kinds of changes was made to a thing."""
        return any(value in self.values.get(kind, ()) for kind in kinds)

    def created_in(self, schema: str) -> bool:
        """Whether somebody created an entry in a schema of this name."""
        created = (name for kind in _CREATED_ENTRIES for name in self.values.get(kind, ()))
        return any(_folded(name)[0] == schema.lower() for name in created)

    def created(self, name: str, *kinds: str) -> bool:
        """Whether somebody created this quoted name; names compare without regard to case."""
        return any(_folded(name) == _folded(other) for kind in kinds for other in self.values.get(kind, ()))


def find_conflict(own: Iterable[SnapshotChange], others: OtherChanges, schemas: Mapping[int, str]) -> Conflict | None:
    """Find the first conflict, or None. `schemas` are the names of those that there were when the transaction began."""
    if others.unknown:
        return Conflict("change", ", ".join(others.unknown), "was made by another writer, of a kind that is not known")
    found = (_conflict(change, others, schemas) for change in own)
    return next((item for item in found if item), None)


def _conflict(change: SnapshotChange, others: OtherChanges, schemas: Mapping[int, str]) -> Conflict | None:
    kind, value = change.kind, change.value
    if kind == "created_schema":
        event = "was created by another writer too" if others.created(value, kind) else None
    elif kind == "dropped_schema":
        event = _dropped_schema(value, others, schemas)
    elif kind in _CREATED_ENTRIES:
        event = _created_entry(kind, value, others, schemas)
    elif kind in _DROPPED_ENTRIES:
        event = "was dropped by another writer too" if others.did(value, kind) else None
    elif kind in _ALTERED_ENTRIES:
        event = _altered_entry(kind, value, others)
    elif kind == CHECKED:
        event = "got rows by another writer that were not checked" if others.did(value, *INSERTED) else None
    else:
        event = _data(kind, value, others)
    return Conflict(_thing(kind), value, event) if event else None


def _dropped_schema(value: str, others: OtherChanges, schemas: Mapping[int, str]) -> str | None:
    if others.did(value, "dropped_schema"):
        return "was dropped by another writer too"
    return "got a new entry by another writer" if others.created_in(schemas[int(value)]) else None


def _created_entry(kind: str, value: str, others: OtherChanges, schemas: Mapping[int, str]) -> str | None:
    schema = _folded(value)[0]
    if any(others.did(str(number), "dropped_schema") for number, name in schemas.items() if name.lower() == schema):
        return "lost its schema, which was dropped by another writer"
    rivals = _CREATED_RELATIONS if kind in _CREATED_RELATIONS else (kind,)
    return "was created by another writer too" if others.created(value, *rivals) else None


def _altered_entry(kind: str, value: str, others: OtherChanges) -> str | None:
    if others.did(value, kind.replace("altered", "dropped")):
        return "was dropped by another writer"
    return "was altered by another writer too" if others.did(value, kind) else None


def _data(kind: str, value: str, others: OtherChanges) -> str | None:
    if others.did(value, "dropped_table"):
        return "was dropped by another writer"
    # A rewritten file is one of the snapshot that rewrites it, and has to have the columns of that.
    if kind in (*INSERTED, *DELETED, "rewrite_delete") and others.did(value, "altered_table"):
        return "was altered by another writer"
    if kind in (*DELETED, *COMPACTED) and others.did(value, *DELETED):
        return "lost rows that another writer deleted"
    if kind in (*DELETED, *COMPACTED) and others.did(value, *COMPACTED):
        return "was compacted by another writer"
    return None


def _folded(quoted_name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in quoted_parts(quoted_name))


def _thing(kind: str) -> str:
    for thing in ("schema", "view", "scalar_macro", "table_macro"):
        if kind.endswith(thing):
            return thing.replace("_", " ")
    return "table"
