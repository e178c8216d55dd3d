"""Rows of files that other writers have made, which do not keep what the table's schema promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

import penstock.delta
from penstock.delta.format.actions import AddFile, Metadata, Protocol
from penstock.delta.format.schema import schema_string
from support.delta_judges import by_duckdb, in_order

_NUMBERS = T.ArrayType(T.IntegerType(), containsNull=False)
_TYPES = {
    "l": _NUMBERS,
    "m": T.MapType(T.StringType(), _NUMBERS, valueContainsNull=False),
    "s": T.StructType([T.StructField("x", T.IntegerType(), nullable=False), T.StructField("l", _NUMBERS)]),
}
_ARROW = pa.schema(
    {
        "id": pa.int32(),
        "l": pa.list_(pa.int32()),
        "m": pa.map_(pa.string(), pa.list_(pa.int32())),
        "s": pa.struct({"x": pa.int32(), "l": pa.list_(pa.int32())}),
    }
)
_ROWS: list[dict[str, Any]] = [
    {"id": 1, "l": [1, None, 3], "m": [("a", [None, 2]), ("b", None)], "s": {"x": None, "l": [4, None]}},
    {"id": 2, "l": [4], "m": [], "s": None},
]


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_nulls_where_the_schema_has_none_stay_nulls(spark: SparkSession, tmp_path: Path, mapping: str) -> None:
    struct = T.StructType([T.StructField("id", T.IntegerType()), *(T.StructField(n, _TYPES[n]) for n in _TYPES)])
    schema = schema_string(struct if mapping == "none" else _mapped(struct))
    metadata = Metadata("1", schema, configuration={"delta.columnMapping.mode": mapping})
    pq.write_table(pa.Table.from_pylist(_ROWS, schema=_ARROW), tmp_path / "x.parquet")
    add = AddFile("x.parquet", {}, (tmp_path / "x.parquet").stat().st_size, 0, True)
    (tmp_path / "_delta_log").mkdir()
    lines = [action.to_json() for action in (Protocol(2, 5), metadata, add)]
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines))
    table = penstock.delta.open(str(tmp_path), spark=spark)
    texts = table.read().selectExpr("id", "to_json(struct(l, m, s), map('ignoreNullFields', 'false'))")
    first = '{"l":[1,null,3],"m":{"a":[null,2],"b":null},"s":{"x":null,"l":[4,null]}}'
    expected = [(1, first), (2, '{"l":[4],"m":{},"s":null}')]
    assert sorted(map(tuple, texts.collect())) == expected
    assert table.read().where("exists(l, x -> x IS NULL)").count() == 1
    table.delete("exists(l, x -> x = 4)")
    texts = table.read().selectExpr("id", "to_json(struct(l, m, s), map('ignoreNullFields', 'false'))")
    assert sorted(map(tuple, texts.collect())) == expected[:1]
    assert in_order(by_duckdb(tmp_path, "id, l, s.l")) == in_order([(1, [1, None, 3], [4, None])])


def _mapped(kind: T.StructType) -> T.StructType:
    """The schema with column mapping, under the names that it has anyway."""
    told = json.loads(json.dumps(kind.jsonValue()))

    def number(struct: dict[str, Any], first: int) -> None:
        for place, field in enumerate(struct["fields"], first):
            field["metadata"] = {"delta.columnMapping.id": place, "delta.columnMapping.physicalName": field["name"]}
            if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
                number(field["type"], first + 10)

    number(told, 1)
    return T.StructType.fromJson(told)
