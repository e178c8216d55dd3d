"""Assigns Arrow's columns to those of a table without Spark, where the values stay what they are.

What takes more than that (a rounding, a text of a number, a zone, a value that does not fit) is left to Spark, whose
rules hold for DataFrames: so the two ways cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import InvalidError
from penstock.schema.columns import Column
from penstock.spark.column_assignment import source_places, writer_type
from penstock.spark.releases import arrow_type_of, spark_schema_of

ROWS = "each row"
_NANOSECONDS = pa.int64()
_CACHED = 1024
_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
    pa.time64("ns"): pa.time64("us"),
}
_MOST_DIGITS = 38
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}

Fill = Callable[[Column, int], pa.Array | None]  # the values of a column that is not given; None where Spark has them


def plain_rows(rows: pa.Table, columns: Sequence[Column], table: str, *, by_name: bool) -> pa.Table:
    """The same rows in types that Spark has too; an InvalidError names a column that does not fit, or has none."""
    places = source_places(rows.column_names, columns, table, by_name=by_name, giver=ROWS)
    targets = {place: column for column, place in zip(columns, places, strict=True) if place is not None}
    arrays = [_plain(rows.column_names[i], values, targets[i]) for i, values in enumerate(rows.columns)]
    for name, values in zip(rows.column_names, arrays, strict=True):
        if any(_has_repeated_keys(chunk) for chunk in values.chunks):
            raise InvalidError(f"column {name}: a map has a key twice, and DuckDB reads no such map; leave one of them")
    return pa.Table.from_arrays(arrays, names=rows.column_names)


def _plain(name: str, values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    kind = values.type
    if types.is_timestamp(kind) and kind.unit == "ns":
        if column.type.name == "timestamp_ns" and kind.tz is None:
            return values.cast(_NANOSECONDS)
        return _microseconds(values)
    if isinstance(kind, pa.UuidType):  # as Spark shows them; their bytes would be taken for texts
        return pa.chunked_array([[None if item is None else str(item) for item in values.to_pylist()]], pa.string())
    plain = _plain_type(kind)
    if plain is None:
        raise InvalidError(f"column {name} is {kind} in Arrow, which Spark has no type for; cast it first")
    if plain == kind:
        return values
    try:
        return values.cast(plain, safe=kind != pa.time64("ns"))
    except pa.ArrowException as error:
        raise InvalidError(f"column {name} is {kind} in Arrow, and cannot be {plain}: {error}; cast it first") from None


def _has_repeated_keys(values: pa.Array) -> bool:
    """Whether a map has a key twice, at any depth: in Arrow, nothing keeps it from that."""
    if types.is_struct(values.type):
        return any(map(_has_repeated_keys, values.flatten()))
    if types.is_list(values.type):
        return _has_repeated_keys(values.flatten())
    if not types.is_map(values.type):
        return False
    ends = values.offsets.to_numpy()
    owners = np.repeat(np.arange(len(values)), np.diff(ends))
    keys, items = (part.slice(ends[0], len(owners)) for part in (values.keys, values.items))
    try:
        pairs = pa.table([pa.array(owners), keys], names=["owner", "key"]).group_by(["owner", "key"]).aggregate([])
    except pa.ArrowNotImplementedError:  # of nested keys
        return _has_repeated_keys(items)
    return len(pairs) < len(owners) or _has_repeated_keys(items)


def _microseconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nanoseconds cut towards the past, as Spark does.

    As numbers: Arrow cuts the clock of a zone, and knows no hour that comes twice.
    """
    numbers = values.cast(_NANOSECONDS)
    cut = pc.divide(numbers, 1000)
    cut = pc.subtract(cut, pc.greater(pc.multiply(cut, 1000), numbers).cast(_NANOSECONDS))
    return cut.cast(_plain_type(values.type))


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of the same values that Spark has; None where it has none."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return None if isinstance(kind, pa.UuidType) else _plain_type(kind.storage_type)
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= _MOST_DIGITS
        return pa.decimal128(kind.precision, kind.scale) if fits else None
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_map(kind):
        return _nested([kind.key_type, kind.item_type], lambda parts: pa.map_(*parts))
    if _is_list(kind):
        return _nested([kind.value_type], lambda parts: pa.list_(parts[0]))
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        names = [field.name for field in fields]
        return _nested([field.type for field in fields], lambda parts: pa.struct(list(zip(names, parts, strict=True))))
    return kind if _is_scalar(kind) else None


