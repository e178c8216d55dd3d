"""Knows how Spark's Parquet reader is to read data files, whoever asks it to."""

from __future__ import annotations

from pyspark.sql.types import StructType

# Spark's reader fills a column of this name with the row's number in its file. `_metadata.row_index` is the same number
# inside a struct, which costs an object a row.
ROW_INDEX = "_tmp_metadata_row_index"
FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_ALWAYS = {
    # Proleptic dates as they stand in the files: nothing but Spark 2 ever wrote them otherwise.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # Here and not in a session: the query may be run by one that has other settings.
    FIELD_IDS: "true",
}
# To dictionaries and Bloom filters -0.0 and 0.0 are two values: Spark would lose rows of `x = 0` by them.
_WITHOUT_DICTIONARIES = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}
_COMPLETE = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


def parquet_options(schema: StructType, *, complete: bool) -> dict[str, str]:
    """The reader's options for what is read of files; if `complete`, a file that is gone is an error in any case."""
    floating = any(kind in schema.simpleString() for kind in ("float", "double"))
    return _ALWAYS | (_WITHOUT_DICTIONARIES if floating else {}) | (_COMPLETE if complete else {})
