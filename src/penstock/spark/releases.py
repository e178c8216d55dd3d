"""Knows the releases of Spark that Penstock runs on, and everything that differs between them."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas import types as arrow_types

from penstock.errors import UnsupportedError

_OLDEST, _NEWEST = (4, 1), (4, 3)
_SUPPORTED = f"Spark {_OLDEST[0]}.{_OLDEST[1]} to {_NEWEST[0]}.{_NEWEST[1]}"
_WAY_OUT = f"pip install 'pyspark>={_OLDEST[0]}.{_OLDEST[1]},<{_NEWEST[0]}.{_NEWEST[1] + 1}'"

# How timestamps with a zone get UTC as theirs: until 4.1 they have no other.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(arrow_types.to_arrow_type).parameters else {}


def check_installed(version: str) -> None:
    """Refuse a PySpark that is too old to import Penstock with: before 4.1 it has neither TIME nor GEOMETRY."""
    if _release(version) < _OLDEST:
        raise UnsupportedError(
            f"Penstock runs on {_SUPPORTED} and this is PySpark {version}, which has no types for times of day and "
            f"geometries; {_WAY_OUT}"
        )


def check_session(version: str) -> None:
    """Refuse a session of a release that Penstock was not made for: it would reach into internals that moved."""
    if not _OLDEST <= _release(version) <= _NEWEST:
        raise UnsupportedError(f"Penstock runs on {_SUPPORTED} and this session runs {version}; {_WAY_OUT}")


def required_settings(version: str) -> dict[str, str]:
    """What the scan depends on; it can be set while a session runs."""
    needed = {"spark.sql.timeType.enabled": "true"}
    if _release(version) < (4, 2):  # where GEOMETRY is there, and off
        needed["spark.sql.geospatial.enabled"] = "true"
    return needed


def reads_geometries() -> bool:
    """Whether Spark's Parquet reader knows GEOMETRY: in 4.1 it gives the bytes alone."""
    return _release(pyspark.__version__) >= (4, 2)


def has_views_of_catalogs(version: str) -> bool:
    """Whether a catalog can have views, CHANGES FROM VERSION, and tables that say how they evolve: from 4.2 on."""
    return _release(version) >= (4, 2)


def arrow_schema_of(schema: T.StructType) -> pa.Schema:
    """The schema in which Spark hands rows to Arrow."""
    return arrow_types.to_arrow_schema(schema, **_UTC)


def arrow_type_of(kind: T.DataType) -> pa.DataType:
    """The type in which Spark hands values to Arrow."""
    return arrow_types.to_arrow_type(kind, **_UTC)


def spark_schema_of(schema: pa.Schema) -> T.StructType:
    """The schema that Spark gives rows of Arrow's; timestamps without a zone have none there either."""
    return arrow_types.from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _release(version: str) -> tuple[int, int]:
    """The first two numbers of a version: builds of vendors have all kinds of text after them."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
