"""Finds where rows are, without a Python worker: a task gives one bitmap for each file that it met."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterator

from pyspark.sql import DataFrame

from penstock.spark.executor_classes import add_to_executors
from penstock.spark.jvm import new_object, query_execution

_SOURCES = ("FoundRows",)
_HEAD = struct.Struct(">qi")
_NO_FILE = -(2**63)


def found_rows(frame: DataFrame) -> list[tuple[int | None, bytes]]:
    """Files, or None, and the positions in them, packed as portable bitmaps of 64 bits; a file may be there again.

    The rows have two columns, a file that may be NULL and a position, both of them longs.
    """
    spark = frame.sparkSession
    add_to_executors(spark, *_SOURCES)
    told = new_object(spark, "penstock.FoundRows", _SOURCES).find(query_execution(frame))
    return list(_places(b64decode(told)))


def _places(told: bytes) -> Iterator[tuple[int | None, bytes]]:
    at = 0
    while at < len(told):
        file, length = _HEAD.unpack_from(told, at)
        at += _HEAD.size
        yield None if file == _NO_FILE else file, told[at : at + length]
        at += length
