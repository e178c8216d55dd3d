"""Translates defaults: as users write them, as the catalog keeps them, and as an insert from Spark puts them in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import duckdb
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.model.column_defaults import (
    DIALECT,
    EXPRESSION,
    NO_DEFAULT,
    Default,
    boolean_default,
    expression_default,
    has_default,
    literal_default,
)
from penstock.ducklake.reading.initial_defaults import default_sql
from penstock.ducklake.writing.duckdb_expressions import calculator, expression_nodes
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.column_assignment import writer_type
from penstock.spark.connect.sessions import is_connect
from penstock.spark.connect.sql_tokens import tokens
from penstock.spark.java_classes import java_class
from penstock.spark.types import shown_type
from penstock.spark.versions import session_time_zone
from penstock.storage.duckdb_sql import duckdb_type, text_literal

_INSTANTS = ("timestamptz", "timestamp", "timestamp_ns", "timestamp_ms", "timestamp_s", "date")
_NOW = ("current_timestamp()", _INSTANTS)
_TODAY = ("current_date()", _INSTANTS)
_LOCAL = ("localtimestamp()", tuple(name for name in _INSTANTS if name != "timestamptz"))
_UUID = ("uuid()", ("uuid", "varchar"))
_RANDOM = ("rand()", ("float64", "float32"))
# DuckDB's expressions that Spark can compute: how, and for columns of which types the two agree.
_COMPUTED = {
    "now()": _NOW,
    "current_timestamp": _NOW,
    "get_current_timestamp()": _NOW,
    "transaction_timestamp()": _NOW,
    "current_date": _TODAY,
    "current_date()": _TODAY,
    "today()": _TODAY,
    "localtimestamp": _LOCAL,
    "current_localtimestamp()": _LOCAL,
    "uuid()": _UUID,
    "uuidv4()": _UUID,
    "gen_random_uuid()": _UUID,
    "random()": _RANDOM,
}
# Spark's names for some of them.
_TO_DUCKDB = {
    "current_timestamp()": "current_timestamp",
    "current_date()": "current_date",
    "curdate()": "current_date",
    "localtimestamp()": "localtimestamp",
    "rand()": "random()",
}
# Types of Spark whose text DuckDB reads as the type named.
_READ_AS: dict[type[T.DataType], str] = {
    T.StringType: "VARCHAR",
    T.BooleanType: "BOOLEAN",
    T.ByteType: "BIGINT",
    T.ShortType: "BIGINT",
    T.IntegerType: "BIGINT",
    T.LongType: "BIGINT",
    T.FloatType: "FLOAT",
    T.DoubleType: "DOUBLE",
    T.DateType: "DATE",
    T.TimestampNTZType: "TIMESTAMP",
    T.TimeType: "TIME",
}
_MAX_DIGITS = 38
# Words of Spark's expressions that are not the same at all times, for Spark Connect, which does not tell.
_CHANGING = frozenset((
    "now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp", "current_timezone", "rand",
    "random", "randn", "randstr", "uniform", "shuffle", "uuid", "current_user", "user", "session_user",
    "current_catalog", "current_database", "current_schema", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "input_file_block_start", "input_file_block_length", "select", "unix_timestamp",
    "to_unix_timestamp", "version", "reflect", "java_method", "try_reflect",
))  # fmt: skip
_PURE_NODES = {"CONSTANT", "CAST", "FUNCTION", "OPERATOR", "COMPARISON", "CONJUNCTION", "CASE"}
_SETTINGS = {"current_setting", "getvariable"}


def default_of(spark: SparkSession, column: Column, sql: str, *, existing_rows: bool = False) -> Default:
    """Translate the default that a user wrote for a column into what the catalog keeps.

    A constant is Spark SQL and is kept as its value. Anything else is kept as an expression of DuckDB's, in which
    `now()`, `current_timestamp()`, `current_date()`, `uuid()` and `rand()` may be written as in Spark. With
    `existing_rows` the default is for a column that is added, whose older rows need a value: only a constant will do.
    """
    name = re.sub(r"\s", "", sql).lower()
    name = _TO_DUCKDB.get(name, name)
    constant = None if name in _COMPUTED else _constant(spark, column, sql)
    if constant is not None and constant.text is None:
        return NO_DEFAULT
    if column.type.nested:
        raise UnsupportedError(
            f"column {column.name} is a {column.type} with the default {sql}: DuckLake has no defaults for nested "
            "types; leave the default out"
        )
    if constant is not None:
        return _kept(constant, column, sql, existing_rows, session_time_zone(spark))
    if existing_rows:
        raise InvalidError(
            f"column {column.name} cannot be added with the default {sql}, which is not constant: the rows that exist "
            "need a value; add the column without it, then set the default for new rows"
        )
    return expression_default(_printed(column, name if name in _COMPUTED else sql))


def default_value(spark: SparkSession, column: Column) -> SparkColumn:
    """The value that a row takes in a column which it does not give; an UnsupportedError if Spark cannot compute it."""
    return F.expr(default_expression(column, session_time_zone(spark))).cast(writer_type(column))


def default_expression(column: Column, time_zone: str = "UTC") -> str:
    """Spark SQL of what an insert that leaves the column out puts in; the caller casts it to the column's type.

    `time_zone` is that of the session, for texts of instants that name no zone.
    """
    if not has_default(column):
        return "NULL"
    value = column.default_value or ""
    if column.default_value_type != EXPRESSION:
        return _spark_literal(column, text_literal(value), time_zone)
    if column.default_value_dialect in (DIALECT, None):
        spark_sql, types = _COMPUTED.get(value.lower(), ("", ()))
        if column.type.name in types:
            return spark_sql
        if not spark_sql and column.type.name != "variant" and _is_pure(value):
            return _spark_literal(column, value, time_zone)
    raise UnsupportedError(
        f"Spark cannot compute the default of column {column.name}, the {column.default_value_dialect} expression "
        f"{value}; give the column in the rows to insert"
    )


@dataclass(frozen=True)
class _Constant:
    """A constant by its text, None for NULL, and by DuckDB's expression over that text, which is the parameter $1."""

    text: str | None
    sql: str
    boolean: bool


