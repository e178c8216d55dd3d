"""Assigns a DataFrame's columns to those of a table: which goes where, in which type, and what fills the gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import InvalidError
from penstock.schema.columns import Column, find_column
from penstock.spark.connect.sessions import is_connect
from penstock.spark.connect.store_assignment import may_store
from penstock.spark.java_classes import java_class
from penstock.spark.types import shown_type

# What the error of a value that does not fit begins with, so that the driver finds the message in Spark's own.
MISFIT_MARKER = "penstock: "
_INFINITY = float("inf")


def assigned_rows(
    frame: DataFrame,
    columns: Sequence[Column],
    table: str,
    *,
    by_name: bool,
    default: Callable[[Column], SparkColumn] | None = None,
) -> DataFrame:
    """Convert the rows to exactly the table's columns, under its names and in the types they are shown as.

    By position, as SQL's INSERT; or by name, where a column that is not given takes its `default`, or NULL.
    Geometries are given on as WKB, which is how they cross into Arrow.
    """
    fields = frame.schema.fields
    sources = source_places([field.name for field in fields], columns, table, by_name=by_name)
    names = [f"v{i}" for i in range(len(columns))]
    if all(
        source == place and _is_written_as_it_is(fields[place].dataType, column)
        for place, (source, column) in enumerate(zip(sources, columns, strict=True))
    ):
        return frame.toDF(*names)
    assigner = _Assigner(frame.sparkSession, by_name)
    default = default or _null
    given = [
        default(column)
        if source is None
        else assigner.value(column, F.col(f"c{source}"), fields[source].dataType, column.name)
        for column, source in zip(columns, sources, strict=True)
    ]
    numbered = frame.toDF(*(f"c{i}" for i in range(len(fields))))
    return numbered.select(*(value.alias(name) for name, value in zip(names, given, strict=True)))


def assigned_values(frame: DataFrame, columns: Sequence[Column], values: Sequence[SparkColumn]) -> list[SparkColumn]:
    """Convert expressions over a frame to values of columns, in the writer's types; struct fields go by name."""
    given = frame.select(*(value.alias(f"c{i}") for i, value in enumerate(values))).schema
    assigner = _Assigner(frame.sparkSession, by_name=True)
    return [
        assigner.value(column, value, field.dataType, column.name)
        for column, value, field in zip(columns, values, given.fields, strict=True)
    ]


def source_places(
    names: Sequence[str], columns: Sequence[Column], table: str, *, by_name: bool, giver: str = "the DataFrame"
) -> list[int | None]:
    """For every column of the table the place of the one that it takes; None for one that is not given."""
    return _by_name(names, columns, table, giver) if by_name else _by_position(names, columns, table, giver)


def _by_position(names: Sequence[str], columns: Sequence[Column], table: str, giver: str) -> list[int | None]:
    if len(names) != len(columns):
        raise InvalidError(
            f"table {table} has {len(columns)} columns ({_listed(columns)}) and {giver} has {len(names)} "
            f"({', '.join(names)}); give all of them in that order, or pass by_name=True"
        )
    given, wanted = [name.lower() for name in names], [column.name.lower() for column in columns]
    if given != wanted and sorted(given) == sorted(wanted):
        raise InvalidError(
            f"{giver} has the columns of {table} in another order ({', '.join(names)} for "
            f"{_listed(columns)}); pass by_name=True, or select them in the table's order"
        )
    return list(range(len(names)))


def _by_name(names: Sequence[str], columns: Sequence[Column], table: str, giver: str) -> list[int | None]:
    found: dict[int, int] = {}
    for number, name in enumerate(names):
        column = find_column(columns, name)
        if column is None:
            raise InvalidError(
                f"table {table} has no column {name!r}; it has {_listed(columns)}: drop or rename the column"
            )
        if column.id in found:
            raise InvalidError(f"{giver} has two columns for {column.name!r} of {table}; drop one of them")
        found[column.id] = number
    if not found:
        raise InvalidError(f"{giver} has no columns, and table {table} has {_listed(columns)}")
    return [found.get(column.id) for column in columns]


