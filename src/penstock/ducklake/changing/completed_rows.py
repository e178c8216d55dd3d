"""Decides whether tasks complete the rows that change with the columns that a statement leaves as they are.

Spark reads what conditions and new values need, and only that goes from its JVM to Python. There DuckDB reads the other
columns of the rows that change, in the task that writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.file_pruning import Condition
from penstock.ducklake.changing.completion import Completion
from penstock.ducklake.changing.placed_rows import possible_files, reads_places, rest_is_large
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.files.sealed_keys import Seal
from penstock.ducklake.reading.row_conversion import FROM_ARROW, Reading
from penstock.predicates.implication import Implication
from penstock.schema.columns import Column
from penstock.spark.column_assignment import writer_type
from penstock.spark.releases import arrow_schema_of
from penstock.spark.types import has_nanoseconds

MOST_FILES = 10_000  # whose places every task is told
_READING = Reading(conversions=FROM_ARROW)


def completion_of(
    table: TargetTable, untouched: Sequence[Column], possible: Callable[[], Implication]
) -> Completion | None:
    """What completes rows with the columns that do not change; None where Spark is to read them too.

    `possible` says what is true of all rows that change.
    """
    if table.contents.inlined or not (untouched and reads_places(table) and all(map(_is_plain, untouched))):
        return None
    if not 0 < sum(group.file_count for group in table.contents.groups) <= MOST_FILES:
        return None
    kept = possible_files(table, possible)
    count = sum(table.scan.scope.count(group, kept) for group in table.contents.groups)
    if not rest_is_large(table, count, len(untouched)):
        return None
    seal = Seal()
    rest = tuple(untouched)
    columns = table.target.columns
    names = [f"v{i}" for i in range(len(rest))]
    schema = T.StructType([T.StructField(name, writer_type(c)) for name, c in zip(names, rest, strict=True)])
    changed = tuple(place for place, column in enumerate(columns) if column not in rest)
    return Completion(changed, rest, arrow_schema_of(schema), _files(table, seal), seal)


def _files(table: TargetTable, seal: Seal) -> dict[int, tuple[str, str | None]]:
    # All of them: what is possible now may not be when the query runs, as it can ask for the time.
    files = (file for group in table.contents.groups for file in table.scan.scope.data_files(group, Condition("1 = 1")))
    return {file.id: (file.path, seal.close(file.encryption_key, file.path)) for file in files}


def _is_plain(column: Column) -> bool:
    """Whether what DuckDB reads of a column is what the writer takes."""
    return _READING.is_shown_as_read(column) and not has_nanoseconds(column)