def _constant(spark: SparkSession, column: Column, sql: str) -> _Constant | None:
    """The value of a Spark expression, or None where it is not constant, or not Spark's."""
    nothing = spark.sql("SELECT 1")
    try:
        frame = nothing.select(F.expr(sql))
        kind = frame.schema[0].dataType
        text, duckdb_sql = _as_text(F.expr(sql), kind)
        if not duckdb_sql or not _is_foldable(spark, frame, sql):
            return None
        value = _value(nothing.select(text))
    except (ParseException, AnalysisException):
        return None
    except PySparkException as error:
        raise InvalidError(f"the default {sql} of column {column.name} has no value: {_reason(error)}") from error
    return _Constant(value, duckdb_sql, isinstance(kind, T.BooleanType))


def _as_text(value: SparkColumn, kind: T.DataType) -> tuple[SparkColumn, str]:
    match kind:
        case T.BinaryType():
            return F.hex(value), "unhex($1)"
        case T.TimestampType():
            return F.unix_micros(value).cast("string"), "make_timestamptz(CAST($1 AS BIGINT))"
        case T.DecimalType():
            # DuckDB's literals have a digit before the point.
            precision = min(max(kind.precision, kind.scale + 1), _MAX_DIGITS)
            return value.cast("string"), f"CAST($1 AS DECIMAL({precision},{kind.scale}))"
        case T.NullType():
            return value.cast("string"), "NULL"
        case _:
            name = _READ_AS.get(type(kind))
            return value.cast("string"), f"CAST($1 AS {name})" if name else ""


def _is_foldable(spark: SparkSession, frame: DataFrame, sql: str) -> bool:
    if is_connect(spark):
        return not any((token.identifier or "").lower() in _CHANGING for token in tokens(sql))
    plan: Any = frame._jdf
    expression = _unnamed(plan.queryExecution().analyzed())
    changing = java_class(spark, "org.apache.spark.sql.catalyst.trees.TreePattern").CURRENT_LIKE()
    return bool(expression.foldable()) and not expression.containsPattern(changing)


