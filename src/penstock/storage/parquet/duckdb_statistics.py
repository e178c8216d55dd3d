"""Collects the statistics of a file that DuckDB wrote, from what COPY returns of it and from the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, VariantStatistics
from penstock.schema.types import Order
from penstock.storage.duckdb_sql import duckdb_quoted, ducklake_type
from penstock.storage.parquet.observations import copy_observations
from penstock.storage.parquet.texts import bound_texts, geometry_extra

_NAME = re.compile(r'"((?:[^"]|"")*)"')
_VARIANT_NULL = "00"
Answer = Mapping[str, str]


class DuckDBStatistics:
    """The statistics of one file, from what COPY returns; where the rows are at hand, they correct it.

    Where they are not, `with_nan` are the columns and fields that may have NaN.
    """

    def __init__(
        self,
        columns: tuple[Column, ...],
        answers: Mapping[str, Answer],
        rows: pa.Table | None = None,
        with_nan: Collection[int] = (),
    ) -> None:
        self._with_nan = with_nan
        self._columns = columns
        self._answers = answers
        self._observed = copy_observations(columns) if rows is not None else None
        if self._observed is not None:
            self._observed.add(rows)

    def columns(self) -> tuple[ColumnStatistics, ...]:
        """The statistics of every leaf."""
        return tuple(self._leaf(leaf, path) for leaf, path in _paths(self._columns))

    def variants(self) -> tuple[VariantStatistics, ...]:
        """The statistics of the paths inside variants that the file stores as types of their own."""
        found = (_variants(column, self._answers) for column in self._columns if column.type.name == "variant")
        return tuple(item for items in found for item in items)

    def _leaf(self, leaf: Column, path: str) -> ColumnStatistics:
        if leaf.type.name == "variant":
            return self._variant(leaf, path)
        answer = self._answers.get(path, {})
        values, nulls = self._counts(leaf, answer)
        minimum, maximum = answer.get("min"), answer.get("max")
        with_nan = leaf.id in self._with_nan  # COPY tells of the last row group alone
        if leaf.type.name in ("int128", "uint128"):  # kept as floats, whose texts are not those of integers
            minimum = maximum = None
        if self._observed is not None and leaf.type.order in (Order.FLOAT, Order.DECIMAL):
            known = self._observed.bounds.get(leaf.id)
            minimum, maximum = bound_texts(leaf.type, *known) if known else (None, None)
            with_nan = leaf.id in self._observed.with_nan
        return ColumnStatistics(
            column_id=leaf.id,
            size=int(answer.get("column_size_bytes", 0)),
            value_count=values,
            null_count=nulls,
            minimum=minimum if leaf.type.order is not Order.NONE else None,
            maximum=maximum if leaf.type.order is not Order.NONE else None,
            contains_nan=with_nan if leaf.type.order is Order.FLOAT else None,
            extra=_geometry(answer) if leaf.type.name == "geometry" else None,
        )

    def _counts(self, leaf: Column, answer: Answer) -> tuple[int | None, int | None]:
        """How many values and NULLs there are; of some types COPY does not tell."""
        if self._observed is not None:
            return self._observed.counts[leaf.id]
        total, nulls = int(answer.get("num_values", 0)), int(answer.get("null_count", 0))
        return (total - nulls, nulls) if total else (None, None)

    def _variant(self, leaf: Column, path: str) -> ColumnStatistics:
        """A NULL is written as the variant's own null, and so counts as a value."""
        metadata = self._answers[f'{path}."metadata"']
        parts = [answer for name, answer in self._answers.items() if name.startswith(f"{path}.")]
        shredded = _variants(leaf, self._answers)
        nulls = int(metadata.get("null_count", 0))
        return ColumnStatistics(
            column_id=leaf.id,
            size=sum(int(answer["column_size_bytes"]) for answer in parts),
            value_count=int(metadata["num_values"]) - nulls,
            null_count=nulls,
            extra=json.dumps([_described(item) for item in shredded], separators=(",", ":")) if shredded else None,
        )


def _paths(columns: tuple[Column, ...], above: str = "") -> Iterator[tuple[Column, str]]:
    """Each leaf with the name that COPY gives it."""
    for column in columns:
        path = f"{above}{duckdb_quoted(column.name)}"
        if column.type.nested:
            yield from _paths(column.children, f"{path}.")
        else:
            yield column, path


def _geometry(answer: Answer) -> str:
    box = {name.removeprefix("bbox_"): float(value) for name, value in answer.items() if name.startswith("bbox_")}
    types = answer.get("geo_types", "[]").strip("[]")
    return geometry_extra(box, types.split(", ") if types else ())


def _variants(column: Column, answers: Mapping[str, Answer]) -> list[VariantStatistics]:
    """The paths inside a variant that every row of the file has as the same type, or not at all."""
    root = duckdb_quoted(column.name)
    layout = answers[f'{root}."metadata"'].get("variant_type")
    if layout is None:
        return []
    kind = duckdb.sqltype(layout)
    found = []
    for name, answer in answers.items():
        names = [part.replace('""', '"') for part in _NAME.findall(name)]
        if names[0] != column.name or names[-1] != "typed_value" or not name.startswith(f"{root}."):
            continue
        untyped = answers.get(".".join(map(duckdb_quoted, [*names[:-1], "value"])))
        if untyped is not None and _all_null(untyped):
            path, shredded = _shredded(kind, names[2:-1:2])
            found.append(VariantStatistics(path, shredded, _field_statistics(column, answer)))
    return found


def _all_null(answer: Answer) -> bool:
    return answer.get("null_count") == answer.get("num_values") or (
        answer.get("min") == answer.get("max") == _VARIANT_NULL
    )


def _shredded(kind: DuckDBPyType, names: list[str]) -> tuple[str, str]:
    """The catalog's name of a path, and the DuckLake type of what it leads to."""
    path: list[str] = []
    kind = _typed_value(kind)
    for name in names:
        if kind.id == "list":
            path.append("element")
            kind = _typed_value(_children(kind)["child"])
        else:
            path.append(duckdb_quoted(name))
            kind = _typed_value(_children(kind)[name])
    return ".".join(path) or "root", ducklake_type(str(kind))


def _typed_value(kind: DuckDBPyType) -> DuckDBPyType:
    typed: DuckDBPyType = _children(kind)["typed_value"]
    return typed


def _children(kind: DuckDBPyType) -> dict[str, Any]:
    return dict(kind.children)


def _field_statistics(column: Column, answer: Answer) -> ColumnStatistics:
    nulls = int(answer.get("null_count", 0))
    return ColumnStatistics(
        column_id=column.id,
        size=int(answer["column_size_bytes"]),
        value_count=int(answer["num_values"]) - nulls,
        null_count=nulls,
        minimum=answer.get("min"),
        maximum=answer.get("max"),
        contains_nan=answer["has_nan"] == "true" if "has_nan" in answer else None,
    )


def _described(item: VariantStatistics) -> dict[str, Any]:
    """One path as the JSON that the extension keeps beside the column."""
    known = item.statistics
    described: dict[str, Any] = {
        "field_name": item.path,
        "shredded_type": item.shredded_type,
        "null_count": known.null_count,
        "min": known.minimum,
        "max": known.maximum,
        "num_values": (known.value_count or 0) + (known.null_count or 0),
        "contains_nan": known.contains_nan,
        "column_size_bytes": known.size,
        "any_valid": True,
    }
    return {name: value for name, value in described.items() if value is not None}
