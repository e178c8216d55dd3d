"""A DataFrame over Parquet files that the catalog chooses while Spark plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.spark.jvm import file_index, java_type
from penstock.storage.paths import to_uri

RECORD, FIELD, NULL = "\x1e", "\x1f", "\x00"
# Proleptic dates as they stand in the files: nothing but Spark 2 ever wrote them otherwise.
_PARQUET_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


def parquet_relation(
    spark: SparkSession,
    planner: Callable[[str], str],
    schema: StructType,
    constants: StructType,
    size_in_bytes: int,
    description: str,
    derived: Mapping[str, str] | None = None,
) -> DataFrame:
    """Spark's own vectorised Parquet scan; every file brings its values of the constant columns."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    index = file_index(spark, planner, constants, derived or {}, size_in_bytes, description)
    sources = jvm.org.apache.spark.sql.execution.datasources
    relation = sources.HadoopFsRelation(
        index,
        java_type(spark, constants),
        java_type(spark, schema),
        jvm.scala.Option.empty(),
        sources.parquet.ParquetFileFormat(),
        jvm.PythonUtils.toScalaMap(_PARQUET_OPTIONS),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def records(files: Iterable[tuple[str, int, Sequence[object]]]) -> str:
    """Files as the index reads them: (path, size, constants)."""
    return RECORD.join(
        FIELD.join((to_uri(path), str(size), *(NULL if value is None else str(value) for value in constants)))
        for path, size, constants in files
    )
