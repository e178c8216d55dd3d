"""Counts the rows of leaves whose partition values are not the leaf's, in Spark's tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.leaves import Leaf
from penstock.lance.format.partition_fields import transform_type
from penstock.lance.format.partition_values import field_texts, source_array
from penstock.lance.reading.leaf_pruning import LeafPruner
from penstock.lance.reading.leaf_scan import LEAF, LeafScan
from penstock.partitioning import Bucket, Hash, Unknown
from penstock.partitioning.arrow import plain, stored_form
from penstock.predicates import And, ColumnIn
from penstock.predicates.domains import within
from penstock.predicates.values import NAN, NULL, Scalar, ValueSet
from penstock.schema.columns import Column
from penstock.spark.file_tasks import original_errors
from penstock.spark.workers import map_in_workers

_COUNTED = "leaf string, rows bigint"
_COUNTED_ARROW = pa.schema([("leaf", pa.string()), ("rows", pa.int64())])


@dataclass(frozen=True)
class MisplacedRowJob:
    """Takes rows of the partition columns with the leaf of each, returns how many do not belong in theirs."""

    definition: NamespaceDefinition
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
        """The number of rows whose values are none of the leaf's, by any reading of its name."""
        if leaf.values is None:
            return 0
        types = {number: column.type for number, column in self.columns.items()}
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        wrong = doubtful = pa.array([False] * rows.num_rows)
        for field, value in zip(self.definition.fields, leaf.values, strict=True):
            hashed = isinstance(field.transform, Bucket | Hash)
            if isinstance(field.transform, Unknown) or (hashed and not (leaf.is_own and field.trusted)):
                continue  # nobody can tell
            text = field_texts(columns, self.definition, field, types)
            other = pc.is_valid(text) if value is None else pc.fill_null(pc.not_equal(text, value), True)
            wrong = pc.or_(wrong, other) if hashed else wrong
            doubtful = pc.or_(doubtful, other)
        doubtful_rows = rows.filter(pc.and_not(doubtful, wrong))
        return int(wrong.true_count) + sum(
            count for row, count in self._distinct_sources(doubtful_rows) if not self._belongs(row, leaf)
        )

    def _distinct_sources(self, rows: pa.RecordBatch) -> list[tuple[Mapping[int, Scalar], int]]:
        """The distinct values that partitions are made of, by column id, and how many rows have them."""
        ids = self._plain_sources()
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        arrays = [
            stored_form(
                plain(source_array(columns, self.definition, number)), transform_type(self.columns[number].type)
            )
            for number in ids
        ]
        values = zip(*(array.to_pylist() for array in arrays), strict=True) if arrays else [()] * rows.num_rows
        return [(dict(zip(ids, row, strict=True)), count) for row, count in Counter(values).items()]

    def _plain_sources(self) -> list[int]:
        """The ids of columns that filters can be made of; of lists and structs there are hashes alone."""
        sources = dict.fromkeys(number for field in self.definition.fields for number in field.sources)
        return [number for number in sources if not self.columns[number].children]

    def _belongs(self, row: Mapping[int, Scalar], leaf: Leaf) -> bool:
        """Whether a filter that only this row passes would read its leaf: names can be spelled in several ways."""
        wanted = And(tuple(ColumnIn(self.columns[number], "", self._value_set(number, row[number])) for number in row))
        return bool(LeafPruner(self.definition.fields, self.columns).kept([leaf], wanted))

    def _value_set(self, number: int, value: Scalar) -> ValueSet:
        if value is None:
            return NULL
        return NAN if value != value else within(ValueSet.points([value]), transform_type(self.columns[number].type))


def misplaced_rows(scan: LeafScan) -> dict[str, int]:
    """The number of rows of each leaf that do not belong there, counted by Spark's tasks; only of leaves with any."""
    leaves = {leaf.object_id: replace(leaf, checked=True) for leaf in scan.leaves}
    names = dict.fromkeys(
        scan.definition.source(number).path[0] for field in scan.definition.fields for number in field.sources
    )
    job = MisplacedRowJob(scan.definition, scan.columns_by_id, leaves)
    rows = scan.frame(addresses=True).select(*(f"`{name}`" for name in names), LEAF)
    with original_errors():
        counted = map_in_workers(rows, job, _COUNTED).groupBy("leaf").sum("rows").collect()
    return {row[0]: row[1] for row in counted}