def _value(frame: DataFrame) -> str | None:
    """The one text of a constant query; Spark's optimizer has computed it already, unless it failed."""
    if not is_connect(frame):
        plan: Any = frame._jdf
        folded = _unnamed(plan.queryExecution().optimizedPlan())
        if folded.getClass().getSimpleName() == "Literal":
            value = folded.value()
            return None if value is None else str(value.toString())
    [[computed]] = frame.collect()
    return None if computed is None else str(computed)


def _unnamed(plan: Any) -> Any:
    """The one expression of a projection, without the name it was given."""
    expression = plan.expressions().head()
    return expression.child() if expression.getClass().getSimpleName() == "Alias" else expression


def _kept(constant: _Constant, column: Column, sql: str, existing_rows: bool, time_zone: str) -> Default:
    own = f"CAST({constant.sql} AS VARCHAR)"
    kind = duckdb_type(column)
    try:
        with _calculator(time_zone) as connection:
            [[text, initial, again]] = connection.execute(
                f"SELECT {own}, CAST(CAST({constant.sql} AS {kind}) AS VARCHAR), "
                f"CAST(TRY_CAST({own} AS {kind}) AS VARCHAR)",
                [constant.text],
            ).fetchall()
    except duckdb.Error as error:
        raise InvalidError(
            f"the default {sql} of column {column.name} is no {column.type}: {_reason(error)}"
        ) from error
    if constant.boolean and column.type.name == "boolean":
        return boolean_default(text == "true", existing_rows)
    return literal_default(text if again == initial else initial, initial)


def _printed(column: Column, sql: str) -> str:
    """An expression as DuckDB prints it, if DuckDB can compute it for this column."""
    try:
        printed = str(duckdb.SQLExpression(sql))
        with _calculator("UTC") as connection:
            connection.execute(f"CREATE TABLE t (c {duckdb_type(column)} DEFAULT {printed})")
            connection.execute("INSERT INTO t DEFAULT VALUES")
    except duckdb.Error as error:
        raise InvalidError(
            f"the default {sql} of column {column.name} is neither a constant of Spark's nor an expression that DuckDB "
            f"can compute as {column.type}: {_reason(error)}"
        ) from error
    return printed


def _spark_literal(column: Column, sql: str, time_zone: str) -> str:
    """Spark SQL of the value of a constant DuckDB expression in the column's type."""
    try:
        with _calculator(time_zone) as connection:
            value = f"CAST(CAST({sql} AS {duckdb_type(column)}) AS VARCHAR)"
            [[text]] = connection.execute(f"SELECT {value}").fetchall()
        valued = replace(column, initial_default=text)
        match column.type.name:
            case "geometry":
                return f"st_geomfromwkb({default_sql(valued, T.BinaryType())})"
            case "variant":
                plain = replace(valued, type=Type("varchar"))
                return f"CAST({default_sql(plain, T.StringType())} AS VARIANT)"
            case _:
                return default_sql(valued, shown_type(column))
    except (duckdb.Error, ValueError, OverflowError, TypeError) as error:
        raise UnsupportedError(
            f"the default {column.default_value} of column {column.name} is no {column.type} that Spark can hold; "
            f"give the column in the rows to insert ({_reason(error)})"
        ) from error


def _is_pure(sql: str) -> bool:
    """Whether a DuckDB expression has the same value at all times."""
    tree = expression_nodes(sql)
    functions = {node["function_name"]: node["children"] for node in tree if node["class"] == "FUNCTION"}
    with _calculator("UTC") as connection:
        stable = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability = 'CONSISTENT'"
        ).fetchall()
    known = {name for (name,) in stable} - _SETTINGS
    return (
        bool(tree)
        and all(node["class"] in _PURE_NODES for node in tree)
        and all(children and name in known for name, children in functions.items())
    )


def _calculator(time_zone: str) -> duckdb.DuckDBPyConnection:
    connection = calculator()
    connection.execute(f"SET TimeZone = {text_literal(time_zone)}")
    return connection


def _reason(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
