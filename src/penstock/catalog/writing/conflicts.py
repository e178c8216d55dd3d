"""Whether what other writers committed since a transaction began stands in its way: the documented rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.model.changes import Change, quoted_parts

_CREATED_ENTRIES = (
    "created_table", "created_view", "created_scalar_macro", "created_table_macro",
)  # fmt: skip
_CREATED_RELATIONS = ("created_table", "created_view")
_CREATED_MACROS = ("created_scalar_macro", "created_table_macro")
_INSERTED = ("inserted_into_table", "inlined_insert")
_DELETED = ("deleted_from_table", "inlined_delete")
_COMPACTED = ("merge_adjacent", "rewrite_delete", "compacted_table", "inline_flush", "flushed_inlined")


@dataclass(frozen=True)
class Others:
    """The changes of all snapshots since a transaction began, by kind."""

    values: Mapping[str, frozenset[str]]

    @staticmethod
    def of(changes: Iterable[Change]) -> Others:
        found: dict[str, set[str]] = {}
        for change in changes:
            found.setdefault(change.kind, set()).add(change.value)
        return Others({kind: frozenset(values) for kind, values in found.items()})

    def did(self, value: str, *kinds: str) -> bool:
        return any(value in self.values.get(kind, ()) for kind in kinds)

    def created_in(self, schema: str) -> bool:
        """Whether somebody created an entry in a schema of this name."""
        created = (name for kind in _CREATED_ENTRIES for name in self.values.get(kind, ()))
        return any(_folded(name)[0] == schema.lower() for name in created)

    def created(self, name: str, *kinds: str) -> bool:
        """Whether somebody created this quoted name; names compare without regard to case."""
        return any(_folded(name) == _folded(other) for kind in kinds for other in self.values.get(kind, ()))


def conflict(
    own: Iterable[Change], others: Others, schema_ids: Mapping[str, int], schema_names: Mapping[int, str]
) -> str | None:
    """The first conflict, as the reason to give up, or None.

    `schema_ids` and `schema_names` are the schemas as the transaction knew them, names in lower case.
    """
    for change in own:
        reason = _reason(change, others, schema_ids, schema_names)
        if reason:
            return reason
    return None


def _reason(
    change: Change, others: Others, schema_ids: Mapping[str, int], schema_names: Mapping[int, str]
) -> str | None:
    kind, value = change.kind, change.value
    if kind == "created_schema":
        return f"schema {value} was created by another writer too" if others.created(value, "created_schema") else None
    if kind == "dropped_schema":
        return _dropped_schema(value, others, schema_names)
    if kind in _CREATED_ENTRIES:
        return _created_entry(kind, value, others, schema_ids)
    if kind in ("dropped_table", "dropped_view", "dropped_scalar_macro", "dropped_table_macro"):
        return f"{_words(kind)} {value} was dropped by another writer too" if others.did(value, kind) else None
    if kind in ("altered_table", "altered_view"):
        dropped = others.did(value, kind.replace("altered", "dropped"))
        state = "dropped" if dropped else "altered" if others.did(value, kind) else None
        return f"{_words(kind)} {value} was {state} by another writer" if state else None
    return _data(kind, value, others)


def _dropped_schema(value: str, others: Others, schema_names: Mapping[int, str]) -> str | None:
    if others.did(value, "dropped_schema"):
        return f"schema {value} was dropped by another writer too"
    name = schema_names.get(int(value))
    if name is not None and others.created_in(name):
        return f"schema {name} is to be dropped, and another writer created an entry in it"
    return None


def _created_entry(kind: str, value: str, others: Others, schema_ids: Mapping[str, int]) -> str | None:
    schema = _folded(value)[0]
    if others.did(str(schema_ids.get(schema, "")), "dropped_schema"):
        return f"schema {schema}, in which {value} is to be created, was dropped by another writer"
    rivals = _CREATED_RELATIONS if kind in _CREATED_RELATIONS else _CREATED_MACROS
    return f"{value} was created by another writer too" if others.created(value, *rivals) else None


def _data(kind: str, value: str, others: Others) -> str | None:
    if others.did(value, "dropped_table"):
        return f"table {value} was dropped by another writer"
    if kind in (*_INSERTED, *_DELETED) and others.did(value, "altered_table"):
        return f"table {value} was altered by another writer"
    if kind in _DELETED and others.did(value, *_DELETED):
        return f"rows of table {value} were deleted by another writer"
    if kind in _DELETED and others.did(value, *_COMPACTED):
        return f"table {value} was compacted by another writer"
    if kind in _COMPACTED and others.did(value, *_DELETED):
        return f"rows of table {value} were deleted by another writer"
    if kind in _COMPACTED and others.did(value, *_COMPACTED):
        return f"table {value} was compacted by another writer too"
    return None


def _folded(quoted_name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in quoted_parts(quoted_name))


def _words(kind: str) -> str:
    return kind.split("_", 1)[1].replace("_", " ")
