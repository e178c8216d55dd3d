"""The rows of a Delta table: Spark's own Parquet scan, with the log's partition values as constants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.log.actions import AddFile
from penstock.delta.log.deletion_vectors import positions
from penstock.delta.log.schema import TableSchema, with_nulls
from penstock.delta.log.values import from_text, to_text
from penstock.delta.reading.file_skipping import Skipping
from penstock.predicates import Implication, Nothing, implied_by
from penstock.schema.columns import Column
from penstock.spark.expressions import spark_quoted
from penstock.spark.jvm import file_index
from penstock.spark.pushdown import FilterRecorder, row_filters
from penstock.spark.relation import ROW_INDEX, file_records, parquet_rows
from penstock.spark.workers import map_in_workers
from penstock.storage.paths import folder, is_local

FILE, POSITION = "_penstock_file", "_penstock_position"
_VECTOR = "file bigint, storage string, path string, offset bigint, size bigint, cardinality bigint"
_POSITIONS = f"{FILE} bigint, {POSITION} bigint"
_POSITIONS_ARROW = pa.schema([(FILE, pa.int64()), (POSITION, pa.int64())])


@dataclass(frozen=True)
class Scan:
    """Some files of a table at one version."""

    spark: SparkSession
    root: str
    schema: TableSchema
    files: tuple[AddFile, ...]

    def only(self, files: Iterable[AddFile]) -> Scan:
        return replace(self, files=tuple(files))

    def frame(self, *, with_file: bool = False) -> DataFrame:
        """The rows, in the table's columns; `with_file`, and the number of the file that each is in."""
        plain = [number for number, file in enumerate(self.files) if file.deletion_vector is None]
        thinned = [number for number, file in enumerate(self.files) if file.deletion_vector is not None]
        branches = [self._rows(plain, with_file)]
        if thinned:
            branches.append(self._thinned(thinned, with_file))
        return reduce(DataFrame.union, branches)

    def implied(self, predicate: SparkColumn) -> Implication:
        """What a predicate implies for the rows that pass it; no file is read."""
        recorder = FilterRecorder()
        nothing = file_index(self.spark, recorder, T.StructType([]), {}, 1, "nothing")
        plain = [T.StructField(item.name, with_nulls(item.dataType)) for item in self.schema.struct.fields]
        parquet_rows(self.spark, nothing, T.StructType(plain)).where(predicate).collect()
        if recorder.filters is None:
            return Nothing()  # Spark has found that no row can pass
        return implied_by([json.dumps(item) for item in recorder.filters], self.columns)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.schema.columns(self.spark)

    @cached_property
    def skipping(self) -> Skipping:
        """For predicates over the table's columns."""
        partitions: dict[int, tuple[str, str]] = {}
        paths: dict[int, tuple[str, ...]] = {}
        for column, item in zip(self.columns, self.schema.struct.fields, strict=True):
            if item.name in self.schema.partition_columns:
                partitions[column.id] = self.schema.physical_name(item), type_name(item)
            else:
                paths.update(_paths(column, item, self.schema, ()))
        return Skipping(partitions, paths)

    def path_of(self, file: AddFile) -> str:
        path = file.decoded_path
        return path if path.startswith("/") or not is_local(path) or "://" in path else folder(self.root) + path

    def _rows(self, numbers: Sequence[int], with_file: bool, with_position: bool = False) -> DataFrame:
        constants = T.StructType([T.StructField(_constant(i), T.StringType()) for i in range(self._width)])
        constants = constants.add(FILE, T.LongType())
        planner = _Planner(self, numbers)
        size = sum(self.files[number].size for number in numbers)
        index = file_index(self.spark, planner, constants, {}, size, f"delta {self.root}")
        asked = self.schema.read_schema()
        if with_position:
            asked = T.StructType([*asked.fields, T.StructField(ROW_INDEX, T.LongType())])
        shown = [self._shown(item).alias(item.name) for item in self.schema.struct.fields]
        others = [F.col(FILE)] if with_file or with_position else []
        if with_position:
            others.append(F.col(ROW_INDEX).alias(POSITION))
        return parquet_rows(self.spark, index, asked).select(*shown, *others)

    def _thinned(self, numbers: Sequence[int], with_file: bool) -> DataFrame:
        """The rows of files with deletion vectors, which tasks read."""
        vectors = [(number, *_vector(self.files[number])) for number in numbers]
        tasks = min(len(vectors), self.spark.sparkContext.defaultParallelism)
        given = self.spark.createDataFrame(vectors, _VECTOR).repartition(tasks)
        gone = map_in_workers(given, _VectorReader(self.root), _POSITIONS)
        left = self._rows(numbers, True, with_position=True).join(gone, [FILE, POSITION], "left_anti")
        names = [spark_quoted(item.name) for item in self.schema.struct.fields]
        return left.select(*names, *([FILE] if with_file else []))

    def _shown(self, item: T.StructField) -> SparkColumn:
        if item.name in self.schema.partition_columns:
            text = F.col(_constant(self.schema.partition_columns.index(item.name)))
            return F.unhex(text) if isinstance(item.dataType, T.BinaryType) else text.cast(item.dataType)
        value = F.col(spark_quoted(self.schema.physical_name(item)))
        return value.cast(with_nulls(item.dataType)) if self.schema.mapping != "none" else value

    @property
    def _width(self) -> int:
        return len(self.schema.partition_columns)

    def constants_of(self, number: int) -> tuple[object, ...]:
        file = self.files[number]
        texts = [self._text(file, item) for item in self.schema.partition_fields]
        return *texts, number

    def _text(self, file: AddFile, item: T.StructField) -> str | None:
        """A partition value in the one form that Spark casts right; bytes are hexadecimal."""
        kind = type_name(item)
        value = from_text(file.partition_values.get(self.schema.physical_name(item)), kind)
        return value.hex() if isinstance(value, bytes) else to_text(value, kind)