@dataclass(frozen=True)
class _Assigner:
    """Converts values to the types of columns, as Spark's INSERT does."""

    spark: SparkSession
    by_name: bool

    def value(self, column: Column, value: SparkColumn, source: T.DataType, path: str) -> SparkColumn:
        """A value of a source type as the column's; an illegal pair of types is an error that names the column."""
        if isinstance(source, T.NullType):
            return value.cast(writer_type(column))
        if _is_written_as_it_is(source, column):
            return value
        match column.type.name, source:
            case "list", T.ArrayType():
                child = column.children[0]
                return F.transform(value, lambda item: self.value(child, item, source.elementType, f"{path}.element"))
            case "map", T.MapType():
                return self._map(column, value, source, path)
            case "struct", T.StructType():
                return self._struct(column, value, source, path)
            case "geometry", T.GeometryType():
                return F.st_asbinary(value)
            case "geometry", T.BinaryType():
                return value
            case "timestamp_ns", T.LongType():
                return value
            case "interval", _ if _is_interval(source):
                return value
        target = shown_type(column)
        if column.type.nested or column.type.name in ("geometry", "interval") or not self._may_store(source, target):
            raise InvalidError(_mismatch(path, column, source))
        return _checked(value, source, target, path)

    def _map(self, column: Column, value: SparkColumn, source: T.MapType, path: str) -> SparkColumn:
        key, item = column.children

        def entry(pair: SparkColumn) -> SparkColumn:
            return F.struct(
                self.value(key, pair["key"], source.keyType, f"{path}.key").alias("key"),
                self.value(item, pair["value"], source.valueType, f"{path}.value").alias("value"),
            )

        return F.map_from_entries(F.transform(F.map_entries(value), entry))

    def _struct(self, column: Column, value: SparkColumn, source: T.StructType, path: str) -> SparkColumn:
        fields = self._fields(column, source, path)
        members = [
            (
                F.lit(None).cast(writer_type(child))
                if name is None
                else self.value(child, value.getField(name), source[name].dataType, f"{path}.{child.name}")
            ).alias(child.name)
            for child, name in zip(column.children, fields, strict=True)
        ]
        return F.when(value.isNotNull(), F.struct(*members))

    def _fields(self, column: Column, source: T.StructType, path: str) -> list[str | None]:
        """The source's field for each of the column's: by name where the names are the same, else by position."""
        by_name = {child.id: find_column_name(source, child.name) for child in column.children}
        unknown = [name for name in source.names if find_column(column.children, name) is None]
        if not unknown and (self.by_name or None not in by_name.values()):
            return [by_name[child.id] for child in column.children]
        if self.by_name or len(source) != len(column.children):
            raise InvalidError(
                f"column {path} has the fields {_listed(column.children)} and the DataFrame gives "
                f"{', '.join(source.names)}; give the same fields"
            )
        return list(source.names)

    def _may_store(self, source: T.DataType, target: T.DataType) -> bool:
        """Spark's own rule for INSERT (`spark.sql.storeAssignmentPolicy=ANSI`)."""
        if is_connect(self.spark):
            return may_store(source, target)
        types = java_class(self.spark, "org.apache.spark.sql.types.DataType")
        cast = java_class(self.spark, "org.apache.spark.sql.catalyst.expressions.Cast")
        return bool(cast.canANSIStoreAssign(types.fromJson(source.json()), types.fromJson(target.json())))


def find_column_name(source: T.StructType, name: str) -> str | None:
    """The name of the schema's field that a column takes, exact or without regard to case; None where there is none."""
    exact = name if name in source.names else None
    return exact or next((other for other in source.names if other.lower() == name.lower()), None)


def writer_type(column: Column) -> T.DataType:
    """The type in which a column's values reach the writer."""
    match column.type.name:
        case "geometry":
            return T.BinaryType()
        case "list":
            return T.ArrayType(writer_type(column.children[0]))
        case "map":
            return T.MapType(writer_type(column.children[0]), writer_type(column.children[1]))
        case "struct":
            return T.StructType([T.StructField(child.name, writer_type(child)) for child in column.children])
        case _:
            return shown_type(column)


def _is_written_as_it_is(source: T.DataType, column: Column) -> bool:
    return source.simpleString() == writer_type(column).simpleString()


def _null(column: Column) -> SparkColumn:
    return F.lit(None).cast(writer_type(column))


_NARROWING: dict[type[T.DataType], int] = {
    T.ByteType: 1, T.ShortType: 2, T.IntegerType: 3, T.LongType: 4,
}  # fmt: skip


def _checked(value: SparkColumn, source: T.DataType, target: T.DataType, path: str) -> SparkColumn:
    """A cast that fails with the column's name where a value does not fit."""
    if source == target:
        return value
    if not _may_fail(source, target):
        return value.cast(target)
    tried = value.try_cast(target)
    message = F.concat(
        F.lit(f"{MISFIT_MARKER}column {path}: the value "),
        value.cast("string"),
        F.lit(f" does not fit {target.simpleString()}"),
    )
    lost = value.isNotNull() & tried.isNull()
    if isinstance(target, T.FloatType):  # a double that is too large becomes infinite instead
        lost = (F.abs(tried) == _INFINITY) & (F.abs(value) < _INFINITY)
    return F.when(lost, F.raise_error(message).cast(target)).otherwise(tried)


def _may_fail(source: T.DataType, target: T.DataType) -> bool:
    widths = _NARROWING.get(type(source)), _NARROWING.get(type(target))
    if widths[0] and widths[1]:
        return widths[0] > widths[1]
    if isinstance(target, T.FloatType):
        return isinstance(source, T.DoubleType)
    return isinstance(target, (*_NARROWING, T.DecimalType)) and isinstance(source, T.NumericType)


def _is_interval(source: T.DataType) -> bool:
    return isinstance(source, T.StructType) and source.names == ["months", "days", "microseconds"]


def _mismatch(path: str, column: Column, source: T.DataType) -> str:
    wanted = "struct<months: int, days: int, microseconds: bigint>" if column.type.name == "interval" else None
    shown = wanted or shown_type(column).simpleString()
    return (
        f"column {path} has type {column.type}, which takes {shown}, and the DataFrame gives {source.simpleString()}; "
        f"cast it first"
    )


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)
