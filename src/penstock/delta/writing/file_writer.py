"""Writes the rows of a DataFrame to data files, in Spark's tasks, and makes actions for the log of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import AddFile
from penstock.delta.format.features import materializes
from penstock.delta.format.file_paths import log_path, partition_directory
from penstock.delta.format.file_statistics import statistics_json
from penstock.delta.format.partition_values import array_texts
from penstock.delta.format.properties import indexed_columns
from penstock.delta.format.schema import TableSchema, check_column_types, type_name
from penstock.delta.format.times import now_milliseconds
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.row_rules import enforced, failing
from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.schema.statistics import WrittenFile
from penstock.schema.types import Type
from penstock.spark.arrow_transfer import with_decimals_as_longs
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.write_job import Distribution, PartitionKey, WriteJob, distributed, run_write_job
from penstock.storage.parquet import FileOptions, WritePlan

FILE_SIZE = 128 * 2**20
_OPTIONS = FileOptions(target_file_size=FILE_SIZE, row_group_size=1_048_576, row_group_bytes=128 * 2**20)


@dataclass(frozen=True)
class LogTexts:
    """Makes the texts of partition values as the log writes them; '' is NULL."""

    type_name: str

    def values(self, array: pa.Array, type: Type) -> pa.StringArray:
        """Returns the text of each value."""
        return array_texts(array, self.type_name)


@dataclass(frozen=True)
class FileWriter:
    """Writes the files of a table, with or without its partition columns."""

    spark: SparkSession
    root: str
    schema: TableSchema
    materialized: bool
    indexed_columns: int | None  # how many of the first have statistics

    @classmethod
    def of(cls, spark: SparkSession, log: TableLog, snapshot: LogSnapshot) -> FileWriter:
        """Returns the writer of new files after a version; an UnsupportedError names a type that it cannot write."""
        schema = TableSchema.of(snapshot.metadata)
        check_column_types(spark, schema)
        return cls(spark, log.root, schema, materializes(snapshot.protocol), indexed_columns(snapshot.metadata))

    def to_table_columns(self, frame: DataFrame) -> DataFrame:
        """Gives rows the table's columns, which go by name; those that are not given are NULL."""
        given = {name.lower() for name in frame.columns}
        for item in self.schema.struct.fields:
            if not item.nullable and item.name.lower() not in given:
                raise InvalidError(
                    f"{self.root}: column {item.name!r} takes no NULL, and the DataFrame does not give it"
                )
        rows = assigned_rows(frame, self.schema.columns(self.spark), self.root, by_name=True)
        return enforced(rows, self.schema.struct, self.root)

    def write(self, rows: DataFrame, distribution: Distribution = "auto", *, data_change: bool = True) -> list[AddFile]:
        """Writes rows that have the table's columns. When the job fails, its files are gone."""
        ordered = self._in_file_order(rows)
        columns = self.schema.written_columns(self.spark, materialized=True)
        partitions = len(self.schema.partition_columns)
        plan = replace(self.plan(), extra_columns=0 if self.materialized else partitions)
        carried, decimals = with_decimals_as_longs(ordered)
        keys = [F.col(name) for name in carried.columns[len(columns) - partitions :]]
        spread = distributed(carried, keys, FILE_SIZE, distribution)
        job = WriteJob(plan, self._keys(columns), decimals=decimals)
        return [self.added(file, data_change=data_change) for file in run_write_job(spread, job).files]

    def plan(self) -> WritePlan:
        """Returns what tasks must know to write files, from batches with the files' columns and the partition texts."""
        return WritePlan(
            columns=self.schema.written_columns(self.spark, materialized=self.materialized),
            directory=self.root,
            options=_OPTIONS,
            partition_names=tuple(self.schema.partition_types),
            prefix="part-",
            suffix=".c000.snappy",
            field_ids=self.schema.mapping != "none",
            folder=partition_directory,
        )

    def added(self, file: WrittenFile, *, data_change: bool = True) -> AddFile:
        """Returns the action that adds a file which a task has written to the table."""
        return AddFile(
            log_path(file.path),
            dict(zip(self.schema.partition_types, file.partition_values, strict=True)),
            file.size,
            now_milliseconds(),
            data_change,
            statistics_json(file, self._data_columns, self.indexed_columns),
        )

    @cached_property
    def _data_columns(self) -> tuple[Column, ...]:
        return self.schema.written_columns(self.spark, materialized=False)

    def _in_file_order(self, rows: DataFrame) -> DataFrame:
        """Puts the data columns first, then the partition columns, in which '' is NULL: the log has no text for it."""
        fields = [*self.schema.data_fields, *self.schema.partition_fields]
        numbered = rows.toDF(*(f"c{i}" for i in range(len(rows.columns))))
        places = {name: i for i, name in enumerate(self.schema.struct.names)}

        def value(item: T.StructField) -> SparkColumn:
            column = F.col(f"c{places[item.name]}")
            partition = item.name in self.schema.partition_columns
            if partition and isinstance(item.dataType, T.StringType | T.BinaryType):
                column = F.when(F.length(column) > 0, column)
            return column if item.nullable or not partition else F.coalesce(column, self._refused_null(item))

        return numbered.select(*(value(item).alias(f"v{i}") for i, item in enumerate(fields)))

    def _refused_null(self, item: T.StructField) -> SparkColumn:
        return failing(f"{self.root}: column {item.name!r} takes no NULL, nor ''", item.dataType)

    def _keys(self, columns: Sequence[Column]) -> tuple[PartitionKey, ...]:
        first = len(columns) - len(self.schema.partition_columns)
        return tuple(
            PartitionKey(first + i, columns[first + i].type, LogTexts(type_name(item)))
            for i, item in enumerate(self.schema.partition_fields)
        )
