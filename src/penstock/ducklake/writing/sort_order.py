"""Turns a table's sort order into columns that the writer sorts by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.column_defaults import DIALECT
from penstock.ducklake.model.objects import Macro, SortKey
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.writing.duckdb_expressions import (
    calculator,
    column_paths,
    function_names,
    printed_expression,
    spark_sql,
    with_renamed_column,
    without_catalogs,
)
from penstock.ducklake.writing.duckdb_macros import macro_definitions
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column, find_column
from penstock.spark.local_rows import empty_frame
from penstock.spark.types import shown_type
from penstock.storage.duckdb_sql import duckdb_type
from penstock.storage.parquet import SortColumn
from penstock.storage.parquet.sort_expressions import SortExpressions

_KEY = re.compile(
    r"(?P<expression>.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?",
    re.IGNORECASE | re.DOTALL,
)
_NAME = re.compile(r'"((?:[^"]|"")*)"|([^\W\d]\w*)')


def parse_sort_key(text: str) -> SortKey:
    """Parse `ts`, `ts DESC`, `lower(name) ASC NULLS FIRST`; without a word NULLs come last, as in DuckDB.

    The expression is kept as DuckDB prints it.
    """
    match = _KEY.fullmatch(text.strip())
    if match is None:
        raise InvalidError(
            f"{text!r} is not a sort key; write a column or an expression, ASC or DESC, NULLS FIRST or LAST"
        )
    direction = (match["direction"] or "ASC").upper()
    return SortKey(
        printed_expression(match["expression"]), DIALECT, direction, f"NULLS_{(match['nulls'] or 'LAST').upper()}"
    )


def plain_column(expression: str, columns: Sequence[Column]) -> Column | None:
    """The column that an expression names, if that is all it does."""
    name = _NAME.fullmatch(expression)
    if name is None:
        return None
    quoted, bare = name.groups()
    return find_column(columns, bare if quoted is None else quoted.replace('""', '"'))


def columns_of_key(key: SortKey, columns: Sequence[Column]) -> list[Column]:
    """The columns that a sort key is made of."""
    plain = plain_column(key.expression, columns)
    if plain is not None or key.dialect != DIALECT:
        return [plain] if plain is not None else []
    found = (find_column(columns, path[0]) for path in column_paths(key.expression))
    return [column for column in found if column is not None]


def with_renamed(key: SortKey, column: Column, name: str, columns: Sequence[Column]) -> SortKey:
    """The sort key after one of the table's columns got another name."""
    if column not in columns_of_key(key, columns):
        return key
    return replace(key, expression=with_renamed_column(key.expression, column.name, name))


@dataclass(frozen=True)
class Sorting:
    """How rows are sorted: by columns of theirs, by position, some of which DuckDB computes in the tasks."""

    by: tuple[SortColumn, ...] = ()
    computed: SortExpressions | None = None


def plain_sorting(columns: Sequence[Column], order: Sequence[SortKey]) -> Sorting | None:
    """The sort order of keys that are columns of the table, for the writer; None where one has to be computed."""
    positions = {column.id: position for position, column in enumerate(columns)}
    found = [plain_column(key.expression, columns) for key in order]
    by = [
        _sort_column(positions[column.id], key) for column, key in zip(found, order, strict=True) if column is not None
    ]
    return Sorting(tuple(by)) if len(by) == len(order) else None


def _sort_column(position: int, key: SortKey) -> SortColumn:
    return SortColumn(position, key.direction == "DESC", key.null_order == "NULLS_FIRST")


def with_sort_columns(
    rows: DataFrame,
    columns: Sequence[Column],
    order: Sequence[SortKey],
    first_extra: int,
    table: str,
    macros: Sequence[Macro] = (),
) -> tuple[Sorting, DataFrame]:
    """The sort order for the writer, and the rows with a column more for each expression that Spark computes.

    The first columns of the rows are the table's. Where Spark does not know an expression, or a macro of the lake is
    in it, DuckDB computes all of them; UnsupportedError where it cannot either.
    """
    named = rows.toDF(*(column.name for column in columns), *rows.columns[len(columns) :])
    positions = {column.id: position for position, column in enumerate(columns)}
    sort: list[SortColumn] = []
    extra: list[SortKey] = []
    for key in order:
        column = plain_column(key.expression, columns)
        if column is None:
            extra.append(key)
        position = first_extra + len(extra) - 1 if column is None else positions[column.id]
        sort.append(_sort_column(position, key))
    own = {macro.name.lower() for macro in macros}
    try:
        if any(own & function_names(key.expression) for key in extra):
            return _by_duckdb(sort, extra, columns, first_extra, table, macros), rows
        computed = (F.expr(spark_sql(key.expression)).alias(f"_sort_{i}") for i, key in enumerate(extra))
        with_extra = named.select("*", *computed)
    except (AnalysisException, ParseException):
        return _by_duckdb(sort, extra, columns, first_extra, table, macros), rows
    # The rows came without the table's names, some of which PySpark cannot look columns up by.
    return Sorting(tuple(sort)), with_extra.toDF(*rows.columns, *(f"_sort_{i}" for i in range(len(extra))))


