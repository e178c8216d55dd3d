"""Reads the rows that a statement can change, with what it takes to find them and to write them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.changing.change_job import POSITION
from penstock.ducklake.model.schema_evolution import find_at, parse_path
from penstock.ducklake.reading.column_layout import shown_schema
from penstock.ducklake.reading.row_conversion import Conversion, Reading, microseconds_of
from penstock.ducklake.reading.scan_columns import FILE, ROW_ID, TARGET_NAME
from penstock.ducklake.reading.scan_columns import POSITION as POSITION_IN_FILE
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column, find_column
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import as_column, spark_quoted
from penstock.spark.jvm import filter_text, qualified
from penstock.spark.local_rows import unread_frame
from penstock.spark.projection import SqlColumn, named, projected
from penstock.spark.types import has_nanoseconds

ROW = "_penstock_row"
_OWN = ("_penstock_", POSITION_IN_FILE)
_CUT = Reading(conversions={"timestamp_ns": Conversion(T.LongType(), microseconds_of)})


@dataclass(frozen=True)
class TargetRows:
    """Rows of a table that a statement can change.

    The frame has the table's columns, then ROW, FILE and POSITION, and what the columns do not show in full.

    Conditions and values may also name `rowid`, DuckLake's row id, unless the table has a column of that name.
    """

    frame: DataFrame
    columns: tuple[Column, ...]
    narrowed: Callable[[str, frozenset[int]], DataFrame] | None = None  # the frame of files that pass filters, but some

    def where(self, predicate: SparkColumn, without: frozenset[int] = frozenset()) -> DataFrame:
        """The rows that a predicate is true for, without some files.

        Spark leaves out files by what stands above a scan; for Spark Connect it is done here.
        """
        rows = self.narrowed(filter_text(self.named, predicate), without) if self.narrowed else self.frame
        chosen = rows.where(predicate)
        return chosen.where(F.col(FILE).isNull() | ~F.col(FILE).isin(*without)) if without else chosen

    @cached_property
    def named(self) -> DataFrame:
        """An empty frame with what conditions and values may name, so that Spark's errors tell of nothing else."""
        own = [T.StructField(ROW_ID, T.LongType())] if has_row_id(self.columns) else []
        fields = [*shown_schema(self.columns, Reading()).fields, *own]
        return qualified(unread_frame(self.frame.sparkSession, T.StructType(fields)), TARGET_NAME)

    def unchanged(self) -> list[SparkColumn]:
        """The values of the columns as they are."""
        return [self._unchanged(place) for place in range(len(self.columns))]

    def _unchanged(self, place: int) -> SparkColumn:
        column = self.columns[place]
        return F.col(_full(place) if has_nanoseconds(column) else f"{TARGET_NAME}.{spark_quoted(column.name)}")

    def unchanged_by(self, assignments: Sequence[Mapping[str, SparkColumn]]) -> list[Column]:
        """The columns that some of the assignments do not set whole, so that their values must be read."""
        whole = [{self._whole(path) for path in given} for given in assignments]
        return [column for column in self.columns if not all(column in each for each in whole)]

    def untouched_by(self, given: Mapping[str, SparkColumn]) -> list[Column]:
        """The columns of which nothing is assigned to any part."""
        touched = [_found(self.columns, path)[0] for path in given]
        return [column for column in self.columns if column not in touched]

    def _whole(self, path: str) -> Column | None:
        top, *below = _found(self.columns, path)
        return None if below else top

    def with_new(self, given: Mapping[str, SparkColumn], places: Sequence[int] | None = None) -> list[SparkColumn]:
        """The values of all columns, or of those at places, with new ones put in.

        Names are columns, or paths to fields of structs.
        """
        values: dict[int, SparkColumn] = {}
        seen: list[list[Column]] = []
        for path, value in given.items():
            top, *below = found = _found(self.columns, path)
            place = self.columns.index(top)
            if any(other[: len(found)] == found[: len(other)] for other in seen):
                raise InvalidError(f"{path} is set twice; set it once")
            seen.append(found)
            if below:
                whole = values[place] if place in values else self._unchanged(place)
                value = whole.withField(".".join(spark_quoted(item.name) for item in below), value)
            values[place] = value
        chosen = range(len(self.columns)) if places is None else places
        return [values[place] if place in values else self._unchanged(place) for place in chosen]


def target_rows(scan: TableScan, contents: TableContents) -> TargetRows:
    """The rows of a scan that gives row ids and addresses, and nanoseconds where there are any.

    Raises:
        UnsupportedError: A column has a name that Penstock needs for these.
    """
    taken = [column.name for column in scan.layout.columns if column.name.lower().startswith(_OWN)]
    if taken:
        raise UnsupportedError(
            f"rows of {scan.table_name} cannot be changed while it has a column {taken[0]}: Penstock has such names "
            "for what it needs itself; rename the column"
        )
    rows = as_target_rows(scan, scan.frame(contents))
    return replace(rows, narrowed=partial(_narrowed, scan, contents)) if is_connect(scan.spark) else rows


def _narrowed(scan: TableScan, contents: TableContents, filters: str, without: frozenset[int]) -> DataFrame:
    return as_target_rows(scan, replace(scan, filters=filters, without=without).frame(contents)).frame


def as_target_rows(scan: TableScan, rows: DataFrame, others: Sequence[str] = ()) -> TargetRows:
    """Rows as such a scan gives them, with other columns behind."""
    columns = scan.layout.columns
    names = [*(column.name for column in columns), ROW, FILE, POSITION, *others]
    if scan.layout.nanoseconds:
        shown = [SqlColumn(column.name, _CUT.shown(column, spark_quoted(column.name))) for column in columns]
        full = [SqlColumn(_full(i), spark_quoted(c.name)) for i, c in enumerate(columns) if has_nanoseconds(c)]
        rows = projected(rows.toDF(*names), [*shown, *named(ROW, FILE, POSITION, *others), *full])
        names += [item.name for item in full]
    placed = [(name, place) for place, name in enumerate(names)]
    own = [(ROW_ID, len(columns))] if has_row_id(columns) else []
    return TargetRows(qualified(rows, TARGET_NAME, [*placed, *own]), columns)


def has_row_id(columns: Sequence[Column]) -> bool:
    """Whether `rowid` is DuckLake's row id in conditions on a table of these columns."""
    return find_column(columns, ROW_ID) is None


def as_columns(given: Mapping[str, str | SparkColumn]) -> dict[str, SparkColumn]:
    """Values as users give them, SQL text or columns, as columns."""
    return {name: as_column(value) for name, value in given.items()}


def _full(position: int) -> str:
    return f"_penstock_full_{position}"


def _found(columns: tuple[Column, ...], path: str) -> list[Column]:
    """The column and the fields of structs that a path goes through."""
    names = parse_path(path)
    found = [find_at(columns, names[: depth + 1]) for depth in range(len(names))]
    for outer in found[:-1]:
        if outer.type.name != "struct":
            raise InvalidError(
                f"{path} is inside a {outer.type.name}, whose parts cannot be set one by one; set {found[0].name} whole"
            )
    return found
