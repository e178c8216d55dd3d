"""Converts what Spark reads of a data file into the values that users see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.reading.initial_defaults import default_value
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.spark.expressions import spark_quoted
from penstock.spark.projection import text_sql, type_sql
from penstock.spark.releases import reads_geometries
from penstock.spark.types import FIELD_ID, shown_type

Sql = str  # an expression that may stand beside any operator, as `projected` takes it
_INFINITE = 2**63 - 1
_UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def _uuid_text(value: Sql) -> Sql:
    parts = (f"substring(lower(hex({value})), {start}, {length})" for start, length in _UUID_PARTS)
    with_dashes = ", '-', ".join(parts)
    return f"concat({with_dashes})"


def _little_endian(digits: Sql, start: int) -> Sql:
    """The signed 32-bit number whose bytes begin at a position of a text of hex digits."""
    octets = ", ".join(f"substring({digits}, {start + offset}, 2)" for offset in (6, 4, 2, 0))
    unsigned = f"CAST(conv(concat({octets}), 16, 10) AS bigint)"
    return f"CASE WHEN {unsigned} >= {2**31} THEN {unsigned} - {2**32} ELSE {unsigned} END"


def _interval_parts(value: Sql) -> Sql:
    """Parquet's interval: months, days and milliseconds, 4 bytes each."""
    months, days, milliseconds = (_little_endian(f"hex({value})", start) for start in (1, 9, 17))
    return (
        f"CASE WHEN {value} IS NOT NULL THEN named_struct('months', CAST({months} AS int), 'days', CAST({days} AS int),"
        f" 'microseconds', {milliseconds} * 1000) END"
    )


def _epoch_plus(microseconds: Sql) -> Sql:
    return f"({_EPOCH} + {microseconds} * INTERVAL '0.000001' SECOND)"


def microseconds_of(nanoseconds: Sql) -> Sql:
    """Nanoseconds since 1970 as a local timestamp, cut to microseconds (towards the past)."""
    before = f"CASE WHEN {nanoseconds} % 1000 < 0 THEN 1 ELSE 0 END"
    return _epoch_plus(_unless_infinite(nanoseconds, f"{nanoseconds} DIV 1000 - {before}"))


def timestamp_from_nanoseconds(nanoseconds: Sql) -> Sql:
    """Nanoseconds of a file under a column of microseconds, cut as DuckDB cuts them: towards 1970."""
    return _epoch_plus(_unless_infinite(nanoseconds, f"{nanoseconds} DIV 1000"))


def instant_from_nanoseconds(nanoseconds: Sql) -> Sql:
    """The same under a column with a zone."""
    return f"timestamp_micros({_unless_infinite(nanoseconds, f'{nanoseconds} DIV 1000')})"


def rounded_timestamp(timestamp: Sql, unit: int) -> Sql:
    """A local timestamp in whole units of so many microseconds, as DuckDB casts it: halves go away from 1970."""
    microseconds = _microseconds_since_1970(timestamp)
    rest = f"{microseconds} % {unit}"
    step = f"CASE WHEN {rest} >= {unit // 2} THEN {unit} WHEN {rest} <= {-unit // 2} THEN {-unit} ELSE 0 END"
    return _epoch_plus(_unless_infinite(microseconds, f"{microseconds} - {rest} + {step}"))


def nanoseconds_of(timestamp: Sql) -> Sql:
    """A local timestamp as nanoseconds since 1970."""
    microseconds = _microseconds_since_1970(timestamp)
    return _unless_infinite(microseconds, f"{microseconds} * 1000")


def _microseconds_since_1970(timestamp: Sql) -> Sql:
    return f"timestampdiff(MICROSECOND, {_EPOCH}, {timestamp})"


def _unless_infinite(number: Sql, converted: Sql) -> Sql:
    """DuckDB's infinite timestamps are the same numbers in every unit."""
    return f"CASE WHEN {number} IN ({-_INFINITE}, {_INFINITE}) THEN {number} ELSE {converted} END"


def local_timestamp(instant: Sql, nanoseconds: bool = False) -> Sql:
    """An instant, which is how Spark reads INT96, as the local timestamp that it stands for."""
    microseconds = f"unix_micros({instant})"
    return f"({microseconds} * 1000)" if nanoseconds else _epoch_plus(microseconds)


@dataclass(frozen=True)
class Conversion:
    """A type that arrives as another Spark type than the one it is shown as."""

    read: T.DataType
    convert: Callable[[Sql], Sql]


# DuckDB writes a NULL as the variant's own null, and reads that as NULL.
_VARIANT = Conversion(T.VariantType(), lambda value: f"CASE WHEN NOT is_variant_null({value}) THEN {value} END")
_GEOMETRY = Conversion(T.BinaryType(), lambda value: f"st_geomfromwkb({value})")
FROM_PARQUET: Mapping[str, Conversion] = {
    "uuid": Conversion(T.BinaryType(), _uuid_text),
    "interval": Conversion(T.BinaryType(), _interval_parts),
    "timestamp_ns": Conversion(T.LongType(), microseconds_of),
    "variant": _VARIANT,
    **({} if reads_geometries() else {"geometry": _GEOMETRY}),
}
FROM_ARROW: Mapping[str, Conversion] = {"geometry": _GEOMETRY, "variant": _VARIANT}


