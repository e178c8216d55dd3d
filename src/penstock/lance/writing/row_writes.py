"""Appends, overwrites and realigns rows: makes the fragments that tasks have written part of their leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from penstock.errors import ConflictError, InvalidError
from penstock.lance.commits.namespace_commit import NamespaceCommit, begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.field_ids import fields_in_schema
from penstock.lance.format.leaf_columns import new_leaf_schema
from penstock.lance.format.leaves import Leaf, PartitionValues, leaves_in, new_leaf_entries
from penstock.lance.format.manifest import Manifest, ManifestEntry
from penstock.lance.format.partition_fields import check_transform
from penstock.lance.reading.leaf_scan import LeafScan
from penstock.lance.writing.fragment_write_job import FragmentWriteJob, run_write_job
from penstock.lance.writing.write_journal import WrittenFragments
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.write_job import Distribution
from penstock.storage.filesystems import delete_file

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import FragmentMetadata


@dataclass(frozen=True)
class LeafWrite:
    """All that the tasks of a job have written for one leaf."""

    object_id: str
    values: PartitionValues
    location: str
    versions: frozenset[int | None]  # of the leaf, that the tasks made fragments for
    fragments: Sequence[FragmentMetadata]
    rows: int


def write_rows(
    manifest: Manifest,
    scan: LeafScan,
    frame: DataFrame,
    operation: str,
    distribution: Distribution,
    replaced: frozenset[str] = frozenset(),
    replace_all: bool = False,
) -> int:
    """Add rows to leaves. The leaves in `replaced` lose the rows they had; with `replace_all`, every leaf does.

    Returns the namespace's new version.
    """
    rows = _with_namespace_columns(scan, frame)
    versions = {leaf.object_id: _version(scan, leaf) for leaf in scan.leaves if leaf.object_id in replaced}
    job = new_write_job(scan, replaced, replace_all)
    written = run_write_job(rows, job, distribution, scan.columns)
    return commit_rows(manifest, scan, job, written, operation, versions, replace_all)


def new_write_job(scan: LeafScan, replaced: Container[str] = (), replace_all: bool = False) -> FragmentWriteJob:
    """The job that writes rows to the leaves of a scan."""
    targets = {
        leaf.object_id: replace(
            leaf, version=None if replace_all or leaf.object_id in replaced else _version(scan, leaf)
        )
        for leaf in scan.leaves
    }
    types = {number: column.type for number, column in scan.columns_by_id.items()}
    return FragmentWriteJob(scan.store, scan.name, scan.definition, types, targets, new_writer_id())


def commit_rows(
    manifest: Manifest,
    scan: LeafScan,
    job: FragmentWriteJob,
    written: Sequence[WrittenFragments],
    operation: str,
    replaced: Mapping[str, int | None] = {},
    replace_all: bool = False,
) -> int:
    """Make what a job's tasks have written part of the leaves; `replaced` tells which version of a leaf was read.

    Returns the namespace's new version.
    """
    writes = _by_leaf(written)
    with (
        _files_removed_on_failure(manifest, scan, writes),
        begin_commit(manifest, scan.name, scan.definition, job.writer_id) as commit,
    ):
        commit.pin_versions([*(one.object_id for one in writes), *replaced])
        for object_id, version in replaced.items():
            _check_unchanged(commit, object_id, version)
        present = {leaf.object_id for _, leaf in commit.leaves()}
        removed = (present if replace_all else set(replaced) & present) - {one.object_id for one in writes}
        changed = commit.for_each(writes, lambda one: _committed(commit, one, replace_all or one.object_id in replaced))
        summary = {"rows": sum(one.rows for one in writes), "leaves": len(writes), "removed leaves": len(removed)}
        return commit.publish([entry for entries in changed for entry in entries], removed, operation, **summary)


def _with_namespace_columns(scan: LeafScan, frame: DataFrame) -> DataFrame:
    """The rows with the namespace's columns; those that are not given are NULL."""
    for field in scan.definition.fields:
        for number in field.sources:
            check_transform(field.transform, scan.columns_by_id[number])
    given = {name.lower() for name in frame.columns}
    for item in scan.definition.schema:
        if not item.nullable and item.name.lower() not in given:
            raise InvalidError(
                f"namespace {scan.name}: column {item.name!r} takes no NULL, and the DataFrame does not give it"
            )
    return assigned_rows(frame, scan.columns, scan.name, by_name=True)


