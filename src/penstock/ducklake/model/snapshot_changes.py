"""Reads and writes `ducklake_snapshot_changes.changes_made`: what a snapshot did, as `kind:value` pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
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


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SnapshotChange:
    """One change; the value is an id, or a quoted name (`"main"."t"`)."""

    kind: str
    value: str


def parse_changes(text: str | None) -> tuple[SnapshotChange, ...]:
    """The changes of a snapshot; none when the catalog holds NULL."""
    pairs = [item.partition(":") for item in _split(text or "", ",")]
    return tuple(SnapshotChange(kind.strip(), value) for kind, _, value in pairs)


def done_to(table_id: int, text: str | None) -> set[str]:
    """The kinds of changes that a snapshot made to one table, by the table's id."""
    return {change.kind for change in parse_changes(text) if change.value == str(table_id)}


def render_changes(changes: Iterable[SnapshotChange]) -> str:
    """The text for the catalog."""
    return ",".join(f"{change.kind}:{change.value}" for change in changes)


def quoted_name(*parts: str) -> str:
    """A name as changes show it: every part in double quotes."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def quoted_parts(name: str) -> tuple[str, ...]:
    """The parts of a quoted name."""
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in _split(name, "."))


def summarise(changes: tuple[SnapshotChange, ...], reserved: Set[str]) -> dict[str, list[str]]:
    """The map that the extension's snapshots() shows: names are quoted only where they must be."""
    summary: dict[str, list[str]] = {}
    for change in changes:
        shown = ".".join(_optionally_quoted(part, reserved) for part in _split(change.value, "."))
        summary.setdefault(_KEYS.get(change.kind, change.kind), []).append(shown)
    return summary


def _optionally_quoted(part: str, reserved: Set[str]) -> str:
    bare = part[1:-1] if part.startswith('"') else part
    return bare if _PLAIN_NAME.fullmatch(bare) and bare.lower() not in reserved else part


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
