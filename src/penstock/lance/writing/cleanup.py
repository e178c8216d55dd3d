"""Cleans up old versions of a namespace: forgets them first, and then lets Lance delete what they alone needed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import InvalidError
from penstock.lance.commits.namespace_commit import NamespaceCommit, begin_commit
from penstock.lance.commits.writer_lease import WRITER, new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.kept_versions import CLEANED_VERSION, OLDEST_VERSION
from penstock.lance.format.manifest import Manifest
from penstock.lance.writing.unneeded_versions import UnneededVersions, oldest_kept, unneeded_versions

if TYPE_CHECKING:
    from lance import LanceDataset

CLEANUP_SCHEMA = "table string, location string, versions array<bigint>, files bigint, bytes bigint"
_NO_VERSION = timedelta(days=36500)  # older than any: Lance then looks for files alone that no version ever had


class CleanedTable(NamedTuple):
    """What was removed of a table: versions, files with rows, deletes and indexes, and the bytes of all its files."""

    table: str
    location: str
    versions: list[int]
    files: int
    bytes: int


def check_choice(older_than: object, keep_last: int | None) -> None:
    """Raise InvalidError unless just one of the two says what is kept, and the number is one."""
    if (older_than is None) == (keep_last is None):
        raise InvalidError("clean_up takes either older_than or keep_last")
    if keep_last is not None and (isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1):
        raise InvalidError(f"clean_up(keep_last={keep_last!r}): at least 1 version is kept")


def clean_up(
    manifest: Manifest,
    name: str,
    definition: NamespaceDefinition,
    moment: datetime | None,
    keep_last: int | None,
    dry_run: bool = False,
) -> list[CleanedTable]:
    """Remove the versions before a moment, or but for the last few; tells what was removed, or would be.

    Writers of ours wait meanwhile. A run that stops on its way is finished by the next.
    """
    if dry_run:
        return _told(manifest, name, definition, moment, keep_last)
    with begin_commit(manifest, name, definition, new_writer_id()) as commit:
        removed = _cleaned(manifest, commit, moment, keep_last)
        commit.lease.change_manifest(lambda root: ([root.with_properties({WRITER: None})], []))
        return removed


def _told(
    manifest: Manifest, name: str, definition: NamespaceDefinition, moment: datetime | None, keep_last: int | None
) -> list[CleanedTable]:
    state = manifest.state()
    oldest = oldest_kept(manifest, state, name, moment, keep_last)
    if oldest is None:
        return []
    found = [_explained(manifest.store, one) for one in unneeded_versions(manifest, state, name, definition, oldest)]
    return [one for one in found if one.versions or one.bytes]


def _cleaned(
    manifest: Manifest, commit: NamespaceCommit, moment: datetime | None, keep_last: int | None
) -> list[CleanedTable]:
    oldest = oldest_kept(manifest, commit.state, commit.name, moment, keep_last)
    if oldest is None:
        return []
    # First of all, so that readers of an older version are told so, and not that a leaf lacks something.
    commit.lease.change_manifest(lambda root: ([root.with_properties({OLDEST_VERSION: str(oldest)})], []))
    *leaves, shared = unneeded_versions(manifest, commit.state, commit.name, commit.definition, oldest)
    removed = commit.for_each(leaves, lambda one: _removed(commit, one))
    commit.lease.change_manifest(lambda root: ([root.with_properties({CLEANED_VERSION: str(oldest)})], []))
    # Last, for the old versions of the manifest name the leaves that were dropped.
    removed.append(_removed(commit, shared))
    return [one for one in removed if one.versions or one.bytes]


def _removed(commit: NamespaceCommit, unneeded: UnneededVersions) -> CleanedTable:
    """Let Lance remove versions of a table, and files that no version ever had; young ones a writer may still need."""
    dataset = commit.store.dataset(unneeded.location)
    if unneeded.dropped:
        dataset = _emptied(commit, unneeded.location, dataset)
    stats: Any = dataset.cleanup_old_versions(**_chosen(unneeded))
    left = {item["version"] for item in _versions(commit.store.dataset(unneeded.location))}
    return _row(unneeded, [version for version in unneeded.versions if version not in left], stats)


def _emptied(commit: NamespaceCommit, location: str, dataset: LanceDataset) -> LanceDataset:
    """A dropped leaf without rows. It is not deleted: a writer may be about to make it anew, and has files in it."""
    from lance import LanceOperation

    return commit.commit_leaf(location, dataset, LanceOperation.Overwrite(dataset.schema, []))


def _explained(store: DatasetStore, unneeded: UnneededVersions) -> CleanedTable:
    dataset = store.dataset(unneeded.location)
    told: Any = dataset.explain_cleanup_old_versions(**_chosen(unneeded, but=dataset.version))
    tagged = {tag["version"] for tag in dict(dataset.tags.list()).values()}
    row = _row(unneeded, [version for version in unneeded.versions if version not in tagged], told.stats)
    if not unneeded.dropped:
        return row
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    size = sum(file.file_size_bytes or 0 for file in files)
    return row._replace(files=row.files + len(files), bytes=row.bytes + size)


def _chosen(unneeded: UnneededVersions, but: int | None = None) -> dict[str, Any]:
    """Lance's arguments. Versions that somebody has tagged stay."""
    versions = [version for version in unneeded.versions if version != but]
    return {"versions": versions, "error_if_tagged_old_versions": False} if versions else {"older_than": _NO_VERSION}


def _row(unneeded: UnneededVersions, versions: Sequence[int], stats: Any) -> CleanedTable:
    files = stats.data_files_removed + stats.deletion_files_removed + stats.index_files_removed
    return CleanedTable(unneeded.table, unneeded.location, sorted(versions), files, stats.bytes_removed)


def _versions(dataset: LanceDataset) -> list[Any]:
    return list(dataset.versions())
