"""Reads rows by Spark's own Parquet scan, with the log's partition values as constants of each file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import AddFile
from penstock.delta.format.partition_values import from_text, to_text
from penstock.delta.format.schema import TableSchema, type_name, with_nulls
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.reading.deleted_positions import FILE_NUMBER, POSITION, deleted_rows
from penstock.delta.reading.file_skipping import FileSkipping
from penstock.predicates import Implication, Nothing, implied_by
from penstock.schema.columns import Column
from penstock.spark.expressions import spark_quoted
from penstock.spark.file_records import file_records
from penstock.spark.jvm import file_index
from penstock.spark.parquet_options import ROW_INDEX
from penstock.spark.pushdown import FilterRecorder, row_filters
from penstock.spark.relation import parquet_rows
from penstock.storage.paths import folder, is_local


@dataclass(frozen=True)
class FileScan:
    """Reads some files of a table at one version."""

    spark: SparkSession
    root: str
    schema: TableSchema
    files: tuple[AddFile, ...]

    @classmethod
    def of(cls, spark: SparkSession, log: TableLog, snapshot: LogSnapshot) -> FileScan:
        """Returns the scan of all files of a version."""
        return cls(spark, log.root, TableSchema.of(snapshot.metadata), tuple(snapshot.files.values()))

    def only(self, files: Iterable[AddFile]) -> FileScan:
        """Returns the scan of some of the files."""
        return replace(self, files=tuple(files))

    def frame(self, *, with_file: bool = False) -> DataFrame:
        """Returns the rows in the table's columns, and `with_file` the number of the file that each is in."""
        plain = [number for number, file in enumerate(self.files) if file.deletion_vector is None]
        with_vector = [number for number, file in enumerate(self.files) if file.deletion_vector is not None]
        branches = [self._rows(plain, with_file)]
        if with_vector:
            branches.append(self._rows_left(with_vector, with_file))
        return reduce(DataFrame.union, branches)

    def implied(self, predicate: SparkColumn) -> Implication:
        """Returns what a predicate implies for the rows that pass it; no file is read."""
        recorder = FilterRecorder()
        nothing = file_index(self.spark, recorder, T.StructType([]), {}, 1, "nothing")
        plain = [T.StructField(item.name, with_nulls(item.dataType)) for item in self.schema.struct.fields]
        parquet_rows(self.spark, nothing, T.StructType(plain)).where(predicate).collect()
        if recorder.filters is None:
            return Nothing()  # Spark has found that no row can pass
        return implied_by([json.dumps(item) for item in recorder.filters], self.columns)

    def file_test(self, predicate: SparkColumn) -> Callable[[AddFile], bool]:
        """Returns a function that tells whether a file can hold a row that a predicate is true for."""
        implication = self.implied(predicate)
        return lambda file: self.skipping.can_hold(file, implication)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The table's columns in Penstock's types."""
        return self.schema.columns(self.spark)

    @cached_property
    def skipping(self) -> FileSkipping:
        """Decides on files by predicates over the table's columns."""
        return FileSkipping.of_table(self.schema, self.columns)

    def path_of(self, file: AddFile) -> str:
        """Returns the absolute path of a file."""
        path = file.decoded_path
        return path if path.startswith("/") or not is_local(path) or "://" in path else folder(self.root) + path

    def _rows(self, numbers: Sequence[int], with_file: bool, with_position: bool = False) -> DataFrame:
        width = len(self.schema.partition_columns)
        constants = T.StructType([T.StructField(_constant(i), T.StringType()) for i in range(width)])
        constants = constants.add(FILE_NUMBER, T.LongType())
        planner = _FilePlanner(self, numbers)
        size = sum(self.files[number].size for number in numbers)
        index = file_index(self.spark, planner, constants, {}, size, f"delta {self.root}")
        asked = self.schema.read_schema()
        if with_position:
            asked = T.StructType([*asked.fields, T.StructField(ROW_INDEX, T.LongType())])
        shown = [self._shown(item).alias(item.name) for item in self.schema.struct.fields]
        others = [F.col(FILE_NUMBER)] if with_file or with_position else []
        if with_position:
            others.append(F.col(ROW_INDEX).alias(POSITION))
        return parquet_rows(self.spark, index, asked).select(*shown, *others)

    def _rows_left(self, numbers: Sequence[int], with_file: bool) -> DataFrame:
        """Returns the rows of files with deletion vectors, without the deleted ones; tasks read the vectors."""
        deleted = deleted_rows(self.spark, self.root, {number: self.files[number] for number in numbers})
        left = self._rows(numbers, True, with_position=True).join(deleted, [FILE_NUMBER, POSITION], "left_anti")
        names = [spark_quoted(item.name) for item in self.schema.struct.fields]
        return left.select(*names, *([FILE_NUMBER] if with_file else []))

    def _shown(self, item: T.StructField) -> SparkColumn:
        if item.name in self.schema.partition_columns:
            text = F.col(_constant(self.schema.partition_columns.index(item.name)))
            return F.unhex(text) if isinstance(item.dataType, T.BinaryType) else text.cast(item.dataType)
        value = F.col(spark_quoted(self.schema.physical_name(item)))
        return value.cast(with_nulls(item.dataType)) if self.schema.mapping != "none" else value

    def constants_of(self, number: int) -> tuple[object, ...]:
        """Returns the constants of a file: the texts of its partition values, and its number."""
        file = self.files[number]
        texts = [self._text(file, item) for item in self.schema.partition_fields]
        return *texts, number

    def _text(self, file: AddFile, item: T.StructField) -> str | None:
        """Returns a partition value in the one form that Spark casts right; bytes are hexadecimal."""
        kind = type_name(item)
        value = from_text(file.partition_values.get(self.schema.physical_name(item)), kind)
        return value.hex() if isinstance(value, bytes) else to_text(value, kind)


@dataclass(frozen=True)
class _FilePlanner:
    """Chooses the files whose statistics allow a match with Spark's filters; Spark itself tests the constants."""

    scan: FileScan
    numbers: Sequence[int]

    def __call__(self, filters: str) -> str:
        columns = self.scan.schema.written_columns(self.scan.spark, materialized=False)
        implication = implied_by([json.dumps(item) for item in row_filters(filters)], columns)
        skipping = FileSkipping.of_files(columns)
        kept = (number for number in self.numbers if skipping.can_hold(self.scan.files[number], implication))
        return file_records(
            (self.scan.path_of(self.scan.files[number]), self.scan.files[number].size, self.scan.constants_of(number))
            for number in kept
        )


def _constant(number: int) -> str:
    return f"_penstock_partition{number}"
