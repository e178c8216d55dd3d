"""The names of what a scan of a table gives beside the table's columns."""

from __future__ import annotations

from penstock.schema.embedded_columns import EMBEDDED_ROW_ID
from penstock.spark.parquet_options import ROW_INDEX

ROW_ID = "rowid"
TARGET_NAME = "target"  # what predicates of statements may call the table
FILE, ROW_ID_START, CHANGED_IN = "_penstock_file", "_penstock_row_id_start", "_penstock_changed_in"
POSITION = ROW_INDEX
ROW_ID_SQL = f"coalesce({EMBEDDED_ROW_ID}, {ROW_ID_START} + {POSITION})"  # over a branch's rows
