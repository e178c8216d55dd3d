"""Reads the properties of tables, and decides which a new table may have and what they ask of its protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import Metadata, Protocol
from penstock.delta.format.features import FEATURES, MATERIALIZE_PARTITION_COLUMNS, with_features
from penstock.errors import InvalidError, UnsupportedError

MATERIALIZE_ENABLED = "delta.enableMaterializePartitionColumnsFeature"
IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_FEATURE = "delta.feature."
_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
_CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_DEFAULT_INDEXED_COLUMNS = 32
_RETENTION = "delta.deletedFileRetentionDuration"
_DEFAULT_RETENTION = "interval 1 week"
_PART = r"(\d+)\s+(microsecond|millisecond|second|minute|hour|day|week)s?"
_DURATION = re.compile(rf"\s*(?:interval\s+)?{_PART}(?:\s+{_PART})*\s*", re.IGNORECASE)
_SWITCHES = {  # properties that ask for a feature while they are true
    MATERIALIZE_ENABLED: MATERIALIZE_PARTITION_COLUMNS,
    IN_COMMIT_TIMESTAMPS: "inCommitTimestamp",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.appendOnly": "appendOnly",
}
_NUMBERS = {_INDEXED_COLUMNS: -1, _CHECKPOINT_INTERVAL: 1}  # with the smallest
_DURATIONS = (_RETENTION, "delta.logRetentionDuration", "delta.setTransactionRetentionDuration")
_BOOLEAN = ("true", "false")
_HARMLESS = {  # what deltalake keeps for us, what is so anyway, and hints to other writers; with their values
    "delta.enableExpiredLogCleanup": _BOOLEAN,
    "delta.writePartitionColumnsToParquet": _BOOLEAN,
    "delta.checkpoint.writeStatsAsJson": _BOOLEAN,
    "delta.checkpoint.writeStatsAsStruct": _BOOLEAN,
    "delta.autoOptimize": _BOOLEAN,
    "delta.autoOptimize.optimizeWrite": _BOOLEAN,
    "delta.autoOptimize.autoCompact": (*_BOOLEAN, "auto", "legacy"),
    "delta.isolationLevel": ("serializable", "writeserializable"),
    "delta.parquet.compression.codec": (
        *("snappy", "zstd", "gzip", "lz4", "lz4_raw", "lzo", "brotli", "none", "uncompressed"),
    ),
}
_FILE_SIZE = "delta.targetFileSize"
_SIZE = re.compile(r"[1-9]\d*\s*(?:[kmgtp]?i?b?|bytes)", re.IGNORECASE)
_READER, _WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
_OFF = {"delta.columnMapping.mode": "none", "delta.checkpointPolicy": "classic"}
_ENABLE = "delta.enable"  # begins the names of switches, which ask for nothing while they are off
_OTHER_SWITCHES = ("delta.randomizeFilePrefixes", "delta.compatibility.symlinkFormatManifest.enabled")
_NOT_LISTED = ("columnMapping", "rowTracking")  # they ask for more than a list: names and ids for all columns or rows


@dataclass(frozen=True)
class ChosenProtocol:
    """The protocol of a new table, and the properties that it keeps."""

    protocol: Protocol
    configuration: Mapping[str, str]


def choose_protocol(struct: T.StructType, properties: Mapping[str, str], materialize: bool) -> ChosenProtocol:
    """Chooses the oldest protocol that has all that a new table needs.

    An UnsupportedError names a property whose rules Penstock does not keep, and an InvalidError one without sense.
    """
    given = {**properties, **({MATERIALIZE_ENABLED: "true"} if materialize else {})}
    features = ["timestampNtz"] if _has_local_time(struct) else []
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidError(f"the property {name} is {value!r}; properties are texts")
        if name.startswith("delta."):
            features += _asked_for(name, value)
    protocol = with_features(Protocol(1, 2), features)
    _check_hints(protocol, given)
    kept = {name: value for name, value in given.items() if not name.startswith((_FEATURE, _READER, _WRITER))}
    if MATERIALIZE_PARTITION_COLUMNS in features:
        kept[MATERIALIZE_ENABLED] = "true"
    return ChosenProtocol(protocol, kept)


def indexed_columns(metadata: Metadata) -> int | None:
    """Returns how many of the first columns have statistics; None is all of them."""
    number = _number(metadata, _INDEXED_COLUMNS, _DEFAULT_INDEXED_COLUMNS)
    return None if number < 0 else number


def checkpoint_interval(metadata: Metadata) -> int | None:
    """Returns after how many versions there is to be a checkpoint; None where the table does not say."""
    return _number(metadata, _CHECKPOINT_INTERVAL, 0) or None


def target_file_size(metadata: Metadata) -> int | None:
    """Returns how large the table wants its files, in bytes; None where it does not say, or not so that it is clear."""
    found = re.fullmatch(
        r"(\d+)\s*([kmgtp]?)(?:i?b|bytes)?", metadata.configuration.get(_FILE_SIZE, "").strip().lower()
    )
    return int(found[1]) * 1024 ** " kmgtp".index(found[2] or " ") or None if found else None


def retention(metadata: Metadata) -> timedelta:
    """Returns how long files are kept after their removal; an InvalidError where the property is no duration."""
    text = metadata.configuration.get(_RETENTION, _DEFAULT_RETENTION)
    found = _duration(text)
    if found is None:
        raise InvalidError(
            f"the table's property {_RETENTION} is {text!r}, which is no duration; give vacuum a retention of your own"
        )
    return found


def _duration(text: str) -> timedelta | None:
    """Parses a duration such as `interval 1 week 2 days`; None where it is none."""
    if not _DURATION.fullmatch(text):
        return None
    parts = re.findall(_PART, text.lower())
    try:
        return sum((timedelta(**{unit + "s": int(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        return timedelta.max


def _number(metadata: Metadata, name: str, default: int) -> int:
    text = metadata.configuration.get(name, "")
    return int(text) if re.fullmatch(r"-?\d+", text) else default  # what other engines have let through


def _asked_for(name: str, value: str) -> list[str]:
    """Returns the features that a property asks for; an error where it cannot be kept."""
    lowered = value.lower()
    if name.startswith(_FEATURE):
        return [_listed(name.removeprefix(_FEATURE), name, lowered)]
    if name in _NUMBERS:
        if not re.fullmatch(r"-?\d+", value) or int(value) < _NUMBERS[name]:
            raise InvalidError(f"the property {name} is {value!r}; it takes a whole number from {_NUMBERS[name]} on")
        return []
    if name in _DURATIONS and _duration(value) is None:
        raise InvalidError(f"the property {name} is {value!r}; it takes a duration such as 'interval 1 week'")
    if name in _HARMLESS and lowered not in _HARMLESS[name]:
        raise InvalidError(f"the property {name} is {value!r}; it takes {' or '.join(_HARMLESS[name])}")
    if name == _FILE_SIZE and not _SIZE.fullmatch(value):
        raise InvalidError(f"the property {name} is {value!r}; it takes a size such as '128mb'")
    if name in (*_DURATIONS, *_HARMLESS, _FILE_SIZE, _READER, _WRITER) or _OFF.get(name) == lowered:
        return []
    if name in _SWITCHES and lowered not in ("true", "false"):
        raise InvalidError(f"the property {name} is {value!r}; it takes true or false")
    if lowered == "false" and (name in (*_SWITCHES, *_OTHER_SWITCHES) or name.startswith(_ENABLE)):
        return []
    if name in _SWITCHES:
        return [_SWITCHES[name]]
    raise UnsupportedError(
        f"a new table cannot have the property {name}={value}: Penstock does not keep its rules; leave it out"
    )


def _check_hints(protocol: Protocol, given: Mapping[str, str]) -> None:
    """Refuses a version of the protocol that the table does not need; one that it has anyway is no news."""
    for name, has in ((_READER, protocol.min_reader), (_WRITER, protocol.min_writer)):
        value = given.get(name, "1")
        if not re.fullmatch(r"[1-9]\d*", value):
            raise InvalidError(f"the property {name} is {value!r}; it takes a whole number from 1 on")
        if int(value) > has:
            raise UnsupportedError(
                f"a new table cannot have the property {name}={value}: what else it has needs {has} only; leave it out"
            )


def _listed(feature: str, name: str, value: str) -> str:
    known = FEATURES.get(feature)
    if value != "supported":
        raise InvalidError(f"the property {name} is {value!r}; it takes 'supported'")
    if known is None or feature in _NOT_LISTED:
        raise UnsupportedError(
            f"a new table cannot have the feature {feature}: Penstock does not keep its rules; leave {name} out"
        )
    return feature


def _has_local_time(kind: T.DataType) -> bool:
    match kind:
        case T.StructType():
            return any(_has_local_time(item.dataType) for item in kind.fields)
        case T.ArrayType():
            return _has_local_time(kind.elementType)
        case T.MapType():
            return _has_local_time(kind.keyType) or _has_local_time(kind.valueType)
    return isinstance(kind, T.TimestampNTZType)
