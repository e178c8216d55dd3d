"""Compacts the small fragments of leaves: the driver plans for each leaf, tasks rewrite, the driver commits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import ConflictError
from penstock.lance.commits.namespace_commit import NamespaceCommit, begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.manifest import Manifest, ManifestEntry
from penstock.lance.reading.leaf_scan import LeafScan
from penstock.lance.writing.fragment_write_job import ROWS_PER_FILE
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.workers import map_in_workers

if TYPE_CHECKING:
    from lance import LanceDataset

_TASK = "leaf string, task string"
_RESULT = "leaf string, result string"
_RESULT_ARROW = pa.schema([("leaf", pa.string()), ("result", pa.string())])


@dataclass(frozen=True)
class CompactionJob:
    """Runs Lance's compaction tasks: takes rows of leaf and task, returns rows of leaf and result."""

    store: DatasetStore
    leaves: Mapping[str, tuple[str, int]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lance import optimize

        tasks: Any = optimize.CompactionTask  # its hints leave out the JSON
        for batch in batches:
            for row in batch.to_pylist():
                dataset = self.store.kept(*self.leaves[row["leaf"]])
                result = tasks.from_json(row["task"]).execute(dataset).json()
                yield pa.RecordBatch.from_pylist([{"leaf": row["leaf"], "result": result}], schema=_RESULT_ARROW)


def compact_leaves(manifest: Manifest, scan: LeafScan, rows_per_fragment: int = ROWS_PER_FILE) -> int | None:
    """Rewrite leaves whose fragments are small or full of deleted rows.

    Returns the namespace's new version, or None where no leaf needs it.
    """
    from lance.optimize import Compaction

    tasks: list[tuple[str, str]] = []
    versions: dict[str, tuple[str, int]] = {}
    for leaf in scan.leaves:
        dataset = scan.dataset(leaf)
        if dataset is not None:
            plan: Any = Compaction.plan(dataset, {"target_rows_per_fragment": rows_per_fragment})
            versions[leaf.object_id] = leaf.location, dataset.version
            tasks += [(leaf.object_id, task.json()) for task in plan.tasks]
    if not tasks:
        return None
    spark = scan.spark
    given = spark.createDataFrame(tasks, _TASK).repartition(len(tasks))
    with file_writing_job(spark, None, new_writer_id()):
        done = map_in_workers(given, CompactionJob(scan.store, versions), _RESULT).collect()
    results: dict[str, list[str]] = defaultdict(list)
    for row in done:
        results[row.leaf].append(row.result)
    return commit_compaction(manifest, scan, results)


def commit_compaction(manifest: Manifest, scan: LeafScan, results: Mapping[str, list[str]]) -> int:
    """Put what tasks have rewritten of each leaf in place of what was there. Returns the namespace's new version."""
    with begin_commit(manifest, scan.name, scan.definition, new_writer_id()) as commit:
        rewritten = [(leaf, results[leaf.object_id]) for leaf in scan.leaves if leaf.object_id in results]
        entries = commit.for_each(rewritten, lambda item: _committed(commit, *item))
        changed = [entry for entry in entries if entry is not None]
        return commit.publish(changed, [], "compact", leaves=len(changed))


def _committed(commit: NamespaceCommit, planned: Leaf, results: list[str]) -> ManifestEntry | None:
    """The leaf's entry after its rewrite; None for a leaf that was removed, or made anew, meanwhile."""
    from lance import optimize

    leaf, entry = commit.leaf(planned.object_id), commit.state.entry(planned.object_id)
    base = None if leaf is None or leaf.location != planned.location else commit.base_dataset(leaf)
    if leaf is None or base is None or entry is None:
        return None
    before = base.version
    try:
        # Lance commits it under no name of ours: a version without effect on the rows, which may stay if we stop here.
        optimize.Compaction.commit(base, [_result(commit, leaf, base, text) for text in results])
    except OSError as error:
        raise ConflictError(
            f"rows of leaf {planned.object_id} were changed by another writer meanwhile; run again, or adopt() first if"
            f" that was another program ({str(error).splitlines()[0]})"
        ) from None
    commit.check_no_other_write(before, base)
    return commit.entry_at(entry, base)


def _result(commit: NamespaceCommit, leaf: Leaf, base: LanceDataset, text: str) -> Any:
    """A task's result, as if made for the leaf of now where that holds just what the task read."""
    from lance import optimize

    results: Any = optimize.RewriteResult
    result = json.loads(text)
    if commit.is_unchanged(leaf, base, result["read_version"]):
        result["read_version"] = base.version
    return results.from_json(json.dumps(result))
