"""Bounds in the log, which other readers skip files by."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
import penstock.delta
from support.delta_judges import by_deltalake, by_duckdb


def test_bounds_of_statistics_are_never_too_narrow(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.delta.create(str(tmp_path / "t"), "a DECIMAL(38,2), b DECIMAL(16,0), c STRING", spark=spark)
    a, b = Decimal("123456789012345678901234567890123456.78"), Decimal(9007199254740993)
    c = "x" * 32 + "\U0010ffff" * 3
    table.append(spark.createDataFrame([(a, b, c)], table.schema))
    assert table.read().where(f"a = {a}").count() == 1
    assert table.read().where(f"a >= {a}").count() == 1
    told = json.loads(_added(table)[0]["stats"], parse_float=Decimal)
    assert told["minValues"] == {"a": a, "b": b, "c": "x" * 32}
    assert told["maxValues"] == {"a": a, "b": b}  # no text of 33 characters is above that of c
    for where in (
        f"a >= {a}", f"a <= {a}", f"b >= {b}", f"b <= {b}", f"c > '{'x' * 32}{chr(0x10FFFF)}'", f"c >= '{c}'"
    ):  # fmt: skip
        assert by_duckdb(table.path, "b", where) == [(b,)], where
        exact = where if where[0] == "c" else f"{where[:5]}cast('{where[5:]}' as decimal(38,2))"
        assert by_deltalake(table.path, "b", where=exact) == [(b,)], where


def _added(table: penstock.delta.DeltaTable) -> list[dict[str, Any]]:
    """What the newest commit adds."""
    commit = Path(table.path) / "_delta_log" / f"{table.version:020}.json"
    return [line["add"] for line in map(json.loads, commit.read_text().splitlines()) if "add" in line]
