"""Partition values made of fields of structs, and of whole lists."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from penstock.lance.format.schema_json import schema_to_json
from support.lance_judges import client, in_order, listed_leaves

SCHEMA = "id INT, s STRUCT<a: STRING, inner: STRUCT<ts: TIMESTAMP>>, tags ARRAY<STRING>"


ROWS = """SELECT * FROM VALUES
    (1, named_struct('a', 'x', 'inner', named_struct('ts', timestamp'2025-03-09 07:00:00Z')), array('p', 'q')),
    (2, named_struct('a', 'x', 'inner', named_struct('ts', timestamp'2025-12-01 00:00:00Z')), array('p', 'q')),
    (3, named_struct('a', 'y', 'inner', null), array('pq')), (4, null, null) AS t(id, s, tags)"""


@pytest.mark.slow
def test_fields_of_structs_and_whole_lists_make_partitions(spark: SparkSession, tmp_path: Path) -> None:
    fields = ["s.a", "year(s.inner.ts)", "hash(tags)"]
    namespace = penstock.lance.create(str(tmp_path), "n", SCHEMA, partitioned_by=fields, spark=spark)
    rows = spark.sql(ROWS)
    namespace.append(rows)
    assert in_order(namespace.read().collect()) == in_order(rows.collect())
    names = [name.split("$")[1:3] for name in sorted(listed_leaves(tmp_path, "n"))]
    null = "__HIVE_DEFAULT_PARTITION__"
    assert names == [
        [f"s%2Ea={null}", f"s%2Einner%2Ets_year={null}"],
        ["s%2Ea=x", "s%2Einner%2Ets_year=2025"],
        ["s%2Ea=y", f"s%2Einner%2Ets_year={null}"],
    ]
    for where, ids, kept in [
        ("s.a = 'x'", [1, 2], 1),
        ("s.inner.ts >= '2025-06-01' AND s.inner.ts < '2026-01-01'", [2], 1),
        ("year(s.inner.ts) = 2024", [], 0),
        ("s.a IS NULL", [4], 1),
        ("s.a > 'x'", [3], 1),
    ]:
        assert [row.id for row in namespace.read().where(where).orderBy("id").collect()] == ids
        assert namespace.explain(where).kept == kept
    assert namespace.check().count() == 0
    namespace.delete("s.a = 'x'")
    assert [row.id for row in namespace.read().orderBy("id").collect()] == [3, 4]
    assert namespace.partitioned_by == fields
    for name, named in [("S", r"'S' is partitioned by \(by s\.a\)"), ("tags", "'tags' is partitioned by, so")]:
        with pytest.raises(penstock.InvalidError, match=named):
            namespace.drop_column(name)


def test_a_nested_source_of_another_writer(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("s", pa.struct([("a", pa.string()), ("b", pa.int32())]))])
    columns = [
        {"source-id": 2, "function": "identity", "properties": {}},
        {"source-id": 1, "function": "hash", "properties": {}},
    ]
    properties = {
        "lance.partitioning.enabled": "true",
        "lance.partitioning.partition-columns": json.dumps(columns),
        "lance.partitioning.schema": schema_to_json(schema),
    }
    others = client(tmp_path)
    others.create_namespace(CreateNamespaceRequest(id=["n"], properties=properties))
    rows = pa.table({"id": [1], "s": [{"a": "x", "b": 2}]}, schema=schema)
    others.create_namespace(CreateNamespaceRequest(id=["n", "s.a=x"]))
    lance.write_dataset(rows, namespace_client=others, table_id=["n", "s.a=x", "s_hash=their own"], mode="create")
    namespace = penstock.lance.open(str(tmp_path), "n", spark=spark)
    namespace.append(spark.sql("SELECT 2 AS id, named_struct('a', 'y', 'b', 3) AS s"))
    assert [row.id for row in namespace.read().orderBy("id").collect()] == [1, 2]
    assert [row.id for row in namespace.read().where("s.a = 'x'").collect()] == [1]
    assert namespace.explain("s.a = 'x'").kept == 1
    assert namespace.check().count() == 0
