"""Small fragments of leaves put together, by Spark's tasks: each leaf plans, tasks rewrite, the driver commits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import ConflictError
from penstock.lance.commits.commit import Turn, turn
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.manifest import Entry, Manifest
from penstock.lance.format.store import Store
from penstock.lance.reading.leaf_scan import Scan
from penstock.lance.writing.statements import each
from penstock.lance.writing.write_job import ROWS_PER_FILE, new_write_id
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.workers import map_in_workers

if TYPE_CHECKING:
    from lance import LanceDataset

_TASK = "leaf string, task string"
_RESULT = "leaf string, result string"
_RESULT_ARROW = pa.schema([("leaf", pa.string()), ("result", pa.string())])


@dataclass(frozen=True)
class CompactJob:
    """Rows of leaf and Lance's task in, rows of leaf and its result out."""

    store: Store
    leaves: Mapping[str, tuple[str, int]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from lance import optimize

        tasks: Any = optimize.CompactionTask  # its hints leave out the JSON
        for batch in batches:
            for row in batch.to_pylist():
                dataset = self.store.dataset(*self.leaves[row["leaf"]])
                result = tasks.from_json(row["task"]).execute(dataset).json()
                yield pa.RecordBatch.from_pylist([{"leaf": row["leaf"], "result": result}], schema=_RESULT_ARROW)


def compact(manifest: Manifest, scan: Scan, rows_per_fragment: int = ROWS_PER_FILE) -> int | None:
    """Rewrite leaves whose fragments are small or full of deleted rows; None where no leaf needs it."""
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
    with file_writing_job(spark, None, new_write_id()):
        done = map_in_workers(given, CompactJob(scan.store, versions), _RESULT).collect()
    results: dict[str, list[str]] = defaultdict(list)
    for row in done:
        results[row.leaf].append(row.result)
    return show_rewritten(manifest, scan, results)


def show_rewritten(manifest: Manifest, scan: Scan, results: Mapping[str, list[str]]) -> int:
    """Put what tasks have rewritten of each leaf in place of what it was made of."""
    with turn(manifest, scan.name, scan.definition, new_write_id()) as mine:
        rewritten = [(leaf, results[leaf.object_id]) for leaf in scan.leaves if leaf.object_id in results]
        entries = each(mine, rewritten, lambda item: _committed(mine, *item))
        changed = [entry for entry in entries if entry is not None]
        return mine.publish(changed, [], "compact", leaves=len(changed))


def _committed(mine: Turn, planned: Leaf, results: list[str]) -> Entry | None:
    """The leaf's entry after its rewrite; None for a leaf that has gone, or was made anew, meanwhile."""
    from lance import optimize

    leaf, entry = mine.leaf(planned.object_id), mine.state.entry(planned.object_id)
    base = None if leaf is None or leaf.location != planned.location else mine.base(leaf)
    if leaf is None or base is None or entry is None:
        return None
    before = base.version
    try:
        # Lance commits it under no name of ours: a version without effect on the rows, which may stay if we stop here.
        optimize.Compaction.commit(base, [_result(mine, leaf, base, text) for text in results])
    except OSError as error:
        raise ConflictError(
            f"rows of leaf {planned.object_id} were changed by another writer meanwhile; run again, or adopt() first if"
            f" that was another program ({str(error).splitlines()[0]})"
        ) from None
    mine.check_alone(before, base)
    return mine.shown(entry, base)


def _result(mine: Turn, leaf: Leaf, base: LanceDataset, text: str) -> Any:
    """A task's result, as made for the leaf of now if it holds just what the task read."""
    from lance import optimize

    written: Any = optimize.RewriteResult
    told = json.loads(text)
    if mine.unchanged(leaf, base, told["read_version"]):
        told["read_version"] = base.version
    return written.from_json(json.dumps(told))
