"""A table's sort order as columns that the writer sorts by."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import InvalidError
from penstock.model.columns import Column, find_column
from penstock.model.objects import SortKey
from penstock.spark.types import Reading
from penstock.storage.parquet import SortColumn

_KEY = re.compile(
    r"(?P<expression>.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`')


def parse_sort_key(text: str) -> SortKey:
    """`ts`, `ts DESC`, `lower(name) ASC NULLS FIRST`; without a word NULLs come last, as in DuckDB."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        raise InvalidError(
            f"{text!r} is not a sort key; write a column or an expression, ASC or DESC, NULLS FIRST or LAST"
        )
    direction = (match["direction"] or "ASC").upper()
    return SortKey(match["expression"].strip(), "duckdb", direction, f"NULLS_{(match['nulls'] or 'LAST').upper()}")


def plain_column(expression: str, columns: Sequence[Column]) -> Column | None:
    """The column that an expression names, if that is all it does."""
    quoted = _QUOTED.fullmatch(expression)
    if quoted is None:
        return find_column(columns, expression)
    double, back = quoted.groups()
    return find_column(columns, double.replace('""', '"') if double is not None else back.replace("``", "`"))


def with_sort_columns(
    rows: DataFrame, columns: Sequence[Column], order: Sequence[SortKey], first_extra: int, table: str
) -> tuple[tuple[SortColumn, ...], DataFrame]:
    """The sort order by positions, and the rows with a column more for each expression that is not a column.

    An order that Spark cannot compute, because DuckDB's dialect has functions of its own, is left out with a warning.
    """
    named = rows.toDF(*(column.name for column in columns))
    positions = {column.id: position for position, column in enumerate(columns)}
    sort: list[SortColumn] = []
    extra: list[str] = []
    for key in order:
        column = plain_column(key.expression, columns)
        if column is None:
            extra.append(key.expression)
        position = first_extra + len(extra) - 1 if column is None else positions[column.id]
        sort.append(SortColumn(position, key.direction == "DESC", key.null_order == "NULLS_FIRST"))
    try:
        with_extra = named.select(
            "*", *(F.expr(text.replace('"', "`")).alias(f"_sort_{i}") for i, text in enumerate(extra))
        )
    except (AnalysisException, ParseException):
        warnings.warn(f"the sort order of {table} ({', '.join(extra)}) is not one that Spark can compute; "
                      "the rows are written unsorted", stacklevel=2)  # fmt: skip
        return (), rows
    return tuple(sort), with_extra


def check_sort_key(spark: SparkSession, columns: Sequence[Column], key: SortKey, table: str) -> None:
    """Whether Spark can sort a table's rows by a key."""
    if plain_column(key.expression, columns) is not None:
        return
    shown = T.StructType([T.StructField(column.name, Reading().shown_type(column)) for column in columns])
    try:
        spark.createDataFrame([], shown).select(F.expr(key.expression.replace('"', "`")))
    except (AnalysisException, ParseException) as error:
        known = ", ".join(column.name for column in columns)
        reason = str(error).splitlines()[0]
        raise InvalidError(
            f"{table} cannot be sorted by {key.expression!r}: {reason}; it has the columns {known}"
        ) from None
