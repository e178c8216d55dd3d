"""Adds up the actions of a log to the state of a table at one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.delta.format.actions import (
    Action,
    AddFile,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
)


@dataclass(frozen=True)
class LogSnapshot:
    """The table at one version. `timestamp` is that of the version's commit."""

    version: int
    timestamp: datetime
    protocol: Protocol
    metadata: Metadata
    files: Mapping[FileKey, AddFile]
    txns: Mapping[str, int]
    domains: Mapping[str, DomainMetadata]


@dataclass
class LogReplay:
    """Collects the actions of a log, the oldest first."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[FileKey, AddFile] = field(default_factory=dict)
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action]) -> None:
        """Adds one commit, whose actions have no order among each other, or a checkpoint."""
        added: dict[FileKey, AddFile] = {}
        for action in actions:
            match action:
                case AddFile():
                    added[action.key] = action
                case RemoveFile():
                    self.files.pop(action.key, None)
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case Txn():
                    self.txns[action.app_id] = action.version
                case DomainMetadata(removed=True):
                    self.domains.pop(action.domain, None)
                case DomainMetadata():
                    self.domains[action.domain] = action
        self.files.update(added)
