"""Collects the filters that Spark pushes to each branch of a table's scan for a predicate."""

from __future__ import annotations

import json

from pyspark.sql import Column as SparkColumn

from penstock.ducklake.model.files import FileGroup
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.ducklake.reading.scan_columns import ROW_ID, ROW_ID_SQL, TARGET_NAME
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.schema.columns import find_column
from penstock.spark.jvm import qualified
from penstock.spark.projection import SqlColumn, projected
from penstock.spark.pushdown import FilterRecorder


def pushed_filters(
    scan: TableScan, group: FileGroup, contents: TableContents, predicate: str | SparkColumn
) -> list[tuple[FilePlanner, str]]:
    """For each branch of a group: its planner, and the filters that Spark gives it for a predicate. No file is read."""
    recorders: list[tuple[FilePlanner, FilterRecorder]] = []

    def recorded(planner: FilePlanner) -> FilterRecorder:
        recorders.append((planner, FilterRecorder()))
        return recorders[-1][1]

    found = []
    numbers = (
        [SqlColumn(ROW_ID, ROW_ID_SQL)] if scan.row_ids and find_column(scan.layout.columns, ROW_ID) is None else []
    )
    for branch in scan.rows(group, contents, recorded):
        qualified(projected(branch.frame, [*branch.shown, *numbers]), TARGET_NAME).where(predicate).collect()
        recorder = next(recorder for planner, recorder in recorders if planner is branch.planner)
        found.append((branch.planner, json.dumps(recorder.filters or [])))
    return found
