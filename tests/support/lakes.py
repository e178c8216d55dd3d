"""Random small lakes, with the statistics and partition values that DuckDB's extension would have written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from penstock.partitioning import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    PartitionField,
    PartitionSpec,
    Transform,
    Unknown,
    Year,
)
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type, parse_type
from support.predicate_samples import POOLS, Sample, samples, spark_type
from support.spark_logic import Row, sortable

PARTITION = 7
JUNK = [
    "",
    "abc",
    "5x",
    "--5",
    "1-2",
    "1e999999",
    "infinity",
    "-infinity",
    "2024-13-99x",
    "0044-03-15 (BC)",
    "\\xAA",
    "nan",
    "é",
    "5 5",
]
CUT = 256

Cell = Sample | None


@dataclass
class File:
    """A data file: its rows, a cell a column."""

    id: int
    rows: list[tuple[Cell, ...]]
    partition: list[str | None] | None = None


@dataclass
class Lake:
    """A table of some columns, maybe partitioned, and what its catalog says of its files."""

    types: list[str]
    spec: PartitionSpec | None
    files: list[File]
    statistics: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def columns(self) -> list[Column]:
        return [Column(id, f"c{id}", parse_type(name), 0) for id, name in enumerate(self.types)]

    def shown(self, cells: tuple[Cell, ...]) -> Row:
        return Row(
            {
                (f"c{id}",): (spark_type(name), cell and cell.shown)
                for id, (name, cell) in enumerate(zip(self.types, cells, strict=True))
            }
        )

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        partition = self.spec.partition_id if self.spec else None
        return {
            "ducklake_data_file": [
                (file.id, 1, partition if file.partition is not None else None) for file in self.files
            ],
            "ducklake_file_column_stats": self.statistics,
            "ducklake_file_partition_value": [
                (file.id, 1, index, text) for file in self.files for index, text in enumerate(file.partition or ())
            ],
            "ducklake_column": [(1, id, name) for id, name in enumerate(self.types)],
        }


@st.composite
def lakes(draw: st.DrawFn, names: list[str] | None = None) -> Lake:
    types = draw(st.lists(st.sampled_from(names or sorted(POOLS)), min_size=1, max_size=3))
    cells = [st.sampled_from((None, *samples(name))) for name in types]
    rows = draw(st.lists(st.tuples(*cells), min_size=1, max_size=10))
    spec = draw(st.none() | specs(types))
    lake = Lake(types, spec, split(draw, rows, types, spec))
    lake.statistics = [
        row
        for file in lake.files
        for id, name in enumerate(types)
        if (row := damaged(draw, statistics(file, id, parse_type(name)), parse_type(name))) is not None
    ]
    return lake


@st.composite
def specs(draw: st.DrawFn, types: list[str]) -> PartitionSpec:
    fields = []
    for id, name in enumerate(types):
        options: list[Transform | None] = [None, Identity(), Bucket(2), Bucket(16), Unknown("epoch_day")]
        if parse_type(name).order in (Order.DATE, Order.TIMESTAMP):
            options += [Year(), Month(), Day(), Hour()]
        transform = draw(st.sampled_from(options))
        if transform is not None:
            fields.append(PartitionField(len(fields), id, transform))
    return PartitionSpec(PARTITION, tuple(fields))


def split(draw: st.DrawFn, rows: list[tuple[Cell, ...]], types: list[str], spec: PartitionSpec | None) -> list[File]:
    groups: dict[Any, list[tuple[Cell, ...]]] = {}
    for row in rows:
        key = (
            None
            if spec is None
            else tuple(
                partition_text(f.transform, row[f.column_id], parse_type(types[f.column_id])) for f in spec.fields
            )
        )
        groups.setdefault((key, draw(st.integers(0, 2))), []).append(row)
    return [File(id, group, None if key is None else list(key)) for id, ((key, _), group) in enumerate(groups.items())]


def partition_text(transform: Transform, cell: Cell, type: Type) -> str | None:
    if cell is None:
        return None
    if isinstance(transform, Unknown):
        return "whatever"
    if type.name == "timestamptz" and not isinstance(transform, Bucket):
        return "2001-01-01 00:00:00+00" if isinstance(transform, Identity) else "1"  # of another session's time zone
    if isinstance(transform, Identity):
        return cell.stored.decode("latin-1").replace("\0", "") if type.name == "blob" else cell.text
    return str(transform.apply(cell.stored, type))


def statistics(file: File, id: int, type: Type) -> tuple[Any, ...]:
    cells = [row[id] for row in file.rows]
    known = [cell for cell in cells if cell is not None]
    ordered = sorted((c for c in known if not is_nan(c.stored)), key=lambda c: sortable(c.stored))
    least, greatest = (ordered[0], ordered[-1]) if ordered else (None, None)
    nan = any(is_nan(cell.stored) for cell in known) if type.order is Order.FLOAT else None
    low, high = (statistics_text(one, type, upper) for one, upper in ((least, False), (greatest, True)))
    return (file.id, 1, id, len(known), len(cells) - len(known), low, high, nan)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def statistics_text(cell: Cell, type: Type, upper: bool) -> str | None:
    if cell is None:
        return None
    if type.order is Order.BOOLEAN:
        return "1" if cell.stored else "0"
    if type.order is Order.BYTES:
        return cell.stored.hex().upper()
    if type.order is Order.TEXT and len(cell.text) > CUT:
        return cell.text[: CUT - 1] + (chr(ord(cell.text[CUT - 1]) + 1) if upper else cell.text[CUT - 1])
    return cell.text


def _junk(type: Type) -> list[str]:
    """Texts that are no values of a type. Of times, infinite ones are: such a bound would not be junk, but a lie."""
    return [text for text in JUNK if "infinity" not in text or type.order not in (Order.DATE, Order.TIMESTAMP)]


def damaged(draw: st.DrawFn, row: tuple[Any, ...], type: Type) -> tuple[Any, ...] | None:
    """A row as a foreign writer may leave it: without some of its values, or with text that is none."""
    harm = draw(
        st.sampled_from(
            ["none", "none", "none", "none", "row", "low", "high", "counts", "nan", "junk low", "junk high"]
        )
    )
    file, table, id, values, nulls, low, high, nan = row
    text = type.order in (Order.TEXT, Order.BYTES)
    match harm:
        case "row":
            return None
        case "low":
            low = None
        case "high":
            high = None
        case "counts":
            values = nulls = None
        case "nan":
            nan = None
        case "junk low" if not text:
            low = draw(st.sampled_from(_junk(type)))
        case "junk high" if not text:
            high = draw(st.sampled_from(_junk(type)))
    return file, table, id, values, nulls, low, high, nan
