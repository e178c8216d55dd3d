"""Collects the filters that Spark pushes to each branch of a table's scan for a predicate."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from penstock.ducklake.model.files import FileGroup
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.ducklake.reading.scan_columns import ROW_ID, ROW_ID_SQL, TARGET_NAME
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.schema.columns import find_column
from penstock.spark.connect.predicates import filter_text, later_filter_text
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import as_column, check_expressions
from penstock.spark.jvm import qualified
from penstock.spark.local_rows import empty_frame
from penstock.spark.projection import SqlColumn, projected
from penstock.spark.pushdown import FilterRecorder


def rows_where(scan: TableScan, contents: TableContents, where: SparkColumn) -> DataFrame:
    """The rows that a predicate is true for, of the files that can hold such."""
    if is_connect(scan.spark):
        scan = replace(scan, filters=later_filter_text(scan.spark, scan.schema, where))
    rows = scan.frame(contents).where(where)
    check_expressions(rows)
    return rows


def pushed_filters(
    scan: TableScan, group: FileGroup, contents: TableContents, predicate: str | SparkColumn
) -> list[tuple[FilePlanner, str]]:
    """For each branch of a group: its planner, and the filters that Spark gives it for a predicate. No file is read."""
    recorders: list[tuple[FilePlanner, FilterRecorder]] = []

    def recorded(planner: FilePlanner) -> FilterRecorder:
        recorders.append((planner, FilterRecorder()))
        return recorders[-1][1]

    if is_connect(scan.spark):
        told = filter_text(empty_frame(scan.spark, scan.schema).alias(TARGET_NAME), as_column(predicate))
        return [(branch.planner, told) for branch in scan.rows(group, contents)]
    found = []
    numbers = (
        [SqlColumn(ROW_ID, ROW_ID_SQL)] if scan.row_ids and find_column(scan.layout.columns, ROW_ID) is None else []
    )
    for branch in scan.rows(group, contents, recorded):
        qualified(projected(branch.frame, [*branch.shown, *numbers]), TARGET_NAME).where(predicate).collect()
        recorder = next(recorder for planner, recorder in recorders if planner is branch.planner)
        found.append((branch.planner, json.dumps(recorder.filters or [])))
    return found
