"""Namespaces written by Spark, read by others: pylance on every leaf, the namespace client, DuckDB's extension."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, ListNamespacesRequest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
import penstock.lance
from support.lance_judges import by_duckdb, by_pylance, check_manifest, client, in_order, listed_leaves, properties

SCHEMA = "id BIGINT NOT NULL, event_date DATE, country STRING, city STRING, ts TIMESTAMP, amount DECIMAL(38,2)"
HOSTILE = (
    "US",
    "",
    None,
    "a/b=c$d%e.f",
    "../..",
    "é😀",
    'it\'s "q"',
    "__HIVE_DEFAULT_PARTITION__",
    " x ",
    "a\\b\tc\x7f",
    "a\x1fb\x1e\\_",
)


def events(spark: SparkSession, rows: int = 60, first: int = 0) -> DataFrame:
    texts = ", ".join(
        "null" if one is None else "'" + one.replace("\\", "\\\\").replace("'", "\\'") + "'" for one in HOSTILE
    )
    return spark.range(first, first + rows).select(
        "id",
        F.expr(
            "element_at(array(date'1969-12-31', date'2025-12-10', null, date'9999-12-31'), 1 + cast(id % 4 as int))"
        ).alias("event_date"),
        F.expr(f"element_at(array({texts}), 1 + cast(id % {len(HOSTILE)} as int))").alias("country"),
        F.expr("if(id % 7 = 0, null, concat('city', id % 5))").alias("city"),
        F.expr("timestamp_micros(1765360800123456 + id * 3600000000)").alias("ts"),
        F.expr("cast('123456789012345678901234567890123456.78' as decimal(38,2)) - id").alias("amount"),
    )


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return in_order(frame.collect())


@pytest.fixture
def namespace(spark: SparkSession, tmp_path: Path) -> penstock.lance.Namespace:
    fields = ["event_date", "country", "bucket(4, city)"]
    return penstock.lance.create(str(tmp_path), "events", SCHEMA, partitioned_by=fields, spark=spark)


def test_what_spark_writes_all_others_read(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.append(events(spark, 40))
    namespace.append(events(spark, 20, first=40))
    expected = rows_of(events(spark))
    assert rows_of(namespace.read()) == expected
    assert rows_of(penstock.lance.open(str(tmp_path), "events", spark=spark).read()) == expected
    leaves = by_pylance(tmp_path, "events")
    told = [tuple(row.values()) for table in leaves.values() for row in table.to_pylist()]
    assert in_order([(*row[:4], row[4].replace(tzinfo=None), row[5]) for row in told]) == expected
    assert in_order(by_duckdb(tmp_path, "events", "id, event_date, country, city, amount")) == in_order(
        (*row[:4], row[5]) for row in expected
    )
    assert len(leaves) == namespace.partitions().count()


def test_lances_client_can_change_the_root_after_every_kind_of_write(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    """Several leaves below one parent: each namespace is in the manifest once."""
    rows = events(spark, 40).where("country in ('US', '..') and event_date is not null").coalesce(1)
    for write in (
        lambda: namespace.append(rows),
        lambda: namespace.append(rows.withColumn("country", F.lit("new"))),
        lambda: namespace.delete("country = 'US' and event_date = '1969-12-31' or id = 5"),
        lambda: namespace.overwrite(rows),
        lambda: namespace.add_column("note STRING"),
        lambda: namespace.align(),
        lambda: namespace.append(rows.union(rows.withColumn("country", F.lit("later"))).coalesce(1)),
        lambda: namespace.compact(),
    ):
        assert write() is not None
        check_manifest(tmp_path)
    assert namespace.read().count() == 3 * rows.count()


def test_properties_are_those_of_the_specification(tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    told = properties(tmp_path, "events")
    assert told["lance.partitioning.enabled"] == "true"
    assert json.loads(told["lance.partitioning.partition-columns"]) == [
        {"name": "event_date", "source-id": 1, "function": "identity", "properties": {}},
        {"name": "country", "source-id": 2, "function": "identity", "properties": {}},
        {
            "name": "city",
            "source-id": 3,
            "function": "bucket",
            "properties": {"num-buckets": "4", "hash": "murmur3_x86_32"},
        },
    ]
    fields = json.loads(told["lance.partitioning.schema"])["fields"]
    assert [field["name"] for field in fields] == ["id", "event_date", "country", "city", "ts", "amount"]
    assert [field["nullable"] for field in fields] == [False, True, True, True, True, True]
    assert namespace.partitioned_by == ["event_date", "country", "bucket(4, city)"]


def test_names_of_leaves(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    namespace.append(events(spark).where("id in (0, 1, 3, 5)"))
    assert sorted(name.removeprefix("events$") for name in listed_leaves(tmp_path, "events")) == [
        "event_date=1969-12-31$country=US$city_bucket=__HIVE_DEFAULT_PARTITION__",
        "event_date=2025-12-10$country=$city_bucket=0",
        "event_date=2025-12-10$country=é😀$city_bucket=1",
        "event_date=9999-12-31$country=a%2Fb%3Dc%24d%25e%2Ef$city_bucket=1",
    ]
    for object_id, location in listed_leaves(tmp_path, "events").items():
        assert location.removeprefix(f"{tmp_path}/")[8:] == f"_{object_id}"


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (["truncate(2, s)", "truncate(10, i)"], {"s_trunc=ab$i_trunc=120", "s_trunc=é😀$i_trunc=-10"}),
        (["hash(s)"], None),
        (["hash(i, s)", "year(ts)"], None),
        (
            ["year(ts)", "month(ts)", "day(ts)", "hour(ts)"],
            {"ts_year=2025$ts_month=03$ts_day=09$ts_hour=07", "ts_year=1600$ts_month=02$ts_day=29$ts_hour=00"},
        ),
        (["i", "bucket(3, i)", "s", "d", "b", "f"], None),
    ],
)
def test_functions(spark: SparkSession, tmp_path: Path, fields: list[str], names: set[str] | None) -> None:
    schema = "i INT, s STRING, ts TIMESTAMP, d DATE, b BOOLEAN, f DOUBLE"
    rows = spark.sql(
        "SELECT * FROM VALUES (123, 'abc', timestamp'2025-03-09 07:59:59.999999', date'2025-03-09', true, -0.0D),"
        " (-7, 'é😀x', timestamp'1600-02-29 00:00:00', date'0001-01-01', false, double('NaN')),"
        f" (null, null, null, null, null, null) AS t({', '.join(part.split()[0] for part in schema.split(', '))})"
    )
    namespace = penstock.lance.create(str(tmp_path), "n", schema, partitioned_by=fields, spark=spark)
    namespace.append(rows)
    assert list(map(repr, rows_of(namespace.read()))) == list(map(repr, rows_of(rows)))  # NaN equals itself there
    leaves = {name.removeprefix("n$") for name in listed_leaves(tmp_path, "n")}
    assert len(leaves) == 3
    assert names is None or names < leaves
    assert sum("__HIVE_DEFAULT_PARTITION__" in name for name in leaves) == 1


def test_times_are_partitioned_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        namespace = penstock.lance.create(
            str(tmp_path), "n", "ts TIMESTAMP", partitioned_by=["day(ts)", "hour(ts)"], spark=spark
        )
        namespace.append(spark.sql("SELECT timestamp'2025-12-10 23:15:00' AS ts"))
        assert list(listed_leaves(tmp_path, "n")) == ["n$ts_day=11$ts_hour=02"]
        found = namespace.read().where("ts >= timestamp'2025-12-10 23:00:00' AND ts < timestamp'2025-12-11 00:00:00'")
        assert found.count() == 1
        assert (
            namespace.explain("ts < timestamp'2025-12-10 22:00:00' and ts >= timestamp'2025-12-10 21:00:00'").kept == 0
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_namespace_inside_of_others(spark: SparkSession, tmp_path: Path) -> None:
    namespace = penstock.lance.create(str(tmp_path), "db$own$n", "id INT", partitioned_by=["id"], spark=spark)
    namespace.append(spark.range(2).selectExpr("cast(id AS int) AS id"))
    assert set(listed_leaves(tmp_path, "db$own$n")) == {"db$own$n$id=0", "db$own$n$id=1"}
    assert penstock.lance.open(str(tmp_path), "db$own$n", spark=spark).read().where("id = 1").count() == 1
    second = penstock.lance.create(str(tmp_path), "db$second", "id INT", partitioned_by=["id"], spark=spark)
    assert second.read().count() == 0
    assert namespace.delete("id = 0") is not None
    check_manifest(tmp_path)
    assert client(tmp_path).list_namespaces(ListNamespacesRequest(id=["db"])).namespaces == ["own", "second"]
    assert not list(tmp_path.glob("__penstock*"))  # notes of writes go when they are done
    for name in ("db$second$inside", "db$$n", "db$", "db$a b ", "db$own$n"):
        with pytest.raises(penstock.InvalidError, match=re.escape(repr(name))):
            penstock.lance.create(str(tmp_path), name, "id INT", partitioned_by=["id"], spark=spark)


def test_namespaces_that_are_not_there(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    with pytest.raises(penstock.InvalidError, match="has a namespace 'events' already"):
        penstock.lance.create(str(tmp_path), "events", SCHEMA, partitioned_by=["id"], spark=spark)
    with pytest.raises(penstock.NotFoundError, match="no namespace 'other'"):
        penstock.lance.open(str(tmp_path), "other", spark=spark)
    with pytest.raises(penstock.NotFoundError, match="is no Lance namespace"):
        penstock.lance.open(str(tmp_path / "nowhere"), "events", spark=spark)


def test_versions_and_time_travel(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    first = namespace.append(events(spark, 10))
    second = namespace.append(events(spark, 10, first=10))
    third = namespace.delete("country = 'US' OR id = 12")
    namespace.overwrite(events(spark, 3, first=100))
    fifth = namespace.append(events(spark, 1, first=200).withColumn("country", F.lit("US")))
    ids = [{row.id for row in namespace.read(version=version).collect()} for version in (first, second, third, fifth)]
    assert ids == [set(range(10)), set(range(20)), set(range(20)) - {0, 11, 12}, {100, 101, 102, 200}]
    told = namespace.versions().collect()
    assert [row.operation for row in told] == ["create", "append", "append", "delete", "overwrite", "append"]
    assert [row.version for row in told[1:4]] == [first, second, third]
    assert namespace.read(timestamp=told[2].timestamp.isoformat() + "+00:00").count() == 20
    assert namespace.partitions(version=first).count() <= 10
    with pytest.raises(penstock.NotFoundError, match="version 999"):
        namespace.read(version=999)
    with pytest.raises(penstock.NotFoundError, match="no version at or before"):
        namespace.read(timestamp="1999-01-01 00:00:00+00:00")


def test_deletes(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    namespace.append(events(spark))
    expected = events(spark)
    for where in ("country = 'é😀'", "id % 9 = 1 AND city IS NOT NULL", "city IS NULL", "id = 12345"):
        made = namespace.delete(where)
        assert (made is None) == (where == "id = 12345")
        expected = expected.where(f"NOT coalesce({where}, false)")
        assert rows_of(namespace.read()) == rows_of(expected)
    total = sum(table.num_rows for table in by_pylance(tmp_path, "events").values())
    assert total == expected.count()
    assert not [name for name in listed_leaves(tmp_path, "events") if "country=é😀" in name]
    other = spark.createDataFrame([(3,), (13,)], "id BIGINT")
    other.createOrReplaceTempView("gone")
    namespace.delete("id IN (SELECT id FROM gone)")
    assert rows_of(namespace.read()) == rows_of(expected.where("id NOT IN (3, 13)"))
    namespace.delete("true")
    assert namespace.read().count() == 0
    assert listed_leaves(tmp_path, "events") == {}
    namespace.append(events(spark, 5))
    assert rows_of(namespace.read()) == rows_of(events(spark, 5))


def test_overwrite_and_compaction(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    assert namespace.compact() is None
    for part in range(4):
        namespace.append(events(spark, 20, first=part * 20).withColumn("country", F.lit("US")))
    namespace.delete("id % 2 = 0")
    expected = rows_of(namespace.read())
    fragments = sum(len(lance.dataset(at).get_fragments()) for at in listed_leaves(tmp_path, "events").values())
    namespace.compact()
    assert rows_of(namespace.read()) == expected
    left = [len(lance.dataset(at).get_fragments()) for at in listed_leaves(tmp_path, "events").values()]
    assert set(left) == {1}
    assert sum(left) < fragments
    assert namespace.compact() is None
    namespace.overwrite(events(spark, 0))
    assert namespace.read().count() == 0
    assert listed_leaves(tmp_path, "events") == {}


def test_leaves_of_other_writers(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    namespace.append(events(spark, 4).where("id = 1"))
    others = client(tmp_path)
    others.create_namespace(CreateNamespaceRequest(id=["events", "event_date=2024-02-29"]))
    others.create_namespace(CreateNamespaceRequest(id=["events", "event_date=2024-02-29", "country=FR"]))
    leaf = ["events", "event_date=2024-02-29", "country=FR", "city=2"]
    rows = pa.table({"COUNTRY": ["FR"], "id": pa.array([7], pa.int32()), "extra": [1.5]})
    lance.write_dataset(rows, namespace_client=others, table_id=leaf, mode="create")
    others.declare_table(DeclareTableRequest(id=[*leaf[:3], "city_bucket=1"]))
    assert in_order((row.id, row.country) for row in namespace.read().collect()) == [(1, ""), (7, "FR")]
    assert namespace.read().where("country = 'FR'").collect()[0].id == 7
    assert namespace.explain("country = 'FR'").kept == 2  # one of them is declared only
    assert namespace.explain("event_date = date'2024-03-01'").kept == 0
    lance.write_dataset(rows, _path(tmp_path, leaf), mode="append")
    assert namespace.read().where("country = 'FR'").count() == 2
    namespace.delete("id = 7")
    assert namespace.read().where("country = 'FR'").count() == 0


def test_rows_that_others_add_to_our_leaves(
    spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace
) -> None:
    namespace.append(events(spark, 4).where("id = 1"))
    [path] = listed_leaves(tmp_path, "events").values()
    dataset = lance.dataset(path)
    lance.write_dataset(dataset.to_table(), path, mode="append")
    assert namespace.read().count() == 1
    assert namespace.adopt() is not None
    assert namespace.read().count() == 2
    assert namespace.adopt() is None
    lance.write_dataset(dataset.to_table(), path, mode="append")
    namespace.append(events(spark, 4).where("id = 1"))
    assert namespace.read().count() == 4


def test_zero_rows(spark: SparkSession, tmp_path: Path, namespace: penstock.lance.Namespace) -> None:
    assert namespace.read().count() == 0
    assert namespace.read().columns == ["id", "event_date", "country", "city", "ts", "amount"]
    namespace.append(events(spark, 0))
    assert namespace.read().collect() == []
    assert namespace.partitions().count() == 0


def _path(root: Path, leaf: list[str]) -> str:
    return listed_leaves(root, "events")["$".join(leaf)]
