"""The lease that lets one writer at a time commit to a namespace: its writer id in the namespace's manifest entry.

A writer renews its lease by counting it up. One whose lease has not changed for long is taken for dead, and the next
writer takes over: each measures that by its own clock, so that no clock of another machine is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from penstock.errors import ConflictError, NotFoundError
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.manifest import Manifest, ManifestChangedError, ManifestEntry, ManifestState

WRITER = "lance.partitioning.writer"
_LEASE = 15.0  # seconds without renewal, after which a writer is taken for dead
_PAUSE = 0.05
ManifestEdit = Callable[[ManifestEntry], tuple[list[ManifestEntry], list[str]]]


def new_writer_id() -> str:
    """Make an id for one write that no other has: it tells whose the lease is.

    The ids in file names, `storage.parquet.names.new_write_id`, are too short for that.
    """
    return uuid4().hex


@dataclass
class WriterLease:
    """The right of one writer to change a namespace; `state` is the manifest as the writer last saw it."""

    manifest: Manifest
    name: str
    writer_id: str
    state: ManifestState
    _renewals: int = 0
    _renewed: float = field(default_factory=time.monotonic)

    def renew(self) -> None:
        """Show that this writer lives, if it has not done so for a while."""
        if time.monotonic() - self._renewed > _LEASE / 4:
            self._renewals += 1
            text = f"{self.writer_id}/{self._renewals}"
            self.change_manifest(lambda root: ([root.with_properties({WRITER: text})], []))

    def change_manifest(self, edit: ManifestEdit, properties: Mapping[str, str] = {}) -> int:
        """Commit a change of the manifest, made anew whenever another program changes the manifest first.

        `edit` takes the namespace's entry, and returns the changed entries and the ids of those to remove. Returns the
        manifest's new version; raises ConflictError where another writer has taken over.
        """
        while True:
            self.state = self.manifest.state()
            root = self.state.entry(self.name)
            holder = (root.properties.get(WRITER) or "") if root else ""
            if root is None or holder.partition("/")[0] != self.writer_id:
                raise ConflictError(
                    f"namespace {self.name!r}: this writer was silent for {_LEASE:.0f} seconds and another one went on;"
                    " nothing of this write is visible: run it again"
                )
            changed, removed = edit(root)
            with suppress(ManifestChangedError):
                version = self.manifest.commit(self.state, changed, removed, properties)
                self._renewed = time.monotonic()
                return version


def acquire_lease(manifest: Manifest, name: str, definition: NamespaceDefinition, writer_id: str) -> WriterLease:
    """Wait until no other writer that lives holds the lease, and take it.

    Raises NotFoundError where the namespace is gone, and ConflictError where its definition is not the given one.
    """
    seen, since = "", time.monotonic()
    while True:
        state = manifest.state()
        root = state.entry(name)
        if root is None:
            raise NotFoundError(f"there is no namespace {name!r} in {manifest.store.root} any more")
        _check_definition(name, definition, root)
        holder = root.properties.get(WRITER, "")
        if holder != seen:
            seen, since = holder, time.monotonic()
        if holder and time.monotonic() - since < _LEASE:
            time.sleep(_PAUSE)
            continue
        with suppress(ManifestChangedError):
            manifest.commit(state, [root.with_properties({WRITER: f"{writer_id}/0"})])
            return WriterLease(manifest, name, writer_id, manifest.state())


def _check_definition(name: str, definition: NamespaceDefinition, root: ManifestEntry) -> None:
    if any(root.properties.get(key) != text for key, text in definition.texts.items()):
        raise ConflictError(f"namespace {name!r} was changed by another writer meanwhile; open it and run again")
