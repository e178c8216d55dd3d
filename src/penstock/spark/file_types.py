"""What added files really hold, for the columns whose type does not tell.

DuckLake lets a file be narrower than its table: a timestamp in nanoseconds under a column of microseconds, a uint8
under a uint64. Spark must be asked for what is there, so the files' footers are read once, by Spark's workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.model.columns import Column
from penstock.model.files import DataFile
from penstock.model.types import Type
from penstock.spark.types import Conversion, local_timestamp, nanoseconds_of, promoted, timestamp_from_nanoseconds
from penstock.storage.filesystems import open_file

_MOST_TASKS = 200
_TIMESTAMPS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns")
_UNSURE = (*_TIMESTAMPS, "uint64")
_ANSWER = T.StructType().add("file", T.LongType()).add("kinds", T.StringType())


def unsure_columns(columns: Sequence[Column]) -> list[Column]:
    """The columns and fields whose type leaves open what a file holds."""
    return [item for column in columns for item in column.walk() if item.type.name in _UNSURE]


def file_kinds(
    spark: SparkSession, files: Sequence[DataFile], columns: Sequence[Column], names: Mapping[int, str]
) -> dict[int, str]:
    """For each file, as JSON, the kind of value it holds for each of the unsure columns by id."""
    if not files:
        return {}
    paths = spark.createDataFrame([(file.id, file.path) for file in files], "file long, location string")
    jobs = paths.repartition(min(len(files), _MOST_TASKS))
    rows = jobs.mapInArrow(partial(_read_kinds, columns=tuple(columns), names=dict(names)), _ANSWER).collect()
    return {row["file"]: row["kinds"] for row in rows}


def conversions_for(kinds: str, columns: Sequence[Column], nanoseconds: bool) -> dict[int, Conversion]:
    """How to read the columns of files that hold these kinds."""
    types = {item.id: item.type.name for column in columns for item in column.walk()}
    found = {}
    for column_id, kind in json.loads(kinds).items():
        conversion = _conversion(types[int(column_id)], kind, nanoseconds)
        if conversion is not None:
            found[int(column_id)] = conversion
    return found


def opaque_columns(columns: Sequence[Column], conversions: Mapping[int, Conversion]) -> frozenset[int]:
    """Columns that must not prune: Spark sees their values rounded otherwise than their statistics are."""
    return frozenset(
        column.id
        for column in columns
        if any(item.id in conversions and item.type.name in _TIMESTAMPS for item in column.walk())
    )


def _conversion(column_type: str, kind: str, nanoseconds: bool) -> Conversion | None:
    if column_type == "uint64":
        return promoted(Type(kind), Type("uint64"), nanoseconds) if kind in ("uint8", "uint16", "uint32") else None
    wide = column_type == "timestamp_ns"
    match kind:
        case "int96":
            return Conversion(T.TimestampType(), partial(local_timestamp, nanoseconds=wide and nanoseconds))
        case "timestamp[ns]":
            return None if wide else Conversion(T.LongType(), timestamp_from_nanoseconds)
        case _ if wide:
            return Conversion(T.TimestampNTZType(), nanoseconds_of if nanoseconds else lambda value: value)
        case _:
            return None


def _read_kinds(
    batches: Iterable[pa.RecordBatch], columns: Sequence[Column], names: Mapping[int, str]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        files, kinds = batch["file"].to_pylist(), []
        for path in batch["location"].to_pylist():
            with open_file(path) as source:
                kinds.append(json.dumps(_kinds_in(pq.ParquetFile(source), columns, names), sort_keys=True))
        yield pa.RecordBatch.from_arrays(
            [pa.array(files, pa.int64()), pa.array(kinds, pa.string())], names=_ANSWER.names
        )


def _kinds_in(file: pq.ParquetFile, columns: Sequence[Column], names: Mapping[int, str]) -> dict[int, str]:
    leaves = [file.schema.column(position) for position in range(len(file.schema.names))]
    int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    found: dict[int, str] = {}

    def visit(level: Sequence[Column], fields: Mapping[str, Any], path: str) -> None:
        for column in level:
            name = names.get(column.id, column.name)
            kind = fields.get(name.lower())
            if kind is not None:
                _visit_type(column, kind, f"{path}{name}")

    def _visit_type(column: Column, kind: pa.DataType, path: str) -> None:
        if column.type.name in _UNSURE:
            found[column.id] = "int96" if any(leaf == path for leaf in int96) else str(kind)
        elif pa.types.is_struct(kind):
            visit(column.children, {field.name.lower(): field.type for field in kind}, f"{path}.")
        elif pa.types.is_list(kind):
            _visit_type(column.children[0], kind.value_type, f"{path}.list.element")
        elif pa.types.is_map(kind):
            _visit_type(column.children[0], kind.key_type, f"{path}.key_value.key")
            _visit_type(column.children[1], kind.item_type, f"{path}.key_value.value")

    visit(columns, {field.name.lower(): field.type for field in file.schema_arrow}, "")
    return found