# Types that Spark's reader gives as a wider one by itself.
_WIDENED_BY_SPARK = {
    "int8": {"int16", "int32", "int64"},
    "int16": {"int32", "int64"},
    "int32": {"int64"},
    "uint8": {"uint16", "uint32", "int16", "int32", "int64"},
    "uint16": {"uint32", "int32", "int64"},
    "uint32": {"int64"},
    "float32": {"float64"},
    "timestamp_s": {"timestamp", "timestamp_ms"},
    "timestamp_ms": {"timestamp"},
    "varchar": {"json"},
}


def widened_by_spark(old: Type, new: Type) -> bool:
    """Whether Spark's Parquet reader itself brings values of the old type to the new one."""
    return old == new or new.name in _WIDENED_BY_SPARK.get(old.name, ())


def promoted(old: Type, new: Type, nanoseconds: bool) -> Conversion:
    """A column in files that hold the type it had before."""
    before, after = Column(0, "", old, 0), Column(0, "", new, 0)
    own = FROM_PARQUET.get(old.name)
    plain = Reading(nanoseconds)
    read, target = plain.read_type(before), plain.shown_type(after)
    if new.name == "timestamp_ns" and nanoseconds:
        return Conversion(read, lambda value: nanoseconds_of(f"CAST({value} AS timestamp_ntz)"))
    return Conversion(read, lambda value: f"CAST({own.convert(value) if own else value} AS {type_sql(target)})")


@dataclass(frozen=True)
class Reading:
    """How the values of one branch of a scan are read and shown.

    `columns`: columns and fields that these files hold in another type than their own, by id.
    `missing`: the ids of columns and fields these files do not have and whose default Spark cannot fill in.
    `names`: the names to ask for, where they are not the columns' own.
    `by_field_id`: whether the files carry field ids; if not, names decide.
    """

    nanoseconds: bool = False
    conversions: Mapping[str, Conversion] = field(default_factory=lambda: FROM_PARQUET)
    columns: Mapping[int, Conversion] = field(default_factory=dict)
    missing: Set[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)
    by_field_id: bool = True

    def read_type(self, column: Column) -> T.DataType:
        """The Spark type to ask of the Parquet reader, with field ids below the top."""
        conversion = self._conversion(column)
        if conversion:
            return conversion.read
        match column.type.name:
            case "list":
                return T.ArrayType(self.read_type(column.children[0]))
            case "map":
                return T.MapType(self.read_type(column.children[0]), self.read_type(column.children[1]))
            case "struct":
                return T.StructType(
                    [self.read_field(child) for child in column.children if child.id not in self.missing]
                )
            case _:
                return self.shown_type(column)

    def read_name(self, column: Column) -> str:
        """The name to ask a file for a column by."""
        return self.names.get(column.id, column.name)

    def read_field(self, column: Column) -> T.StructField:
        """The field to ask the Parquet reader for."""
        metadata = {FIELD_ID: column.id} if self.by_field_id else {}
        return T.StructField(self.read_name(column), self.read_type(column), True, metadata)

    def shown_type(self, column: Column) -> T.DataType:
        """The Spark type a user sees."""
        return shown_type(column, self.nanoseconds)

    def is_shown_as_read(self, column: Column) -> bool:
        """Whether a column needs no conversion."""
        below = any(item.id in self.names for child in column.children for item in child.walk())
        return not below and not any(self._differs(item) for item in column.walk())

    def _differs(self, column: Column) -> bool:
        return column.id in self.missing or self._conversion(column) is not None

    def _conversion(self, column: Column) -> Conversion | None:
        if column.id in self.columns:
            return self.columns[column.id]
        if column.type.name == "timestamp_ns" and self.nanoseconds:
            return None
        return self.conversions.get(column.type.name)

    def shown(self, column: Column, value: Sql, depth: int = 0) -> Sql:
        """Convert what was read of a column to what users see; `depth` tells the variables of nested lambdas apart."""
        if self.is_shown_as_read(column):
            return value
        if column.id in self.missing:
            return default_value(column, self.shown_type(column))
        item = f"`_penstock_item_{depth}`"
        match column.type.name:
            case "list":
                return f"transform({value}, {item} -> {self.shown(column.children[0], item, depth + 1)})"
            case "map":
                key, entry = (self.shown(child, f"{item}.{part}", depth + 1) for child, part in _entries(column))
                shown = f"named_struct('key', {key}, 'value', {entry})"
                return f"map_from_entries(transform(map_entries({value}), {item} -> {shown}))"
            case "struct":
                fields = (
                    f"{text_sql(child.name)}, {self.shown(child, self._field(value, child), depth)}"
                    for child in column.children
                )
                return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
            case _:
                conversion = self._conversion(column)
                return conversion.convert(value) if conversion else value

    def _field(self, value: Sql, child: Column) -> Sql:
        return f"{value}.{spark_quoted(self.read_name(child))}"


def _entries(column: Column) -> Iterable[tuple[Column, str]]:
    return zip(column.children, ("`key`", "`value`"), strict=True)
