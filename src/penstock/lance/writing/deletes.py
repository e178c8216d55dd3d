"""Rows that a predicate is true for, deleted: tasks write the deletion files, whole leaves just leave the manifest."""

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
from penstock.lance.commits.commit import Turn, turn
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.manifest import Entry, Manifest
from penstock.lance.format.store import Store
from penstock.lance.reading.leaf_reader import fragment_of
from penstock.lance.reading.leaf_scan import ADDRESS, LEAF, Scan, pushed
from penstock.lance.writing.statements import each
from penstock.lance.writing.write_job import new_write_id
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
class Thinned:
    """A leaf's fragments after a delete: those with rows left, and the ids of those without."""

    leaf: Leaf
    left: Sequence[str]
    gone: Sequence[int]
    rows: int


@dataclass(frozen=True)
class DeleteJob:
    """Rows of leaf, fragment and address, those of a fragment together, in; what is left of each fragment out."""

    store: Store
    leaves: Mapping[str, tuple[str, int]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (leaf, fragment), rows in groupby(_places(batches), key=itemgetter(0, 1)):
            offsets = [address & (2**_OFFSET_BITS - 1) for _, _, address in rows]
            dataset = self.store.dataset(*self.leaves[leaf])
            left = fragment_of(dataset, fragment).delete_rows(offsets)
            told = None if left is None else json.dumps(left.to_json())
            yield pa.RecordBatch.from_pylist(
                [{"leaf": leaf, "fragment": fragment, "left": told, "rows": len(offsets)}], schema=_RESULT_ARROW
            )


def delete_rows(manifest: Manifest, scan: Scan, where: str | SparkColumn) -> int | None:
    """Delete the rows; the namespace's new version, or None where no row matched."""
    predicate = as_column(where)
    whole = _whole_leaves(scan, predicate)
    thinned = _thinned(scan, predicate, whole)
    return remove_rows(manifest, scan, whole, thinned) if whole or thinned else None


def remove_rows(manifest: Manifest, scan: Scan, whole: Sequence[Leaf], thinned: Sequence[Thinned]) -> int:
    """Take whole leaves out of the namespace, and show others without the rows that tasks have marked."""
    rows = {"rows": sum(one.rows for one in thinned)} if not whole else {}
    with turn(manifest, scan.name, scan.definition, new_write_id()) as mine:
        for leaf in whole:
            _check_unchanged(mine, leaf)
            mine.check_adopted(leaf)
        mine.pin(one.leaf.object_id for one in thinned)
        entries = each(mine, thinned, lambda one: _committed(mine, one))
        gone = {leaf.object_id for leaf in whole} | {
            one.leaf.object_id for one, entry in zip(thinned, entries, strict=True) if entry is None
        }
        changed = [entry for entry in entries if entry is not None]
        return mine.publish(changed, gone, "delete", leaves=len(changed), **rows, **{"removed leaves": len(gone)})


def _whole_leaves(scan: Scan, predicate: SparkColumn) -> list[Leaf]:
    """Leaves that hold only rows that the predicate is true for: their partition values say so."""
    if has_subquery(scan.frame().where(predicate)):
        return []
    return covered_whole(predicate, lambda where: scan.pruner.kept(scan.leaves, pushed(scan, where)))


def _thinned(scan: Scan, predicate: SparkColumn, whole: Sequence[Leaf]) -> list[Thinned]:
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
    job = DeleteJob(scan.store, {leaf.object_id: (leaf.location, _version(leaf)) for leaf in partial.leaves})

    def attempt(rows: DataFrame) -> list[Row]:
        with file_writing_job(scan.spark, None, new_write_id()):
            return map_in_workers(rows, job, _RESULT).collect()

    told = run_in_batches(together, attempt)
    by_leaf: dict[str, list[Any]] = defaultdict(list)
    for row in told:
        by_leaf[row.leaf].append(row)
    by_id = {leaf.object_id: leaf for leaf in partial.leaves}
    return [
        Thinned(
            by_id[leaf],
            [row.left for row in rows if row.left is not None],
            [row.fragment for row in rows if row.left is None],
            sum(row.rows for row in rows),
        )
        for leaf, rows in sorted(by_leaf.items())
    ]


def _pinned(scan: Scan, leaf: Leaf) -> Leaf | None:
    """The leaf at a version that does not move: another writer's at its newest; None where there is no dataset."""
    if leaf.version is not None:
        return None if leaf.is_empty else leaf
    dataset = scan.dataset(leaf)
    return None if dataset is None else replace(leaf, version=dataset.version)


def _version(leaf: Leaf) -> int:
    assert leaf.version is not None  # it was pinned
    return leaf.version


def _check_unchanged(mine: Turn, leaf: Leaf) -> None:
    if mine.leaf(leaf.object_id) != leaf:
        raise ConflictError(
            f"leaf {leaf.object_id} was written to by another writer while its rows were being deleted; run again"
        )


def _committed(mine: Turn, one: Thinned) -> Entry | None:
    """The leaf's entry without the rows, or None where it has none left."""
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    leaf = mine.leaf(one.leaf.object_id)
    entry = mine.state.entry(one.leaf.object_id)
    base = None if leaf is None or leaf.location != one.leaf.location else mine.base(leaf)
    if leaf is None or entry is None or base is None:
        raise ConflictError(f"leaf {one.leaf.object_id} was removed by another writer meanwhile; run again")
    left = [FragmentMetadata.from_json(text) for text in one.left]
    operation = LanceOperation.Delete(left, list(one.gone), "rows chosen by Penstock")
    version = _version(one.leaf)
    made_for = base.version if mine.unchanged(leaf, base, version) else version
    done = mine.commit(leaf.location, base, operation, read_version=made_for)
    return mine.shown(entry, done) if done.count_rows() else None


def _places(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, int]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