def _by_duckdb(
    sort: Sequence[SortColumn],
    keys: Sequence[SortKey],
    columns: Sequence[Column],
    first_extra: int,
    table: str,
    macros: Sequence[Macro],
) -> Sorting:
    expressions = sort_expressions(keys, columns, table, macros)
    # The bytes that DuckDB makes of a key have its direction and its NULLs in them.
    return Sorting(tuple(one if one.index < first_extra else SortColumn(one.index) for one in sort), expressions)


def sort_expressions(
    keys: Sequence[SortKey], columns: Sequence[Column], table: str, macros: Sequence[Macro]
) -> SortExpressions:
    """Sort keys for DuckDB to compute; UnsupportedError where it cannot."""
    used = {column.id for key in keys for column in columns_of_key(key, columns)}
    schemas = {"main", *(macro.schema.lower() for macro in macros)}
    called = set().union(*(function_names(key.expression) for key in keys))
    expressions = SortExpressions(
        tuple((place, column) for place, column in enumerate(columns) if column.id in used),
        tuple((without_catalogs(key.expression, schemas), _order(key)) for key in keys),
        macro_definitions(macros, called, schemas),
    )
    others = [key.dialect for key in keys if key.dialect != DIALECT]
    reason = f"their dialect is {others[0]}" if others else expressions.refusal()
    if reason:
        raise UnsupportedError(
            f"{table} is sorted by {', '.join(key.expression for key in keys)}, which neither Spark nor DuckDB alone "
            f"can compute: {reason}; sort it by something else with set_sorted_by, or by nothing with reset_sorted_by"
        )
    return expressions


def _order(key: SortKey) -> str:
    return f"{key.direction} {key.null_order.replace('_', ' ')}"


def check_sort_keys(spark: SparkSession, columns: Sequence[Column], keys: Sequence[SortKey], table: str) -> None:
    """Refuse sort keys that Spark or DuckDB could not sort by."""
    for key in keys:
        _check_sort_key(spark, columns, key, table)


def _check_sort_key(spark: SparkSession, columns: Sequence[Column], key: SortKey, table: str) -> None:
    """Refuse a key that Spark or DuckDB cannot sort the table's rows by."""
    if plain_column(key.expression, columns) is not None:
        return
    reason = _unknown_column(columns, key) or _not_for_spark(spark, columns, key) or _not_for_duckdb(columns, key)
    if reason:
        known = ", ".join(column.name for column in columns)
        raise InvalidError(
            f"{table} cannot be sorted by {key.expression}: {reason}; write an expression of its columns ({known}) "
            "that both Spark and DuckDB know"
        )


def _unknown_column(columns: Sequence[Column], key: SortKey) -> str | None:
    for path in column_paths(key.expression):
        if find_column(columns, path[0]) is None:
            return f"there is no column {path[0]!r}"
        if len(path) > 1:
            return "DuckLake sorts by whole columns, not by fields of structs"
    return None


def _not_for_spark(spark: SparkSession, columns: Sequence[Column], key: SortKey) -> str | None:
    shown = T.StructType([T.StructField(column.name, shown_type(column)) for column in columns])
    try:
        empty_frame(spark, shown).select("*", F.expr(spark_sql(key.expression)))
    except (AnalysisException, ParseException) as error:
        return str(error).splitlines()[0]
    return None


def _not_for_duckdb(columns: Sequence[Column], key: SortKey) -> str | None:
    definition = ", ".join(f"{quoted_name(column.name)} {duckdb_type(column)}" for column in columns)
    try:
        with calculator() as connection:
            connection.execute(f"CREATE TABLE t ({definition})")
            connection.execute(f"SELECT *, {key.expression} FROM t")
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    return None
