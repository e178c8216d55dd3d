"""Hands arrays of a fixed length from Python to Spark as bytes, in the form in which Spark keeps arrays in its rows.

Of an array of Arrow's Spark takes the elements one by one, which for vectors is most of the time of a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.spark.connect.sessions import is_connect
from penstock.spark.executor_classes import add_to_executors, is_isolated
from penstock.spark.jvm import frames, new_object
from penstock.spark.releases import arrow_type_of

PACKED = pa.large_binary()  # the bytes of a batch may be more than the offsets of others count
_CLASSES = ("PackedArrays",)
_WORD = 8  # bytes
_ELEMENTS = frozenset({pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()})


def can_pack(kind: pa.DataType, shown: T.DataType) -> bool:
    """Whether arrays of a type of Arrow's can be handed over as bytes, to be shown as a type of Spark's."""
    return (
        kinds.is_fixed_size_list(kind)
        and kind.value_type in _ELEMENTS
        and isinstance(shown, T.ArrayType)
        and arrow_type_of(shown.elementType) == kind.value_type
    )


def with_packed(schema: pa.Schema, places: Iterable[int]) -> pa.Schema:
    """The schema in which Python hands over rows whose columns at these places are packed."""
    for place in places:
        schema = schema.set(place, schema.field(place).with_type(PACKED))
    return schema


def packed(arrays: pa.FixedSizeListArray) -> pa.Array:
    """The bytes of each array: its length, a bit for each element that is NULL, and the elements, in whole words."""
    rows, length = len(arrays), arrays.type.list_size
    values = arrays.values.slice(arrays.offset * length, rows * length)
    elements = _elements(values)
    start = _WORD + _WORD * -(-length // 64)
    end = start + length * elements.itemsize
    made = np.zeros((rows, -(-end // _WORD) * _WORD), np.uint8)
    made[:, :_WORD] = np.frombuffer(np.int64(length).tobytes(), np.uint8)
    if values.null_count:
        absent = np.asarray(values.is_null()).reshape(rows, length)
        elements = np.where(absent.reshape(-1), elements.dtype.type(0), elements)
        bits = np.packbits(absent, axis=1, bitorder="little")
        made[:, _WORD : _WORD + bits.shape[1]] = bits
    made[:, start:end] = elements.view(np.uint8).reshape(rows, end - start)
    offsets = np.arange(rows + 1, dtype=np.int64) * made.shape[1]
    present = None if arrays.null_count == 0 else pa.array(np.asarray(arrays.is_valid())).buffers()[1]
    return pa.Array.from_buffers(PACKED, rows, [present, pa.py_buffer(offsets), pa.py_buffer(made)])


def takes_packed(spark: SparkSession) -> bool:
    """Whether Spark can be given packed arrays: where all sessions have our classes, on their executors too."""
    return not is_connect(spark) and not is_isolated(spark)


def unpacked(frame: DataFrame, types: Mapping[int, T.DataType]) -> DataFrame:
    """The rows with the packed columns at these places as arrays of these types; of a session that takes them."""
    if not types:
        return frame
    spark = frame.sparkSession
    add_to_executors(spark, *_CLASSES)
    maker = new_object(spark, "penstock.PackedArrays", _CLASSES)
    functions = {place: maker.of(kind.json()) for place, kind in types.items()}
    return DataFrame(frames(spark).applied(frame._jdf, functions), spark)


def _elements(values: pa.Array) -> np.ndarray:
    """The numbers of an array, whatever stands where one is NULL."""
    kind = np.dtype(values.type.to_pandas_dtype())
    buffer = values.buffers()[1]
    if not len(values) or buffer is None:
        return np.zeros(len(values), kind)
    return np.frombuffer(buffer, kind, len(values), values.offset * kind.itemsize)