@dataclass(frozen=True)
class _Planner:
    """Filters on data columns in, files whose statistics allow a match out. Spark itself tests the constants."""

    scan: Scan
    numbers: Sequence[int]

    def __call__(self, filters: str) -> str:
        columns = self.scan.schema.written_columns(self.scan.spark, materialized=False)
        paths = {item.id: path for column in columns for item, path in _walked(column, ())}
        implication = implied_by(_each(filters), columns)
        skipping = Skipping({}, paths)
        kept = (number for number in self.numbers if skipping.can_hold(self.scan.files[number], implication))
        return file_records(
            (self.scan.path_of(self.scan.files[number]), self.scan.files[number].size, self.scan.constants_of(number))
            for number in kept
        )


@dataclass(frozen=True)
class _VectorReader:
    """Rows of a deletion vector's descriptor in, the positions that it deletes out."""

    root: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for one in batch.to_pylist():
                descriptor = one["storage"], one["path"], one["offset"], one["size"], one["cardinality"]
                found = pa.array(positions(*descriptor, self.root), pa.int64())
                file = pa.repeat(pa.scalar(one["file"], pa.int64()), len(found))
                yield pa.RecordBatch.from_arrays([file, found], schema=_POSITIONS_ARROW)


def type_name(item: T.StructField) -> str:
    """The name of a primitive type in Delta's schemas."""
    return str(item.dataType.jsonValue())


def _constant(number: int) -> str:
    return f"_penstock_partition{number}"


def _each(filters: str) -> list[str]:
    return [json.dumps(item) for item in row_filters(filters)]


def _vector(file: AddFile) -> tuple[object, ...]:
    vector = file.deletion_vector
    assert vector is not None  # or the file would be read as it is
    return (
        vector.storage_type,
        vector.path_or_inline_dv,
        vector.offset,
        vector.size_in_bytes,
        vector.cardinality,
    )


def _walked(column: Column, above: tuple[str, ...]) -> Iterator[tuple[Column, tuple[str, ...]]]:
    path = (*above, column.name)
    if column.type.name == "struct":
        for child in column.children:
            yield from _walked(child, path)
    else:
        yield column, path


def _paths(
    column: Column, item: T.StructField, schema: TableSchema, above: tuple[str, ...]
) -> Mapping[int, tuple[str, ...]]:
    """Where the statistics of a column, or of the fields of a struct, are."""
    path = (*above, schema.physical_name(item))
    if not isinstance(item.dataType, T.StructType):
        return {column.id: path}
    found: dict[int, tuple[str, ...]] = {}
    for child, inner in zip(column.children, item.dataType.fields, strict=True):
        found.update(_paths(child, inner, schema, path))
    return found