def _nested(parts: Sequence[pa.DataType], made: Callable[[list[pa.DataType]], pa.DataType]) -> pa.DataType | None:
    found = [_plain_type(part) for part in parts]
    return None if None in found else made([part for part in found if part is not None])


def _is_list(kind: pa.DataType) -> bool:
    """Whether Arrow casts a type to plain lists; of list views it makes arrays that end too early."""
    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _is_scalar(kind: pa.DataType) -> bool:
    tests = (
        types.is_null, types.is_boolean, types.is_signed_integer, types.is_floating, types.is_string, types.is_binary,
        types.is_date32, types.is_time64,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A DataFrame of plain rows."""
    # PySpark cannot make nested columns of no piece at all, such as a table without rows may have.
    pieces = [column if column.num_chunks else pa.chunked_array([pa.nulls(0, column.type)]) for column in rows.columns]
    return spark.createDataFrame(pa.Table.from_arrays(pieces, schema=rows.schema), spark_schema_of(rows.schema))


def assigned_arrow(
    rows: pa.Table, columns: Sequence[Column], table: str, *, by_name: bool, fill: Fill
) -> pa.Table | None:
    """Plain rows as exactly the table's columns, in the writer's types; None where Spark has to convert them."""
    places = source_places(rows.column_names, columns, table, by_name=by_name, giver=ROWS)
    arrays = []
    for column, place in zip(columns, places, strict=True):
        values = fill(column, rows.num_rows) if place is None else _assigned(rows.column(place), column)
        if values is None:
            return None
        arrays.append(values)
    return pa.Table.from_arrays(arrays, names=[f"v{i}" for i in range(len(arrays))])


def no_values(column: Column, count: int) -> pa.Array | None:
    """NULL for every row; None for a type that only Spark makes values of."""
    kind = _target(column)
    return None if kind is None else pa.nulls(count, kind)


def _assigned(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray | pa.Array | None:
    target = _target(column)
    if target is None:
        return None
    source = values.type
    if types.is_null(source):
        return pa.nulls(len(values), target)
    if column.type.name == "timestamp_ns" and source == _NANOSECONDS:
        return values
    if _is_same(source, target):
        return values.cast(target)
    if types.is_float64(source) and types.is_float32(target):
        return _narrowed(values)
    try:
        if types.is_integer(source) and types.is_decimal(target):
            return values.cast(pa.decimal128(_INTEGER_DIGITS[source.bit_width], 0)).cast(target)
        return values.cast(target) if _is_exact(source, target) else None
    except pa.ArrowInvalid:  # a value that does not fit, or not as it is
        return None


@lru_cache(_CACHED)
def _target(column: Column) -> pa.DataType | None:
    """The type in which Spark hands a column's values to the writer; None for one that is Spark's own."""
    if any(item.type.name == "variant" for item in column.walk()):
        return None
    return arrow_type_of(writer_type(column))


def _is_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether two types are of the same values; how they name the parts of lists and maps does not matter."""
    if types.is_struct(source) and types.is_struct(target):
        return _have_same_fields(source, target) and all(
            _is_same(source.field(i).type, target.field(i).type) for i in range(source.num_fields)
        )
    if types.is_map(source) and types.is_map(target):
        return _is_same(source.key_type, target.key_type) and _is_same(source.item_type, target.item_type)
    if types.is_list(source) and types.is_list(target):
        return _is_same(source.value_type, target.value_type)
    return bool(source == target or (types.is_time64(source) and types.is_time64(target)))


def _have_same_fields(source: pa.DataType, target: pa.DataType) -> bool:
    names = [[kind.field(i).name for i in range(kind.num_fields)] for kind in (source, target)]
    return names[0] == names[1]


def _is_exact(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast gives Spark's values, or fails: of whole numbers, and of decimals, also inside of lists."""
    if types.is_list(source) and types.is_list(target):
        return _is_exact(source.value_type, target.value_type)
    if types.is_struct(source) and types.is_struct(target):
        return _have_same_fields(source, target) and all(
            _is_exact(source.field(i).type, target.field(i).type) for i in range(source.num_fields)
        )
    if types.is_integer(source):
        return bool(types.is_integer(target) or types.is_floating(target))
    if types.is_float32(source):
        return bool(types.is_float64(target))
    return bool(types.is_decimal(source) and types.is_decimal(target)) or _is_same(source, target)


def _narrowed(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Doubles as floats; None where one is too large."""
    narrow = values.cast(pa.float32(), safe=False)
    lost = pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(values)))
    return None if pc.any(lost).as_py() else narrow
