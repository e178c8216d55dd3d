"""Converts arrays between the types of a leaf and of its namespace: each value whole, or an error that names it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.errors import InvalidError
from penstock.lance.format.cast_rules import CastRule, cast_rule

_SHOWN = 80  # characters of a value in an error
_LISTS = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view, kinds.is_large_list_view)
_LISTS_MADE = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)


def convert_array(
    array: pa.Array | pa.ChunkedArray, target: pa.DataType, column: str, leaf: str
) -> pa.Array | pa.ChunkedArray:
    """The array in the target type. Raises InvalidError, which names the first value that does not fit that type.

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
    """NULLs for a column that the leaf, or the rows written to it, lack. Raises InvalidError if it takes no NULL."""
    if not target.nullable:
        raise _Place(target.name, leaf).absent()
    return pa.nulls(length, target.type)


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
    rule = cast_rule(array.type, target)
    if rule is None:
        raise place.misfit(array, pc.index(pc.is_valid(array), True).as_py(), target)
    try:
        return rule(array, target)
    except pa.ArrowException as error:
        raise place.misfit(array, _first_misfit(array, target, rule), target) from error


def _first_misfit(array: pa.Array, target: pa.DataType, rule: CastRule) -> int:
    def fails(length: int) -> bool:
        try:
            rule(array.slice(0, length), target)
        except pa.ArrowException:
            return True
        return False

    return bisect_left(range(1, len(array)), True, key=fails)
