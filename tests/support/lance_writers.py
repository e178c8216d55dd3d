"""Writers of a namespace that need no Spark: they do themselves what tasks do, and commit as statements do."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from lance.optimize import Compaction

from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import new_definition, read_definition
from penstock.lance.format.field_ids import with_field_ids
from penstock.lance.format.leaves import leaves_in
from penstock.lance.format.manifest import MANIFEST, Manifest
from penstock.lance.reading.leaf_scan import LEAF, LeafScan
from penstock.lance.reading.listings import version_rows
from penstock.lance.reading.misplaced_rows import MisplacedRowJob
from penstock.lance.writing.adoption import adopt_leaves
from penstock.lance.writing.cleanup import CleanedTable, clean_up
from penstock.lance.writing.compaction import commit_compaction
from penstock.lance.writing.creation import create_namespace
from penstock.lance.writing.deletes import DeletionJob, LeafDeletion, commit_deletion
from penstock.lance.writing.fragment_write_job import FragmentWriteJob
from penstock.lance.writing.row_writes import commit_rows, new_write_job
from penstock.lance.writing.write_journal import WrittenFragments, write_journal
from penstock.schema.columns import Column
from penstock.schema.types import Type
from support.processes import READY

NAME = "events"
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("batch", pa.string()), ("country", pa.string())])
COLUMNS = tuple(
    Column(number, item.name, Type("int64" if item.name == "id" else "varchar"), number)
    for number, item in enumerate(SCHEMA)
)

Row = tuple[int, str, str | None]


def stop() -> None:
    """Tell the test that this process can be killed now."""
    print(READY, flush=True)
    time.sleep(600)
    sys.exit("nobody killed it")


def data_files(root: str | Path) -> list[str]:
    """The files with rows of all leaves."""
    found = Path(root).glob("*/data/*")
    return sorted(str(path.relative_to(root)) for path in found if path.parts[-3] != MANIFEST)


def journals(root: str | Path) -> list[Path]:
    return list(Path(root).glob("__penstock*"))


@dataclass(frozen=True)
class Writer:
    """One client of a namespace in a directory."""

    root: str

    @classmethod
    def create(cls, root: Path, *more: str) -> Writer:
        """A namespace that is partitioned by country, and by more."""
        definition = new_definition(with_field_ids(SCHEMA), COLUMNS, ["country", *more])
        create_namespace(DatasetStore.at(str(root)), NAME, definition)
        return cls(str(root))

    @property
    def manifest(self) -> Manifest:
        return Manifest(DatasetStore.at(self.root))

    def scan(self, version: int | None = None) -> LeafScan:
        state = self.manifest.state(version)
        root = state.entry(NAME)
        assert root is not None
        definition = read_definition(NAME, root.properties)
        leaves = leaves_in(state, NAME, definition.fields)
        return LeafScan(cast(Any, None), self.manifest.store, NAME, definition, COLUMNS, leaves)

    def append(self, batch: str, rows: Iterable[tuple[int, str | None]]) -> int:
        """Rows of id and country."""
        scan = self.scan()
        return self.commit(scan, *self.written(scan, batch, rows))

    def written(
        self, scan: LeafScan, batch: str, rows: Iterable[tuple[int, str | None]], job: FragmentWriteJob | None = None
    ) -> tuple[FragmentWriteJob, list[WrittenFragments]]:
        """What a task leaves behind: fragments that no leaf has yet."""
        ids, countries = zip(*rows, strict=True)
        arrays = [pa.array(ids, pa.int64()), pa.array([batch] * len(ids)), pa.array(countries, pa.string())]
        job = job or new_write_job(scan)
        with write_journal(scan.store, job.writer_id) as told:
            done = job([pa.RecordBatch.from_arrays(arrays, schema=scan.definition.schema)])
            told += [pickle.loads(batch["written"][0].as_py()) for batch in done]
        return job, told

    def overwrite(self, batch: str, rows: Iterable[tuple[int, str | None]]) -> int:
        scan = self.scan()
        written = self.written(scan, batch, rows, new_write_job(scan, replace_all=True))
        return commit_rows(self.manifest, scan, *written, "overwrite", replace_all=True)

    def commit(self, scan: LeafScan, job: FragmentWriteJob, written: list[WrittenFragments]) -> int:
        return commit_rows(self.manifest, scan, job, written, "append")

    def rows(self, version: int | None = None) -> list[Row]:
        """All rows of all leaves, as a reader of the namespace sees them, by id."""
        scan = self.scan(version)
        found = [scan.dataset(leaf) for leaf in scan.leaves]
        rows = [row for dataset in found if dataset is not None for row in dataset.to_table().to_pylist()]
        return sorted((tuple(row.values()) for row in rows), key=lambda row: (row[0], str(row)))  # type: ignore[misc]

    def ids(self, version: int | None = None) -> list[int]:
        return [row[0] for row in self.rows(version)]

    def leaf(self, country: str) -> str:
        """The path of a leaf's dataset."""
        [found] = [leaf for leaf in self.scan().leaves if leaf.object_id == f"{NAME}$country={country}"]
        return str(Path(self.root, found.location))

    def marked(self, scan: LeafScan, where: str) -> list[LeafDeletion]:
        """What tasks of a delete leave behind: deletion files that no leaf has yet."""
        found = []
        for leaf in scan.leaves:
            dataset = scan.dataset(leaf)
            assert dataset is not None
            places = dataset.scanner(columns=[], filter=where, with_row_address=True).to_table()["_rowaddr"].to_pylist()
            rows = [{"leaf": leaf.object_id, "fragment": place >> 32, "address": place} for place in sorted(places)]
            if rows:
                job = DeletionJob(scan.store, {leaf.object_id: (leaf.location, dataset.version)})
                told = [row for batch in job([pa.RecordBatch.from_pylist(rows)]) for row in batch.to_pylist()]
                left = [row["left"] for row in told if row["left"] is not None]
                gone = [row["fragment"] for row in told if row["left"] is None]
                found.append(LeafDeletion(replace(leaf, version=dataset.version), left, gone, len(rows)))
        return found

    def delete(self, where: str) -> int | None:
        scan = self.scan()
        marked = self.marked(scan, where)
        return self.remove(scan, marked) if marked else None

    def remove(self, scan: LeafScan, marked: list[LeafDeletion]) -> int:
        return commit_deletion(self.manifest, scan, [], marked)

    def rewritten(self, scan: LeafScan) -> dict[str, list[str]]:
        """What tasks of a compaction leave behind, by leaf."""
        found = {}
        for leaf in scan.leaves:
            dataset = scan.dataset(leaf)
            assert dataset is not None
            plan: Any = Compaction.plan(dataset, {})
            found[leaf.object_id] = [task.execute(dataset).json() for task in plan.tasks]
        return {leaf: results for leaf, results in found.items() if results}

    def compact(self) -> int | None:
        scan = self.scan()
        rewritten = self.rewritten(scan)
        return self.show(scan, rewritten) if rewritten else None

    def adopt(self) -> int | None:
        return adopt_leaves(self.manifest, self.scan(), misplaced=self.misplaced)

    def misplaced(self, scan: LeafScan) -> dict[str, int]:
        """What tasks of a check count, by leaf."""
        leaves = {leaf.object_id: replace(leaf, checked=True) for leaf in scan.leaves}
        job = MisplacedRowJob(scan.definition, scan.columns_by_id, leaves)
        found: dict[str, int] = {}
        for leaf in scan.leaves:
            dataset = scan.dataset(leaf)
            assert dataset is not None
            rows = dataset.to_table()
            named = rows.append_column(LEAF, pa.array([leaf.object_id] * rows.num_rows))
            found |= {row["leaf"]: row["rows"] for batch in job(named.to_batches()) for row in batch.to_pylist()}
        return found

    def clean_up(
        self, keep_last: int | None = None, moment: datetime | None = None, dry_run: bool = False
    ) -> list[CleanedTable]:
        return clean_up(self.manifest, NAME, self.scan().definition, moment, keep_last, dry_run)

    def versions(self) -> list[int]:
        """Those that are kept, the oldest first."""
        return [row.version for row in version_rows(self.manifest, NAME)]

    def show(self, scan: LeafScan, rewritten: dict[str, list[str]]) -> int:
        return commit_compaction(self.manifest, scan, rewritten)
