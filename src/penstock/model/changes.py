"""The text in `ducklake_snapshot_changes.changes_made`: what a snapshot did, as `kind:value` pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# The catalog's words, and the extension's keys for them in snapshots().
_KEYS = {
    "created_schema": "schemas_created",
    "created_table": "tables_created",
    "created_view": "views_created",
    "created_scalar_macro": "scalar_macros_created",
    "created_table_macro": "table_macros_created",
    "dropped_schema": "schemas_dropped",
    "dropped_table": "tables_dropped",
    "dropped_view": "views_dropped",
    "dropped_scalar_macro": "scalar_macros_dropped",
    "dropped_table_macro": "table_macros_dropped",
    "altered_table": "tables_altered",
    "altered_view": "views_altered",
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
}


@dataclass(frozen=True)
class Change:
    """One change. The value is an id, or a name whose quotes are taken off part by part (`main.t`)."""

    kind: str
    value: str


def parse_changes(text: str | None) -> tuple[Change, ...]:
    """The changes of a snapshot; none when the catalog holds NULL."""
    changes = []
    for item in _split(text or "", ","):
        kind, _, value = item.partition(":")
        parts = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in _split(value, ".")]
        changes.append(Change(kind.strip(), ".".join(parts)))
    return tuple(changes)


def summarise(changes: tuple[Change, ...]) -> dict[str, list[str]]:
    """The map that the extension's snapshots() shows in its `changes` column."""
    summary: dict[str, list[str]] = {}
    for change in changes:
        summary.setdefault(_KEYS.get(change.kind, change.kind), []).append(change.value)
    return summary


def _split(text: str, separator: str) -> Iterator[str]:
    """Split at separators that stand outside double quotes."""
    start, quoted = 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            yield text[start:position]
            start = position + 1
    if start < len(text):
        yield text[start:]
