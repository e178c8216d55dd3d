"""Finds out what files really hold, where the catalog does not tell: Spark's workers read their footers, once.

DuckLake lets an added file be of another width than its table: a timestamp in nanoseconds under a column of
microseconds, or of microseconds under one of seconds, a uint8 under a uint64. And a file of the snapshot that changed a
column may have been written before or after the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.files import DataFile
from penstock.ducklake.reading.row_conversion import (
    Conversion,
    instant_from_nanoseconds,
    local_timestamp,
    nanoseconds_of,
    promoted,
    rounded_timestamp,
    timestamp_from_nanoseconds,
)
from penstock.partitioning.arrow import COARSE
from penstock.schema.columns import Column
from penstock.schema.types import Type, parse_type
from penstock.spark.workers import map_in_workers
from penstock.storage.filesystems import open_file

_MOST_TASKS = 200
_TIMESTAMPS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz")
_UNSURE = (*_TIMESTAMPS, "uint64")
_ANSWER = T.StructType().add("file", T.LongType()).add("answer", T.StringType())
# DuckLake's types that can be promoted, by Arrow's names of what a file holds.
_HELD = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float": "float32", "double": "float64", "bool": "boolean", "date32[day]": "date", "timestamp[us]": "timestamp",
}  # fmt: skip
# What Spark does not read as a local timestamp of microseconds by itself.
_TO_MICROSECONDS = {
    "int96": Conversion(T.TimestampType(), local_timestamp),
    "timestamp[ns]": Conversion(T.LongType(), timestamp_from_nanoseconds),
}
_INSTANT_OF_NANOSECONDS = "timestamp[ns, tz=UTC]"
Question = Callable[[pq.ParquetFile], Mapping[int, str]]


def unsure_columns(columns: Sequence[Column]) -> list[Column]:
    """The columns and fields whose type leaves open what a file holds."""
    return [item for column in columns for item in column.walk() if item.type.name in _UNSURE]


def file_kinds(
    spark: SparkSession, columns: Sequence[Column], names: Mapping[int, str], files: Sequence[DataFile]
) -> dict[int, str]:
    """For each file, as JSON, the kind of value it holds for each of the unsure columns by id."""
    return _asked(spark, files, partial(_kinds_in, columns=tuple(columns), names=dict(names)))


def _asked(spark: SparkSession, files: Sequence[DataFile], question: Question) -> dict[int, str]:
    if not files:
        return {}
    paths = spark.createDataFrame([(file.id, file.path) for file in files], "file long, location string")
    jobs = paths.repartition(min(len(files), _MOST_TASKS))
    rows = map_in_workers(jobs, partial(_read_footers, question=question), _ANSWER).collect()
    return {row["file"]: row["answer"] for row in rows}


def field_types(spark: SparkSession, ids: Sequence[int], files: Sequence[DataFile]) -> dict[int, str]:
    """For each file, as JSON, DuckLake's types of those of these columns and fields that it holds, by field id.

    Types that nothing is promoted from are left empty.
    """
    return _asked(spark, files, partial(_types_in, ids=frozenset(ids)))


def bare_columns(spark: SparkSession, files: Sequence[DataFile]) -> dict[int, str]:
    """For each file, as JSON, the names of its columns by position, or nothing where they have field ids."""
    return _asked(spark, files, _names_without_ids)


def names_of(bare: str) -> tuple[str, ...]:
    """What `bare_columns` says of one file."""
    named: dict[str, str] = json.loads(bare)
    return tuple(named[str(position)] for position in range(len(named)))


def types_of(held: str) -> dict[int, Type | None]:
    """What `field_types` says of one file."""
    return {int(column_id): parse_type(kind) if kind else None for column_id, kind in json.loads(held).items()}


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
    if column_type == "timestamptz":
        wide = kind == _INSTANT_OF_NANOSECONDS
        return Conversion(T.LongType(), instant_from_nanoseconds) if wide else None
    if column_type == "timestamp_ns":
        return _to_nanoseconds(kind, nanoseconds)
    read = _TO_MICROSECONDS.get(kind)
    if column_type not in COARSE or (column_type, kind) == ("timestamp_ms", "timestamp[ms]"):
        return read
    exact = read or Conversion(T.TimestampNTZType(), lambda value: value)
    return Conversion(exact.read, lambda value: rounded_timestamp(exact.convert(value), COARSE[column_type]))


def _to_nanoseconds(kind: str, shown: bool) -> Conversion | None:
    match kind:
        case "timestamp[ns]":
            return None
        case "int96":
            return Conversion(T.TimestampType(), partial(local_timestamp, nanoseconds=shown))
        case _:
            return Conversion(T.TimestampNTZType(), nanoseconds_of if shown else lambda value: value)


def _read_footers(batches: Iterable[pa.RecordBatch], question: Question) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        files, answers = batch["file"].to_pylist(), []
        for path in batch["location"].to_pylist():
            with open_file(path) as source:
                answers.append(json.dumps(question(pq.ParquetFile(source)), sort_keys=True))
        yield pa.RecordBatch.from_arrays(
            [pa.array(files, pa.int64()), pa.array(answers, pa.string())], names=_ANSWER.names
        )


def _names_without_ids(file: pq.ParquetFile) -> dict[int, str]:
    """Like DuckDB, take a file by position where one of its columns has no field id."""
    fields = list(file.schema_arrow)
    if all(b"PARQUET:field_id" in (field.metadata or {}) for field in fields):
        return {}
    return {position: field.name for position, field in enumerate(fields)}


def _types_in(file: pq.ParquetFile, ids: frozenset[int]) -> dict[int, str]:
    found: dict[int, str] = {}

    def visit(fields: Iterable[pa.Field]) -> None:
        for field in fields:
            number = int((field.metadata or {}).get(b"PARQUET:field_id", -1))
            if number in ids:
                found[number] = _HELD.get(str(field.type), "")
            visit(_children(field.type))

    visit(file.schema_arrow)
    return found


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return [kind.field(position) for position in range(kind.num_fields)]
    return []


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
