"""Decides by a table's features whether Penstock can read it and write to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.delta.format.actions import Action, Metadata, Protocol, RemoveFile
from penstock.errors import UnsupportedError

MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"
_MAX_READER, _MAX_WRITER = 3, 7
_CONSTRAINT = "delta.constraints."
Hindrances = Callable[[Metadata], Iterable[str]]


def _property(name: str) -> Hindrances:
    return lambda metadata: [f"{name}=true"] if metadata.enables(name) else []


def _column(key: str, what: str) -> Hindrances:
    return lambda metadata: [f"{what} of column {name}" for name in _columns_with(key, metadata)]


def _constraints(metadata: Metadata) -> list[str]:
    return [
        f"the constraint {name.removeprefix(_CONSTRAINT)}"
        for name in metadata.configuration
        if name.startswith(_CONSTRAINT)
    ]


def _row_ids(metadata: Metadata) -> list[str]:
    """Names row tracking unless it is suspended: writers owe row ids as soon as the feature is listed."""
    suspended = metadata.enables("delta.rowTrackingSuspended") and not metadata.enables("delta.enableRowTracking")
    return [] if suspended else ["row tracking (rowTracking)"]


@dataclass(frozen=True)
class Feature:
    """A feature that Penstock knows; `hindrances` finds what in a table's metadata forbids writing to it."""

    name: str
    allows: str
    reader: bool = False
    hindrances: Hindrances = lambda _: ()