def _version(scan: LeafScan, leaf: Leaf) -> int | None:
    """The version of a leaf that fragments are made for; None where it has none yet."""
    if leaf.version is not None:
        return leaf.version or None
    dataset = scan.dataset(leaf)
    return None if dataset is None else dataset.version


def _by_leaf(written: Sequence[WrittenFragments]) -> list[LeafWrite]:
    from lance.fragment import FragmentMetadata

    by_leaf: dict[str, list[WrittenFragments]] = defaultdict(list)
    for one in written:
        by_leaf[one.object_id].append(one)
    return [
        LeafWrite(
            object_id,
            parts[0].values,
            parts[0].location,
            frozenset(part.version for part in parts),
            [FragmentMetadata.from_json(text) for part in parts for text in part.fragments],
            sum(part.rows for part in parts),
        )
        for object_id, parts in sorted(by_leaf.items())
    ]


def _committed(commit: NamespaceCommit, one: LeafWrite, replaces: bool) -> list[ManifestEntry]:
    """Make fragments part of their leaf; its entry, and those of new namespaces around it."""
    from lance import LanceOperation

    leaf = commit.leaf(one.object_id)
    location = one.location
    if one.versions != {None} if leaf is None else leaf.location != location:
        raise ConflictError(f"leaf {one.object_id} was removed or made anew by another writer meanwhile; run again")
    base = commit.store.find(location) if leaf is None else commit.base_dataset(leaf)
    if leaf is None or leaf.is_empty or base is None or replaces:
        schema = new_leaf_schema(commit.definition)
        done = commit.commit_leaf(location, base, LanceOperation.Overwrite(schema, list(one.fragments)))
    else:
        for version in one.versions:
            _check_columns(commit, one, version, base)
        done = commit.commit_leaf(location, base, LanceOperation.Append(list(one.fragments)))
    *namespaces, new = new_leaf_entries(commit.name, commit.definition.fields, one.values, location)
    around = [entry for entry in namespaces if commit.state.entry(entry.object_id) is None]
    return [*around, commit.entry_at(commit.state.entry(one.object_id) or new, done)]


def _check_unchanged(commit: NamespaceCommit, object_id: str, version: int | None) -> None:
    """Refuse to replace rows that were not read."""
    leaf = commit.leaf(object_id)
    base = None if leaf is None else commit.base_dataset(leaf)
    same = version is None if leaf is None or base is None else version and commit.is_unchanged(leaf, base, version)
    if not same:
        raise ConflictError(
            f"leaf {object_id} was written to by another writer meanwhile; run again, or adopt() first if that was"
            " another program"
        )


def _check_columns(commit: NamespaceCommit, one: LeafWrite, version: int | None, base: LanceDataset) -> None:
    """Refuse fragments that were made for other columns than the leaf has by now."""
    if version is not None:
        made_for = commit.store.find(one.location, version)
        if made_for is None:
            raise ConflictError(f"version {version} of leaf {one.object_id} was cleaned up meanwhile; run again")
        same = made_for.schema.equals(base.schema, check_metadata=True) and made_for.max_field_id == base.max_field_id
    else:
        expected = new_leaf_schema(commit.definition)
        same = base.schema.equals(expected, check_metadata=True) and base.max_field_id == fields_in_schema(expected) - 1
    if not same:
        raise ConflictError(f"the columns of leaf {one.object_id} were changed by another writer meanwhile; run again")


@contextmanager
def _files_removed_on_failure(manifest: Manifest, scan: LeafScan, writes: Sequence[LeafWrite]) -> Iterator[None]:
    """Remove the files of fragments that do not become part of their leaf."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # what failed first is the news
            leaves = {leaf.location: leaf for leaf in leaves_in(manifest.state(), scan.name, scan.definition.fields)}
            for one in writes:
                _remove_unused(scan.store, one, leaves.get(one.location))
        raise


def _remove_unused(store: DatasetStore, one: LeafWrite, leaf: Leaf | None) -> None:
    """Remove the files that neither readers of the namespace nor of the leaf alone can need."""
    newest = None if leaf is None else store.find(one.location)
    seen = store.dataset(one.location, leaf.version) if leaf is not None and leaf.version else None
    fragments = [fragment for dataset in (newest, seen) if dataset for fragment in dataset.get_fragments()]
    used = {file.path for fragment in fragments for file in fragment.metadata.files}
    for path in {file.path for fragment in one.fragments for file in fragment.files} - used:
        delete_file(store.uri(f"{one.location}/data/{path}"))
