"""Lists the leaves and the versions of a namespace, as rows for DataFrames."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from penstock.lance.commits.leaf_records import BYTES, ROWS
from penstock.lance.format.definition import definition_in
from penstock.lance.format.kept_versions import check_kept, oldest_version
from penstock.lance.format.leaves import leaf_from_entry
from penstock.lance.format.manifest import Manifest, ManifestEntry

PARTITION_SCHEMA = (
    "leaf string, location string, partition map<string,string>, version bigint, rows bigint, bytes bigint"
)
VERSION_SCHEMA = "version bigint, timestamp timestamp, operation string, summary string"


class PartitionRow(NamedTuple):
    """A leaf: its partition values, the version that is read, and what it is known to hold."""

    leaf: str
    location: str
    partition: dict[str, str | None]
    version: int | None
    rows: int | None
    bytes: int | None


class VersionRow(NamedTuple):
    """A version of the namespace, and what made it."""

    version: int
    timestamp: datetime
    operation: str
    summary: str


def partition_rows(manifest: Manifest, name: str, version: int | None = None) -> list[PartitionRow]:
    """The leaves of a namespace, now or at a version, by their object ids."""
    if version is not None:
        check_kept(manifest, name, version)
    state = manifest.state(version)
    definition = definition_in(manifest, state, name)
    rows = []
    for entry in state.below(name):
        if entry.kind == "table":
            leaf = leaf_from_entry(entry, name, definition.fields)
            values = dict(zip((field.key for field in definition.fields), leaf.values or (), strict=False))
            held = _number(entry, ROWS), _number(entry, BYTES)
            rows.append(PartitionRow(leaf.object_id, leaf.location, values, leaf.version, *held))
    return rows


def version_rows(manifest: Manifest, name: str) -> list[VersionRow]:
    """The versions of a namespace that Penstock made and that are kept, the oldest first."""
    oldest = oldest_version(manifest.state().entry(name))
    return [
        VersionRow(
            change.version,
            change.timestamp,
            change.properties["penstock.operation"],
            change.properties["penstock.summary"],
        )
        for change in manifest.changes()
        if change.properties.get("penstock.namespace") == name and change.version >= oldest
    ]


def _number(entry: ManifestEntry, key: str) -> int | None:
    text = entry.properties.get(key)
    return None if text is None else int(text)