FEATURES = {
    feature.name: feature
    for feature in (
        Feature(MATERIALIZE_PARTITION_COLUMNS, "read; written, new files hold their partition columns"),
        Feature("columnMapping", "read; written, under the physical names", reader=True),
        Feature("deletionVectors", "read; written, never with new vectors: rewritten files lose theirs", reader=True),
        Feature("timestampNtz", "read; written", reader=True),
        Feature("v2Checkpoint", "read; written", reader=True),
        Feature("vacuumProtocolCheck", "read; written; vacuum asks for the right to write", reader=True),
        Feature("appendOnly", "read; written, and nothing removed while delta.appendOnly is true"),
        Feature("domainMetadata", "read; written, domains are kept"),
        Feature("inCommitTimestamp", "read; written"),
        Feature("invariants", "read; written without any", hindrances=_column("delta.invariants", "the invariant")),
        Feature("checkConstraints", "read; written without any", hindrances=_constraints),
        Feature(
            "generatedColumns",
            "read; written without any",
            hindrances=_column("delta.generationExpression", "the generation expression"),
        ),
        Feature(
            "identityColumns", "read; written without any", hindrances=_column("delta.identity.start", "the identity")
        ),
        Feature(
            "allowColumnDefaults", "read; written without any", hindrances=_column("CURRENT_DEFAULT", "the default")
        ),
        Feature("changeDataFeed", "read; written while it is off", hindrances=_property("delta.enableChangeDataFeed")),
        Feature("rowTracking", "read; written while it is suspended", hindrances=_row_ids),
        Feature(
            "icebergCompatV1", "read; written while it is off", hindrances=_property("delta.enableIcebergCompatV1")
        ),
        Feature(
            "icebergCompatV2", "read; written while it is off", hindrances=_property("delta.enableIcebergCompatV2")
        ),
    )
}
"""What Penstock does about each feature of Delta's protocol, by the feature's name."""
_IMPLIED = {  # by the writer version that brought them
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def check_readable(protocol: Protocol, path: str) -> None:
    """Raises an UnsupportedError that names what a table asks of its readers and Penstock does not understand."""
    unknown = [name for name in protocol.reader_features or () if name not in FEATURES]
    if protocol.min_reader > _MAX_READER:
        unknown.insert(0, f"reader version {protocol.min_reader}")
    if unknown:
        raise UnsupportedError(
            f"Delta table {path} cannot be read: this version of Penstock does not understand {', '.join(unknown)}; "
            f"upgrade Penstock, or drop the feature with the engine that added it"
        )


def check_writable(protocol: Protocol, metadata: Metadata, path: str) -> None:
    """Raises an UnsupportedError that names what a table asks of its writers and Penstock cannot give."""
    check_readable(protocol, path)
    names = writer_features(protocol)
    hindrances = [name for name in names if name not in FEATURES]
    if protocol.min_writer > _MAX_WRITER:
        hindrances.insert(0, f"writer version {protocol.min_writer}")
    for name in names:
        if name in FEATURES:
            hindrances += FEATURES[name].hindrances(metadata)
    if hindrances:
        raise UnsupportedError(
            f"Delta table {path} is read-only here: this version of Penstock cannot write under "
            f"{', '.join(hindrances)}; write with the engine that added it, or drop it there"
        )


def check_may_remove(protocol: Protocol, metadata: Metadata, actions: Iterable[Action], path: str) -> None:
    """Raises an UnsupportedError where rows would be removed from an append-only table; rearranging them is fine."""
    append_only = "appendOnly" in writer_features(protocol) and metadata.enables("delta.appendOnly")
    if append_only and any(isinstance(action, RemoveFile) and action.data_change for action in actions):
        raise UnsupportedError(
            f"Delta table {path} is append-only: rows cannot be removed or changed; set delta.appendOnly to false first"
        )


def materializes(protocol: Protocol) -> bool:
    """Tells whether every new file has to hold its partition columns."""
    return MATERIALIZE_PARTITION_COLUMNS in (protocol.writer_features or ())


def with_materialized(protocol: Protocol) -> Protocol:
    """Adds `materializePartitionColumns` to a protocol, and lists the features that its version implied."""
    names = writer_features(protocol)
    listed = names if MATERIALIZE_PARTITION_COLUMNS in names else (*names, MATERIALIZE_PARTITION_COLUMNS)
    return replace(protocol, min_writer=_MAX_WRITER, writer_features=listed)


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """Adds features to a protocol, and lists those that its version implied; one that has them all stays as it is."""
    had = writer_features(protocol)
    new = [name for name in dict.fromkeys(names) if name not in had]
    if not new:
        return protocol
    readers = tuple(name for name in new if FEATURES[name].reader)
    if protocol.reader_features is not None or readers:
        # Version 3 of readers lists what version 2 implied.
        older = tuple(name for name in had if FEATURES[name].reader)
        protocol = replace(
            protocol, min_reader=_MAX_READER, reader_features=(*(protocol.reader_features or older), *readers)
        )
    return replace(protocol, min_writer=_MAX_WRITER, writer_features=(*had, *new))


def without_materialized(protocol: Protocol) -> Protocol:
    """Takes `materializePartitionColumns` out of a protocol, which keeps its version."""
    if not materializes(protocol):
        return protocol
    return replace(
        protocol,
        writer_features=tuple(name for name in writer_features(protocol) if name != MATERIALIZE_PARTITION_COLUMNS),
    )


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """Returns the features that writers must respect: those listed, or those that a version before 7 implies."""
    if protocol.min_writer >= _MAX_WRITER:
        return protocol.writer_features or ()
    # A table that readers of version 1 may read has no column mapping, whatever its writers know.
    names = (name for version, brought in _IMPLIED.items() if version <= protocol.min_writer for name in brought)
    kept = tuple(name for name in names if name != "columnMapping" or protocol.min_reader > 1)
    return (*kept, "columnMapping") if protocol.min_reader == 2 and "columnMapping" not in kept else kept


def _columns_with(key: str, metadata: Metadata) -> Iterator[str]:
    """Yields the dotted names of the columns, nested ones too, that have a key in their metadata."""
    return _fields_with(key, json.loads(metadata.schema_string), "")


def _fields_with(key: str, kind: Any, prefix: str) -> Iterator[str]:
    if not isinstance(kind, dict):
        return
    for own in kind.get("fields", ()):
        if key in own.get("metadata", {}):
            yield prefix + own["name"]
        yield from _fields_with(key, own["type"], f"{prefix}{own['name']}.")
    for inner in ("elementType", "keyType", "valueType"):
        yield from _fields_with(key, kind.get(inner), prefix)
