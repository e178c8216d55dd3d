"""Deletes the rows that a predicate is true for: tasks write deletion files, whole leaves just leave the manifest."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import ConflictError
from penstock.lance.commits.namespace_commit import NamespaceCommit, begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.manifest import Manifest, ManifestEntry
from penstock.lance.reading.leaf_reader import leaf_fragment
from penstock.lance.reading.leaf_scan import ADDRESS, LEAF, LeafScan, pushed_implication
from penstock.spark.arrow_transfer import run_in_batches
from penstock.spark.expressions import as_column, has_subquery
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.pushdown import covered_whole
from penstock.spark.workers import map_in_workers

_FRAGMENT = "_penstock_fragment"
_RESULT = "leaf string, fragment bigint, left string, rows bigint"
_RESULT_ARROW = pa.schema(
    [("leaf", pa.string()), ("fragment", pa.int64()), ("left", pa.string()), ("rows", pa.int64())]
)
_OFFSET_BITS = 32  # of a row's address; the fragment is above them


@dataclass(frozen=True)
class LeafDeletion:
    """What a delete leaves of a leaf: its fragments with rows left, the ids of those without, and the rows deleted."""

    leaf: Leaf
    left: Sequence[str]  # Lance's JSON
    emptied: Sequence[int]
    rows: int


@dataclass(frozen=True)
class DeletionJob:
    """Writes deletion files: takes rows of leaf, fragment and address, returns what is left of each fragment.

    The rows of a fragment come together.
    """

    store: DatasetStore
    leaves: Mapping[str, tuple[str, int]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (leaf, fragment), rows in groupby(_addresses(batches), key=itemgetter(0, 1)):
            offsets = [address & (2**_OFFSET_BITS - 1) for _, _, address in rows]
            dataset = self.store.kept(*self.leaves[leaf])
            left = leaf_fragment(dataset, fragment).delete_rows(offsets)
            text = None if left is None else json.dumps(left.to_json())
            yield pa.RecordBatch.from_pylist(
                [{"leaf": leaf, "fragment": fragment, "left": text, "rows": len(offsets)}], schema=_RESULT_ARROW
            )


def delete_rows(manifest: Manifest, scan: LeafScan, where: str | SparkColumn) -> int | None:
    """Delete the rows. Returns the namespace's new version, or None where no row matched."""
    predicate = as_column(where)
    whole = _whole_leaves(scan, predicate)
    deletions = _delete_from_leaves(scan, predicate, whole)
    return commit_deletion(manifest, scan, whole, deletions) if whole or deletions else None


def commit_deletion(
    manifest: Manifest, scan: LeafScan, whole: Sequence[Leaf], deletions: Sequence[LeafDeletion]
) -> int:
    """Take whole leaves out of the namespace, and show others without the rows that tasks have deleted.

    Returns the namespace's new version.
    """
    rows = {"rows": sum(one.rows for one in deletions)} if not whole else {}
    with begin_commit(manifest, scan.name, scan.definition, new_writer_id()) as commit:
        for leaf in whole:
            _check_unchanged(commit, leaf)
            commit.check_adopted(leaf)
        commit.pin_versions(one.leaf.object_id for one in deletions)
        entries = commit.for_each(deletions, lambda one: _committed(commit, one))
        removed = {leaf.object_id for leaf in whole} | {
            one.leaf.object_id for one, entry in zip(deletions, entries, strict=True) if entry is None
        }
        changed = [entry for entry in entries if entry is not None]
        summary = {"leaves": len(changed), **rows, "removed leaves": len(removed)}
        return commit.publish(changed, removed, "delete", **summary)


def _whole_leaves(scan: LeafScan, predicate: SparkColumn) -> list[Leaf]:
    """The leaves that hold only rows that the predicate is true for, as their partition values tell."""
    if has_subquery(scan.frame().where(predicate)):
        return []
    return covered_whole(predicate, lambda where: scan.pruner.kept(scan.leaves, pushed_implication(scan, where)))


def _delete_from_leaves(scan: LeafScan, predicate: SparkColumn, whole: Sequence[Leaf]) -> list[LeafDeletion]:
    """Let tasks find the rows, and others write a deletion file for each fragment."""
    versions = {leaf.object_id: leaf for leaf in scan.leaves if leaf not in whole}
    pinned = [_pinned(scan, leaf) for leaf in versions.values()]
    partial = scan.only([leaf for leaf in pinned if leaf is not None])
    if not partial.leaves:
        return []
    found = partial.frame(addresses=True).where(predicate)
    places = found.select(
        F.col(LEAF), F.shiftrightunsigned(F.col(ADDRESS), _OFFSET_BITS).alias(_FRAGMENT), F.col(ADDRESS)
    )
    together = places.repartition(LEAF, _FRAGMENT).sortWithinPartitions(LEAF, _FRAGMENT)
    job = DeletionJob(scan.store, {leaf.object_id: (leaf.location, _version(leaf)) for leaf in partial.leaves})

    def attempt(rows: DataFrame) -> list[Row]:
        with file_writing_job(scan.spark, None, new_writer_id()):
            return map_in_workers(rows, job, _RESULT).collect()

    results = run_in_batches(together, attempt)
    by_leaf: dict[str, list[Any]] = defaultdict(list)
    for row in results:
        by_leaf[row.leaf].append(row)
    by_id = {leaf.object_id: leaf for leaf in partial.leaves}
    return [
        LeafDeletion(
            by_id[leaf],
            [row.left for row in rows if row.left is not None],
            [row.fragment for row in rows if row.left is None],
            sum(row.rows for row in rows),
        )
        for leaf, rows in sorted(by_leaf.items())
    ]


def _pinned(scan: LeafScan, leaf: Leaf) -> Leaf | None:
    """The leaf at a version that does not move: another writer's at its newest; None where there is no dataset."""
    if leaf.version is not None:
        return None if leaf.is_empty else leaf
    dataset = scan.dataset(leaf)
    return None if dataset is None else replace(leaf, version=dataset.version)


def _version(leaf: Leaf) -> int:
    assert leaf.version is not None  # it was pinned
    return leaf.version


def _check_unchanged(commit: NamespaceCommit, leaf: Leaf) -> None:
    if commit.leaf(leaf.object_id) != leaf:
        raise ConflictError(
            f"leaf {leaf.object_id} was written to by another writer while its rows were being deleted; run again"
        )


def _committed(commit: NamespaceCommit, one: LeafDeletion) -> ManifestEntry | None:
    """The leaf's entry after the rows were deleted; None where it has none left."""
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    leaf = commit.leaf(one.leaf.object_id)
    entry = commit.state.entry(one.leaf.object_id)
    base = None if leaf is None or leaf.location != one.leaf.location else commit.base_dataset(leaf)
    if leaf is None or entry is None or base is None:
        raise ConflictError(f"leaf {one.leaf.object_id} was removed by another writer meanwhile; run again")
    left = [FragmentMetadata.from_json(text) for text in one.left]
    operation = LanceOperation.Delete(left, list(one.emptied), "rows chosen by Penstock")
    version = _version(one.leaf)
    made_for = base.version if commit.is_unchanged(leaf, base, version) else version
    done = commit.commit_leaf(leaf.location, base, operation, read_version=made_for)
    return commit.entry_at(entry, done) if done.count_rows() else None


def _addresses(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, int]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
