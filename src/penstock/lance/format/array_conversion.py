"""Arrays between the types of a leaf and those of its namespace: each value whole, or an error that names it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.errors import InvalidError

_ZONED = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
_SHOWN = 80  # characters of a value in an error
_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view, kinds.is_large_list_view)
_LISTS_MADE = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
_WIDER = {
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
}


def convert_array(
    array: pa.Array | pa.ChunkedArray, target: pa.DataType, column: str, leaf: str
) -> pa.Array | pa.ChunkedArray:
    """The array in the target type; InvalidError names the first value that is none of that type.

    Values stay what they are, with three exceptions: floats round to narrower floats, decimals to floats, and
    timestamps lose what is finer than a microsecond. Naive timestamps are in UTC.
    """
    if array.type.equals(target):
        return array
    place = _Place(column, leaf)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([_converted(chunk, target, place) for chunk in array.chunks], target)
    return _converted(array, target, place)


def null_array(length: int, target: pa.Field, leaf: str) -> pa.Array:
    """NULLs for a column that the leaf, or the rows written to it, have not."""
    if not target.nullable:
        raise _Place(target.name, leaf).absent()
    return pa.nulls(length, target.type)


def readable(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes values of this type, at every depth."""
    if isinstance(kind, pa.BaseExtensionType):
        return readable(kind.storage_type)
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return readable(kind.value_type)
    if kinds.is_struct(kind):
        return pa.struct([_readable_field(field) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(_readable_field(kind.key_field), _readable_field(kind.item_field))
    if _is_list(kind):
        return pa.list_(_readable_field(kind.value_field))
    if kinds.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if kinds.is_time(kind):
        return pa.time64("ns")
    if kinds.is_fixed_size_binary(kind):
        return pa.binary()
    if kinds.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return _WIDER.get(kind, kind)


def _readable_field(field: pa.Field) -> pa.Field:
    return field.with_type(readable(field.type))


def _is_list(kind: pa.DataType) -> bool:
    return any(belongs(kind) for belongs in _LISTS)


@dataclass(frozen=True)
class _Place:
    """Where in a leaf an array comes from or goes to, for errors."""

    path: str
    leaf: str

    def inner(self, name: str) -> _Place:
        return replace(self, path=f"{self.path}.{name}")

    def misfit(self, array: pa.Array, position: int, target: pa.DataType) -> InvalidError:
        return InvalidError(
            f"column {self.path} of leaf {self.leaf}: the value {_shown(array, position)} of type {array.type} is no "
            f"{target}; change the value, or give the column a type that holds it"
        )

    def null(self) -> InvalidError:
        return InvalidError(
            f"column {self.path} of leaf {self.leaf} is NULL but must not be; fill it or make it nullable"
        )

    def absent(self) -> InvalidError:
        return InvalidError(
            f"column {self.path} of leaf {self.leaf} has no values and must not be NULL; add it or make it nullable"
        )


def _shown(array: pa.Array, position: int) -> str:
    try:
        value = array[position].as_py()
        text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    except (ValueError, OverflowError):  # years that Python's calendar does not know
        text = str(array.slice(position, 1).cast(pa.string())[0])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _converted(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    if array.type.equals(target):
        return array
    array = _plain(array)
    if array.type.equals(target):
        return array
    if isinstance(target, pa.BaseExtensionType):
        return target.wrap_array(_converted(array, target.storage_type, place))
    if kinds.is_dictionary(target):
        return _converted(array, target.value_type, place).dictionary_encode().cast(target)
    if array.null_count == len(array):
        return pa.nulls(len(array), target)
    if kinds.is_struct(target) and kinds.is_struct(array.type):
        return _structs(array, target, place)
    if kinds.is_map(target) and kinds.is_map(array.type):
        return _maps(array, target, place)
    if isinstance(target, _LISTS_MADE) and _is_list(array.type):
        return _lists(array, target, place)
    return _atoms(array, target, place)


def _plain(array: pa.Array) -> pa.Array:
    """The values without dictionary, run ends or extension; views as their kin, which have all of Arrow's casts."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if kinds.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if kinds.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array))
    if kinds.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if kinds.is_binary_view(array.type) else array


def _structs(array: pa.StructArray, target: pa.StructType, place: _Place) -> pa.Array:
    hidden = pc.is_null(array)
    sources = array.flatten()  # unlike the bare fields, NULL wherever the struct is
    children = []
    for field in target:
        inner = place.inner(field.name)
        index = _field_index(array.type, field.name, inner)
        if index is None and not field.nullable:
            raise inner.absent()
        source = pa.nulls(len(array)) if index is None else sources[index]
        child = _converted(source, field.type, inner)
        if not field.nullable and child.null_count > hidden.true_count:
            raise inner.null()
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=hidden)


def _field_index(kind: pa.StructType, name: str, place: _Place) -> int | None:
    names = [field.name for field in kind]
    found = [i for i, other in enumerate(names) if other == name]
    found = found or [i for i, other in enumerate(names) if other.lower() == name.lower()]
    if len(found) > 1:
        raise InvalidError(f"column {place.path} of leaf {place.leaf} is one of several fields {names}; rename them")
    return found[0] if found else None


def _maps(array: pa.MapArray, target: pa.MapType, place: _Place) -> pa.Array:
    entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), ("value", array.type.item_type)])
    lists = array.cast(pa.list_(entry))  # maps themselves cannot be flattened
    keys, items = lists.flatten().flatten()
    keys = _elements(keys, target.key_field, place.inner("key"))
    items = _elements(items, target.item_field, place.inner("value"))
    return pa.MapArray.from_arrays(_offsets(lists).cast(pa.int32()), keys, items, target, mask=pc.is_null(array))


def _lists(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    values = _elements(array.flatten(), target.value_field, place.inner("element"))
    if kinds.is_fixed_size_list(target):
        wrong = pc.index(pc.not_equal(pc.list_value_length(array), target.list_size), True).as_py()
        if wrong >= 0:
            raise place.misfit(array, wrong, target)
        return _fixed(values, target, pc.is_null(array))
    made, offset = (pa.LargeListArray, pa.int64()) if kinds.is_large_list(target) else (pa.ListArray, pa.int32())
    return made.from_arrays(_offsets(array).cast(offset), values, type=target, mask=pc.is_null(array))


def _elements(values: pa.Array, field: pa.Field, place: _Place) -> pa.Array:
    converted = _converted(values, field.type, place)
    if not field.nullable and converted.null_count:
        raise place.null()
    return converted


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).cast(pa.int64()).fill_null(0)
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])


def _fixed(values: pa.Array, target: pa.FixedSizeListType, hidden: pa.BooleanArray) -> pa.Array:
    """Lists of one length; `values` has none for the hidden ones, which take those of the first list as filler."""
    size = target.list_size
    if size == 0:  # Arrow divides by it
        return pa.array([None if null else [] for null in hidden.to_pylist()], target)
    if hidden.true_count:
        seen = ~hidden.to_numpy(zero_copy_only=False)
        first = np.where(seen, np.cumsum(seen) - 1, 0) * size
        values = values.take(pa.array((first[:, None] + np.arange(size)).ravel()))
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=hidden)


def _atoms(array: pa.Array, target: pa.DataType, place: _Place) -> pa.Array:
    rule = _RULES.get((_family(array.type), _family(target)))
    if rule is None:
        raise place.misfit(array, pc.index(pc.is_valid(array), True).as_py(), target)
    try:
        return rule(array, target)
    except pa.ArrowException as error:
        raise place.misfit(array, _first_misfit(array, target, rule), target) from error


def _first_misfit(array: pa.Array, target: pa.DataType, rule: _Rule) -> int:
    def fails(length: int) -> bool:
        try:
            rule(array.slice(0, length), target)
        except pa.ArrowException:
            return True
        return False

    return bisect_left(range(1, len(array)), True, key=fails)


_Rule = Callable[[pa.Array, pa.DataType], pa.Array]
_FAMILIES: tuple[tuple[str, tuple[Callable[[pa.DataType], bool], ...]], ...] = (
    ("boolean", (kinds.is_boolean,)),
    ("integer", (kinds.is_integer,)),
    ("float", (kinds.is_floating,)),
    ("decimal", (kinds.is_decimal,)),
    ("text", (kinds.is_string, kinds.is_large_string, kinds.is_string_view)),
    ("bytes", (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)),
    ("date", (kinds.is_date,)),
    ("time", (kinds.is_time,)),
    ("timestamp", (kinds.is_timestamp,)),
    ("duration", (kinds.is_duration,)),
)


def _family(kind: pa.DataType) -> str:
    return next((name for name, tests in _FAMILIES if any(belongs(kind) for belongs in tests)), str(kind))


def _verify(right: pa.Array) -> None:
    if not pc.all(right, min_count=0).as_py():
        raise pa.ArrowInvalid("a value does not fit")


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(target)


def _integer_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    if kinds.is_float16(target):  # the one whose range Arrow does not check
        _verify(pc.equal(result.cast(pa.float64()), array.cast(pa.float64())))
    return result


def _integer_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(pa.decimal128(20, 0)).cast(target)  # Arrow wants the digits of the type, not of the values


def _float_to_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    wide = array.cast(pa.float64())
    signed = kinds.is_signed_integer(target)
    limit = 2.0 ** (target.bit_width - signed)  # Arrow's own check of 2**63 depends on the processor
    _verify(pc.and_(pc.less(wide, limit), pc.greater_equal(wide, -limit if signed else 0.0)))
    return wide.cast(target)


def _to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    _verify(pc.or_(pc.is_finite(result), pc.invert(pc.is_finite(array))))
    return result


def _float_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(pa.string()).cast(target)  # its shortest text: Arrow's own way rounds to the scale


def _decimal_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    return _to_float(array.cast(pa.float64()), target)


def _text_to_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = array.cast(target)
    _verify(pc.or_(pc.invert(pc.is_inf(result)), pc.match_substring_regex(array, _INFINITE)))
    return result


def _text_to_timestamp(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    zoned = pc.match_substring_regex(array, _ZONED)
    none = pa.scalar(None, array.type)
    instants = pc.if_else(zoned, array, none).cast(pa.timestamp(target.unit, "UTC"))
    naive = pc.if_else(zoned, none, array).cast(pa.timestamp(target.unit))
    return pc.coalesce(instants.view(target), naive.view(target))


def _timestamp_to_text(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.view(pa.timestamp(array.type.unit, array.type.tz and "UTC")).cast(target)


def _timestamp_to_timestamp(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    if array.type.unit == "ns" and target.unit != "ns":
        array = _microseconds(array)
    return array.view(pa.timestamp(array.type.unit, target.tz)).cast(target)


def _microseconds(array: pa.Array) -> pa.Array:
    """Spark has microseconds only: nanoseconds are floored, so that instants before 1970 keep their order too."""
    numbers = array.view(pa.int64())
    quotient = pc.divide(numbers, 1000)
    below = pc.less(numbers, pc.multiply(quotient, 1000))
    return pc.subtract(quotient, below.cast(pa.int64())).view(pa.timestamp("us"))


def _timestamp_to_date(array: pa.Array, target: pa.DataType) -> pa.Array:
    instants = array.view(pa.timestamp(array.type.unit))
    days = instants.cast(pa.date32())
    _verify(pc.equal(days.cast(instants.type), instants))
    return days.cast(target)


_RULES: dict[tuple[str, str], _Rule] = {
    **{(name, name): _cast for name in ("integer", "decimal", "text", "bytes", "date", "time", "duration")},
    **{(name, "text"): _cast for name in ("boolean", "integer", "float", "decimal", "text", "bytes", "date", "time")},
    **{("text", name): _cast for name in ("boolean", "integer", "decimal", "bytes", "date")},
    ("boolean", "integer"): _cast,
    ("integer", "float"): _integer_to_float,
    ("integer", "decimal"): _integer_to_decimal,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _to_float,
    ("float", "decimal"): _float_to_decimal,
    ("decimal", "integer"): _cast,
    ("decimal", "float"): _decimal_to_float,
    ("text", "float"): _text_to_float,
    ("text", "timestamp"): _text_to_timestamp,
    ("timestamp", "text"): _timestamp_to_text,
    ("timestamp", "timestamp"): _timestamp_to_timestamp,
    ("timestamp", "date"): _timestamp_to_date,
    ("date", "timestamp"): _cast,
}
