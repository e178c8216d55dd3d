"""Defines the actions of Delta's log, which are the lines of commits and the rows of checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self, TypeAlias

from penstock.delta.format.deletion_vectors import unique_id
from penstock.delta.format.file_paths import file_path

FileKey: TypeAlias = tuple[str, str | None]  # what identifies a logical file: its path, and its deletion vector


def _known_as(name: str) -> dict[str, str]:
    return {"json": name}


@dataclass(frozen=True)
class _Record:
    """Converts fields from JSON and back. A missing field has its default, and an unknown one is ignored."""

    parts: ClassVar[Mapping[str, type[_Record]]] = {}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> Self:
        """Returns the record of a JSON object or a checkpoint's struct."""
        found = {name: values.get(known_as) for name, known_as in cls._names()}
        return cls(**{name: cls._read(name, value) for name, value in found.items() if value is not None})

    def to_fields(self) -> dict[str, Any]:
        """Returns the JSON object, without what is None."""
        pairs = ((known_as, getattr(self, name)) for name, known_as in self._names())
        return {name: _written(value) for name, value in pairs if value is not None}

    @classmethod
    @cache
    def _names(cls) -> list[tuple[str, str]]:
        """Returns the name of each field, here and in JSON."""
        return [(own.name, _json_name(own)) for own in fields(cls)]

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        if name in cls.parts:
            return cls.parts[name].from_fields(value)
        return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class _Action(_Record):
    kind: ClassVar[str]

    def to_json(self) -> str:
        """Returns the action's line in a commit."""
        return json.dumps({self.kind: self.to_fields()}, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Protocol(_Action):
    """The versions and features that a client must understand; features are None where the version lists none."""

    kind: ClassVar[str] = "protocol"

    min_reader: int = field(metadata=_known_as("minReaderVersion"))
    min_writer: int = field(metadata=_known_as("minWriterVersion"))
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Format(_Record):
    """How data files are encoded; Delta knows only Parquet."""

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Metadata(_Action):
    """The table's schema, partition columns and properties."""

    kind: ClassVar[str] = "metaData"
    parts: ClassVar[Mapping[str, type[_Record]]] = {"format": Format}

    id: str
    schema_string: str
    name: str | None = None
    description: str | None = None
    format: Format = field(default_factory=Format)
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None

    def enables(self, name: str) -> bool:
        """Tells whether a property is `true`."""
        return self.configuration.get(name, "").lower() == "true"


@dataclass(frozen=True)
class DeletionVectorDescriptor(_Record):
    """Where the positions of a data file's deleted rows are stored."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What tells the vector apart from others of its data file."""
        return unique_id(self.storage_type, self.path_or_inline_dv, self.offset)


@dataclass(frozen=True)
class _FileAction(_Action):
    parts: ClassVar[Mapping[str, type[_Record]]] = {"deletion_vector": DeletionVectorDescriptor}

    path: str
    deletion_vector: DeletionVectorDescriptor | None = field(default=None, kw_only=True)

    @property
    def decoded_path(self) -> str:
        """The path as the file system has it: relative to the table, or absolute."""
        return file_path(self.path)

    @property
    def key(self) -> FileKey:
        """What identifies the logical file: its path and its deletion vector."""
        return self.decoded_path, None if self.deletion_vector is None else self.deletion_vector.unique_id


@dataclass(frozen=True)
class RemoveFile(_FileAction):
    """A file that is no longer in the table."""

    kind: ClassVar[str] = "remove"

    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True)
class AddFile(_FileAction):
    """A file of the table; `path` is as in the log, URL-encoded, and `stats` is JSON."""

    kind: ClassVar[str] = "add"

    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    def removed(self, timestamp: int, *, data_change: bool = True) -> RemoveFile:
        """Returns the action that takes the file out of the table, at a time in milliseconds since 1970."""
        return RemoveFile(
            self.path,
            data_change,
            timestamp,
            True,
            self.partition_values,
            self.size,
            self.stats,
            self.tags,
            self.base_row_id,
            self.default_row_commit_version,
            deletion_vector=self.deletion_vector,
        )


@dataclass(frozen=True)
class Txn(_Action):
    """The newest version that an application has written to the table."""

    kind: ClassVar[str] = "txn"

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True)
class DomainMetadata(_Action):
    """A setting of another system, kept with the table."""

    kind: ClassVar[str] = "domainMetadata"

    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True)
class CommitInfo(_Action):
    """Who made a commit, when and how; any JSON object."""

    kind: ClassVar[str] = "commitInfo"

    values: Mapping[str, Any]

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> Self:
        """Returns the action of any JSON object."""
        return cls(values)

    def to_fields(self) -> dict[str, Any]:
        """Returns the JSON object as it was."""
        return dict(self.values)


Action: TypeAlias = Protocol | Metadata | AddFile | RemoveFile | Txn | DomainMetadata | CommitInfo
_ACTIONS: dict[str, type[Action]] = {
    action.kind: action for action in (Protocol, Metadata, AddFile, RemoveFile, Txn, DomainMetadata, CommitInfo)
}


def from_json(line: str | bytes) -> Action | None:
    """Parses a line of a commit; None for an action of an unknown kind."""
    return from_object(json.loads(line))


def from_object(values: Mapping[str, Any]) -> Action | None:
    """Converts a parsed line, or a row of a checkpoint; None for an action of an unknown kind."""
    for kind, action in _ACTIONS.items():
        if values.get(kind) is not None:
            return action.from_fields(values[kind])
    return None


def _json_name(own: Field[Any]) -> str:
    if "json" in own.metadata:
        return str(own.metadata["json"])
    first, *others = own.name.split("_")
    return first + "".join(map(str.capitalize, others))


def _written(value: Any) -> Any:
    if isinstance(value, _Record):
        return value.to_fields()
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
