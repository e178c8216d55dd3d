"""Reads what a Spark Connect server tells of a query's plan: in the text of `explain`, which is all there is."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (B|KiB|MiB|GiB|TiB|PiB|EiB)")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
_SPLITS = re.compile(r"splits=(?:Some\()?(\d+)")
_PLACED = ("Repartition ", "RepartitionByExpression ", "RebalancePartitions ")
_PASSING = ("Project ", "Filter ")
_NODE = re.compile(r"^[ :+\-]*")
_VERY_LARGE = 2**63 - 1
_cores: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def core_count(spark: SparkSession) -> int:
    """How many tasks the server runs at once, as it splits a range by itself."""
    if spark not in _cores:
        found = _SPLITS.search(_explained(spark.range(1)))
        _cores[spark] = int(found[1]) if found else 1
    return _cores[spark]


def estimated_size(frame: DataFrame) -> int:
    """The estimate of the server's optimizer in bytes; very large where it knows nothing."""
    found = _SIZE.search(_explained(frame))
    return min(int(float(found[1]) * _UNITS[found[2]]), _VERY_LARGE) if found else _VERY_LARGE


def is_placed(frame: DataFrame) -> bool:
    """Whether the rows are spread over tasks as the user said."""
    for line in _explained(frame).splitlines()[1:]:
        node = _NODE.sub("", line)
        if not node.startswith(_PASSING):
            return node.startswith(_PLACED)
    return False


def _explained(frame: DataFrame) -> str:
    """The optimized plan, a line a node, with sizes."""
    asked: Any = frame
    return str(asked._explain_string(mode="cost"))
