"""Whether leaves are what the manifest says: readable, with the namespace's columns, and rows that belong there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.lance.format.definition import Definition, instants
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaf_columns import same_shape
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.partition_values import field_texts, source_array
from penstock.lance.reading.leaf_pruning import Pruner
from penstock.lance.reading.leaf_scan import LEAF, Scan
from penstock.partitioning import Bucket, Hash, Unknown
from penstock.partitioning.arrow import plain, stored_form
from penstock.predicates import And, ColumnIn
from penstock.predicates.domains import within
from penstock.predicates.values import NAN, NULL, Scalar, ValueSet
from penstock.schema.columns import Column
from penstock.spark.file_tasks import original_errors
from penstock.spark.workers import map_in_workers

REPORT = "leaf string, problem string, rows bigint, detail string"
_COUNTED = "leaf string, rows bigint"
_COUNTED_ARROW = pa.schema([("leaf", pa.string()), ("rows", pa.int64())])
_THREADS = 8


class Finding(NamedTuple):
    """Something that is wrong with a leaf."""

    leaf: str
    problem: str
    rows: int | None
    detail: str


@dataclass(frozen=True)
class CheckJob:
    """Rows of the partition columns, with the leaf of each, in; how many of a leaf's rows do not belong there out."""

    definition: Definition
    columns: Mapping[int, Column]
    leaves: Mapping[str, Leaf]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wrong: Counter[str] = Counter()
        for batch in batches:
            leaves = batch.column(batch.schema.get_field_index(LEAF))
            for leaf in pc.unique(leaves).to_pylist():
                wrong[leaf] += self._misplaced(batch.filter(pc.equal(leaves, leaf)), self.leaves[leaf])
        found = [{"leaf": leaf, "rows": rows} for leaf, rows in wrong.items() if rows]
        yield pa.RecordBatch.from_pylist(found, schema=_COUNTED_ARROW)

    def _misplaced(self, rows: pa.RecordBatch, leaf: Leaf) -> int:
        if leaf.values is None:
            return 0
        types = {number: column.type for number, column in self.columns.items()}
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        wrong = doubtful = pa.array([False] * rows.num_rows)
        for field, value in zip(self.definition.fields, leaf.values, strict=True):
            hashed = isinstance(field.transform, Bucket | Hash)
            if isinstance(field.transform, Unknown) or (hashed and not (leaf.own and field.trusted)):
                continue  # nobody can tell
            text = field_texts(columns, self.definition, field, types)
            other = pc.is_valid(text) if value is None else pc.fill_null(pc.not_equal(text, value), True)
            wrong = pc.or_(wrong, other) if hashed else wrong
            doubtful = pc.or_(doubtful, other)
        odd = rows.filter(pc.and_not(doubtful, wrong))
        return int(wrong.true_count) + sum(count for row, count in self._distinct(odd) if not self._belongs(row, leaf))

    def _distinct(self, rows: pa.RecordBatch) -> list[tuple[Mapping[int, Scalar], int]]:
        """The values that partitions are made of, by their columns, and how many rows have them."""
        ids = self._plain_sources()
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        arrays = [
            stored_form(plain(source_array(columns, self.definition, number)), instants(self.columns[number].type))
            for number in ids
        ]
        values = zip(*(array.to_pylist() for array in arrays), strict=True) if arrays else [()] * rows.num_rows
        return [(dict(zip(ids, row, strict=True)), count) for row, count in Counter(values).items()]

    def _plain_sources(self) -> list[int]:
        """The columns whose values filters can be made of; of lists and structs there are hashes alone."""
        sources = dict.fromkeys(number for field in self.definition.fields for number in field.sources)
        return [number for number in sources if not self.columns[number].children]

    def _belongs(self, row: Mapping[int, Scalar], leaf: Leaf) -> bool:
        """Whether a filter that only this row passes would read its leaf: names can be spelled in several ways."""
        wanted = And(tuple(ColumnIn(self.columns[number], "", self._alone(number, row[number])) for number in row))
        return bool(Pruner(self.definition.fields, self.columns).kept([leaf], wanted))

    def _alone(self, number: int, value: Scalar) -> ValueSet:
        if value is None:
            return NULL
        return NAN if value != value else within(ValueSet.points([value]), instants(self.columns[number].type))


