"""Detects conflicts of a commit with versions that other writers committed since it began."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.delta.format.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, Txn
from penstock.delta.format.features import materializes
from penstock.delta.log.links import without_links
from penstock.delta.log.snapshot import LogSnapshot

ReadSet: TypeAlias = Callable[[AddFile], bool]  # whether a statement has read a file, or would have, had it been there


def nothing_read(file: AddFile) -> bool:
    """Tells of each file that it was not read: the read set of a blind append."""
    return False


def everything_read(file: AddFile) -> bool:
    """Tells of each file that it was read: the read set of a statement on the whole table."""
    return True


@dataclass(frozen=True)
class CommitIntent:
    """What a writer has read and is about to change, which the commits of others may stand against."""

    read_set: ReadSet
    paths: frozenset[str]
    apps: frozenset[str]
    domains: frozenset[str]
    is_blind: bool
    rearranges: bool  # who only moves rows needs not know of new ones
    changes_metadata: bool

    @classmethod
    def of(cls, actions: Sequence[Action], read_set: ReadSet) -> CommitIntent:
        """Sums up the actions of a commit and what its writer has read."""
        files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
        return cls(
            read_set,
            frozenset(action.decoded_path for action in files),
            frozenset(action.app_id for action in actions if isinstance(action, Txn)),
            frozenset(action.domain for action in actions if isinstance(action, DomainMetadata)),
            is_blind=read_set is nothing_read and not any(isinstance(action, RemoveFile) for action in files),
            rearranges=bool(files) and not any(action.data_change for action in files),
            changes_metadata=any(isinstance(action, Metadata) for action in actions),
        )


def conflicts(base: LogSnapshot, own: CommitIntent, winner: Sequence[Action]) -> Iterator[str]:
    """Yields what another writer's commit did that stands against the intent of a writer who has seen `base`."""
    for action in winner:
        match action:
            case Protocol() if action != base.protocol:
                yield _protocol_change(base.protocol, action)
            case Metadata() if _is_changed(base.metadata, action, own):
                yield "changed the table's metadata"
            case AddFile() if not own.rearranges and own.read_set(action):
                yield f"added {action.decoded_path} to what this write has read"
            case RemoveFile() if action.decoded_path in own.paths:
                yield f"removed {action.decoded_path}, which this write removes or adds too"
            case RemoveFile() if action.key in base.files and own.read_set(base.files[action.key]):
                yield f"removed {action.decoded_path}, which this write has read"
            case Txn() if action.app_id in own.apps:
                yield f"is of the same application {action.app_id}"
            case DomainMetadata() if action.domain in own.domains:
                yield f"changed the same domain {action.domain}"


def _is_changed(old: Metadata, new: Metadata, own: CommitIntent) -> bool:
    """Tells whether new metadata stand against a writer; notes of links only do if it would write over them."""
    return old != new if own.changes_metadata else without_links(old) != without_links(new)


def _protocol_change(old: Protocol, new: Protocol) -> str:
    if materializes(new) and not materializes(old):
        return "switched on materializePartitionColumns, and the files of this write may lack those columns"
    return "changed the table's protocol"