def misplaced_rows(scan: Scan) -> dict[str, int]:
    """How many rows of each leaf do not belong there, counted by Spark's tasks, of the leaves that have such rows."""
    leaves = {leaf.object_id: replace(leaf, checked=True) for leaf in scan.leaves}
    names = dict.fromkeys(
        scan.definition.source(number).path[0] for field in scan.definition.fields for number in field.sources
    )
    job = CheckJob(scan.definition, scan.columns_by_id, leaves)
    rows = scan.frame(addresses=True).select(*(f"`{name}`" for name in names), LEAF)
    with original_errors():
        counted = map_in_workers(rows, job, _COUNTED).groupBy("leaf").sum("rows").collect()
    return {row[0]: row[1] for row in counted}


def leaves_to_align(scan: Scan) -> list[Leaf]:
    """Leaves whose columns are not the namespace's, or with rows that do not belong there, or may not."""
    with ThreadPoolExecutor(_THREADS) as pool:
        datasets = list(pool.map(scan.dataset, scan.leaves))
    there = [(leaf, dataset) for leaf, dataset in zip(scan.leaves, datasets, strict=True) if dataset is not None]
    others = [leaf for leaf, _ in there if not leaf.own]
    misplaced = misplaced_rows(scan.only(others)) if others else {}
    return [
        leaf
        for leaf, dataset in there
        if not leaf.checked
        or leaf.object_id in misplaced
        or not same_shape(scan.definition, dataset.schema, scan.columns_of(leaf, dataset))
    ]


def findings(scan: Scan) -> list[Finding]:
    """All that is wrong, leaf by leaf."""
    with ThreadPoolExecutor(_THREADS) as pool:
        seen = list(pool.map(lambda leaf: _looked_at(scan, leaf), scan.leaves))
    found = [finding for findings, _ in seen for finding in findings]
    readable = [leaf for leaf, (_, is_readable) in zip(scan.leaves, seen, strict=True) if is_readable]
    for leaf, rows in sorted(misplaced_rows(scan.only(readable)).items()) if readable else []:
        detail = "their partition values are not the leaf's: align() moves them to their leaves"
        found.append(Finding(leaf, "misplaced rows", rows, detail))
    return sorted(found, key=lambda one: (one.leaf, one.problem))


def _looked_at(scan: Scan, leaf: Leaf) -> tuple[list[Finding], bool]:
    """What is wrong with a leaf apart from its rows, and whether those can be read."""
    try:
        dataset = scan.dataset(leaf)
        if dataset is None:
            return [], False
        columns = scan.columns_of(leaf, dataset)
    except PenstockError as error:
        return [Finding(leaf.object_id, "unreadable", None, str(error))], False
    found = []
    odd = _odd_columns(scan.definition, dataset.schema, columns)
    if odd:
        found.append(Finding(leaf.object_id, "columns", None, f"{'; '.join(odd)}: align() gives it the namespace's"))
    if leaf.version and dataset.latest_version != leaf.version:
        detail = f"readers see version {leaf.version} of {dataset.latest_version}: adopt() shows the newest"
        found.append(Finding(leaf.object_id, "not adopted", None, detail))
    return found, True


def _odd_columns(definition: Definition, leaf: pa.Schema, columns: Mapping[int, str]) -> list[str]:
    odd: list[str] = []
    for item in definition.schema:
        name = columns.get(field_id(item))
        if name is None:
            odd.append(f"{item.name} is missing")
        elif leaf.field(name).type != item.type:
            odd.append(f"{name} is {leaf.field(name).type}, not {item.type}")
        elif name != item.name:
            odd.append(f"{item.name} is called {name}")
    shown = {columns.get(field_id(item)) for item in definition.schema}
    return [*odd, *(f"{name} is not the namespace's" for name in leaf.names if name not in shown)]
