"""UPDATE, DELETE and MERGE from Spark: the extension shows the same rows under the same row ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from penstock import Lake, Table
from support import effort
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.reference import METADATA
from support.writing import attached, leaving_nothing

COLUMNS = (
    "id BIGINT NOT NULL, name STRING DEFAULT 'none', price DECIMAL(38,3), f DOUBLE, day DATE,"
    " at TIMESTAMP_NTZ, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>"
)


ROWS = [
    "id",
    "CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a/=%''é🦆' ELSE concat('n', id) END AS name",
    "CAST(CASE WHEN id % 7 > 0 THEN 99999999999999999999999999999999999.999 - id END AS DECIMAL(38,3)) AS price",
    "CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN double('-Infinity') ELSE id + 0.5D END AS f",
    "CASE WHEN id % 6 = 0 THEN DATE'9999-12-31' ELSE DATE'1960-02-28' + CAST(id AS INT) END AS day",
    "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' + make_dt_interval(CAST(id AS INT)) AS at",
    "CASE WHEN id % 3 > 0 THEN named_struct('a', CAST(id AS INT), 'b', array('x', NULL, '')) END AS s",
    "CASE WHEN id % 3 <> 1 THEN map('k', CAST(id AS INT)) END AS m",
]


def some(spark: SparkSession, start: int, end: int, tasks: int = 1) -> DataFrame:
    """Rows with values that hurt."""
    return spark.range(start, end, 1, tasks).selectExpr(*ROWS)


def table_of(lake: Lake, name: str, spark: SparkSession, **definition: Any) -> Table:
    """Three files, and rows in the catalog where it takes them."""
    table = lake.create_table(name, COLUMNS, **definition)
    for start in (0, 40, 80):
        table.append(some(spark, start, start + 40))
    table.append(some(spark, 200, 205))
    return table


@pytest.mark.compiled
@pytest.mark.one_catalog
def test_updates(catalog: Catalog, spark: SparkSession) -> None:
    """Some rows and many, of files and of the catalog, new partitions, sorted files; then the extension goes on."""
    with attached(catalog, spark) as lake:
        table = table_of(lake, "t", spark, partitioned_by=["bucket(2, id)", "year(day)"], sorted_by=["name DESC"])
        before = {row.id: row.rowid for row in table.read(row_ids=True).collect()}
        table.update({"name": "upper(name)", "f": F.lit(None)}, where="id = 3 OR id = 201")
        table.update({"price": "price - 1", "s.a": "s.a * 2", "day": "DATE'2024-02-29'"}, where="id % 4 = 1")
        table.update({"name": "concat('v', id)", "m": "map('new', 1)"}, where=F.col("target.id") >= 100)
        table.update({"f": "-0.0D"})
        assert {row.id: row.rowid for row in table.read(row_ids=True).collect()} == before
        assert table.update({"f": "1.0D"}, where="id < 0") == lake.current_snapshot()
        assert table.read().where("f = 0.0 AND s.a = 8").count() == 1
    assert_same_tables(catalog, spark, "t")
    if catalog.kind == "mysql":
        return  # the extension's connector cannot change rows there
    with catalog.reference() as reference:
        reference.execute(
            "UPDATE t SET name = 'duck' WHERE id % 10 = 2",
            "DELETE FROM t WHERE id IN (0, 99, 204)",
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0)",
            "CALL ducklake_merge_adjacent_files('lk')",
        )
    with attached(catalog, spark) as lake:
        lake.table("t").update({"name": "concat(name, '!')"}, where="name = 'duck'")
        assert lake.table("t").read().where("name = 'duck!'").count() == 13
    assert_same_tables(catalog, spark, "t")


def test_row_ids_survive_the_extensions_merge(file_catalog: Catalog, spark: SparkSession) -> None:
    """It counts the rows of neighbouring files from the first one's id, but not where files bring ids of their own."""
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, name STRING")
        table.append(spark.range(0, 40, 1, 1).selectExpr("id", "'old'"))
        table.update({"name": "'new'"}, where="id % 2 = 0")
        table.update({"name": "'newer'"}, where="id % 4 = 0")
        source = spark.range(39, 60, 1, 1).selectExpr("id", "'merged' AS name")
        table.merge(source, on="id").when_matched_update().when_not_matched_insert().execute()
        expected = sorted(map(tuple, table.read(row_ids=True).collect()))
        told = sorted(map(tuple, table.changes(3, 4).collect()))
    with file_catalog.reference() as reference:
        starts = f"SELECT row_id_start FROM {METADATA}.ducklake_data_file ORDER BY begin_snapshot, row_id_start"
        assert [start for (start,) in reference.rows(starts)].count(None) == 3
        reference.execute("CALL ducklake_merge_adjacent_files('lk')")
        assert sorted(reference.rows("SELECT id, name, rowid FROM t")) == expected
        reference.execute("CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)")
        assert sorted(reference.rows("SELECT id, name, rowid FROM t")) == expected
    assert_same_tables(file_catalog, spark, "t")
    with attached(file_catalog, spark) as lake:
        assert sorted(map(tuple, lake.table("t").changes(3, 4).collect())) == told


def test_deletion_vectors_and_encryption(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark, encrypted=True, data_inlining_row_limit=0) as lake:
        table = table_of(lake, "t", spark)
        table.update({"name": "'once'"}, where="id % 3 = 0")
        lake.set_option("write_deletion_vectors", True)
        table.update({"name": "'twice'"}, where="id % 2 = 0")
        table.delete("id % 5 = 0")
        assert table.read().where("name = 'twice'").count() == 50
    assert_same_tables(file_catalog, spark, "t")


MERGES = ["plain", "partitioned"]


@pytest.mark.compiled
@pytest.mark.one_catalog
def test_merge(catalog: Catalog, spark: SparkSession) -> None:
    """Every kind of clause, with and without conditions; the first that applies wins."""
    with attached(catalog, spark) as lake:
        source = some(spark, 30, 50).union(some(spark, 300, 303)).withColumn("f", F.lit(7.5))
        for name, definition in (("plain", {}), ("partitioned", {"partitioned_by": ["name", "month(at)"]})):
            table = table_of(lake, name, spark, **definition)
            ids = {row.id: row.rowid for row in table.read(row_ids=True).collect()}
            (
                table.merge(source, on="target.id = source.id")
                .when_matched_delete("source.id % 10 = 0")
                .when_matched_update({"name": "concat(source.name, target.name)"}, "source.id % 2 = 0")
                .when_matched_update()
                .when_not_matched_insert({"id": "source.id", "price": "12.5"}, F.col("source.id") == 301)
                .when_not_matched_insert(condition="source.id > 300")
                .when_not_matched_by_source_update({"s": "NULL", "name": "'alone'"}, "target.id BETWEEN 80 AND 90")
                .when_not_matched_by_source_delete("target.id > 200")
                .execute()
            )
            rows = {row.id: row for row in table.read(row_ids=True).collect()}
            assert ids.keys() - rows.keys() == {30, 40, 201, 202, 203, 204}
            assert rows.keys() - ids.keys() == {301, 302}
            assert all(ids[id] == row.rowid for id, row in rows.items() if id in ids)
            assert (rows[301].name, rows[301].f, str(rows[301].price)) == ("none", None, "12.500")
            assert (rows[302].f, rows[31].f, rows[33].name) == (7.5, 7.5, "n33")
            assert rows[38].name == "n38n38"
            assert {rows[85].name, rows[85].s} == {"alone", None}
    assert_same_tables(catalog, spark, *MERGES)


def test_merges_of_one_kind(file_catalog: Catalog, spark: SparkSession) -> None:
    """Upserts in one transaction after other writes, inserts alone, deletes alone, no keys, an empty source."""
    with attached(file_catalog, spark) as lake:
        table = table_of(lake, "t", spark)
        upsert = table.merge(some(spark, 78, 130, 2), "target.id = source.id")
        with lake.transaction(message="all of it"):
            table.append(some(spark, 120, 124))
            table.update({"name": "'own'"}, where="id BETWEEN 118 AND 121")
            upsert.when_matched_update({"name": "concat(target.name, '+')"}).when_not_matched_insert().execute()
            assert table.read().where("id >= 78").count() == 52 + 5
        assert table.read().where("name = 'own+'").count() == 4
        table.merge(some(spark, 128, 132), "target.id = source.id").when_not_matched_insert().execute()
        assert table.read().where("id >= 128").count() == 4 + 5
        doomed = spark.range(3).selectExpr("id * 10 AS low", "id * 10 + 4 AS high")
        table.merge(doomed, "target.id >= source.low AND target.id < source.high").when_matched_delete().execute()
        assert table.read().where("id < 40").count() == 40 - 12
        snapshot = lake.current_snapshot()
        nothing = table.merge(some(spark, 0, 0), "target.id = source.id")
        assert nothing.when_matched_update().when_not_matched_insert().execute() == snapshot
        gone = table.merge(some(spark, 0, 0), "target.id = source.id").when_not_matched_by_source_delete()
        gone.execute()
        assert table.read().isEmpty()
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.compiled
def test_conditions_and_values_with_subqueries(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        table = table_of(lake, "t", spark)
        other = lake.create_table("other", some(spark, 0, 10))
        other.read().createOrReplaceTempView("others")
        table.delete("id IN (SELECT id FROM others WHERE id > 7)")
        table.delete("id = 5 AND EXISTS (SELECT 1 FROM others WHERE name IS NULL)")
        table.update({"name": "(SELECT max(name) FROM others)"}, where="id < (SELECT min(id) + 3 FROM others)")
        table.update({"price": "1"}, where="id NOT IN (SELECT id FROM others) AND id < 20")
        (
            table.merge(other.read(), "target.id = source.id")
            .when_matched_update({"name": "'exists'"}, "source.id IN (SELECT id FROM others WHERE id = 7)")
            .execute()
        )
        rows = {row.id: row for row in table.read().collect()}
        spark.catalog.dropTempView("others")
    assert not rows.keys() & {5, 8, 9}
    assert rows[2].name == rows[0].name == "n9"
    assert rows[7].name == "exists"
    assert [row.id for row in rows.values() if row.price == 1] == list(range(10, 20))
    assert_same_tables(file_catalog, spark, "t")


def test_nanoseconds_and_odd_names_survive(file_catalog: Catalog, spark: SparkSession) -> None:
    with file_catalog.reference() as reference:
        reference.execute(
            "CREATE TABLE t (rowid INT, \"target.x\" VARCHAR, ns TIMESTAMP_NS, l TIMESTAMP_NS[], \"q`u/o=t%e🦆\" UUID,"
            " b BLOB, tz TIMESTAMPTZ)",
            "INSERT INTO t SELECT i, 'x', '1969-12-31 23:59:59.123456789'::TIMESTAMP_NS,"
            " ['2024-01-01 00:00:00.000000001'], '00000000-0000-0000-0000-00000000000a', 'ab'::BLOB,"
            " '2024-01-01 00:30:00+02' FROM range(20) r(i)",
        )  # fmt: skip
    with attached(file_catalog, spark) as lake:
        table = lake.table("t")
        table.update({'"target.x"': "'y'"}, where="ns < TIMESTAMP_NTZ'1970-01-01' AND `target.x` = 'x'")
        source = spark.range(5).selectExpr("id", "'z' AS x")
        table.merge(source, "target.rowid = source.id").when_matched_update({'"target.x"': "source.x"}).execute()
    with file_catalog.reference() as reference:
        expected = "SELECT count(*) FROM t WHERE epoch_ns(ns) % 1000 = -211 AND epoch_ns(l[1]) % 1000 = 1"
        assert reference.value(expected) == 20
        assert reference.value("SELECT count(*) FROM t WHERE \"target.x\" = 'z'") == 5


def test_what_goes_wrong_changes_nothing(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        table = table_of(lake, "t", spark)
        lake.create_table("small", "n TINYINT, t STRING").append(
            spark.range(20).selectExpr("CAST(id AS TINYINT)", "'x'")
        )
        small = lake.table("small")
        twice = some(spark, 38, 42).union(some(spark, 41, 42))
        upsert = table.merge(twice, "target.id = source.id")

        def nothing(match: str, error: type[Exception] = penstock.InvalidError) -> Any:
            return leaving_nothing(file_catalog, lake, match, error)

        with nothing("2 rows of the source match the same row of main.t .target.id = 41.*one source row for each"):
            upsert.when_matched_update().when_not_matched_insert().execute()
        with nothing("3 rows of the source match the same row of main.t .rowid 40"):
            table.merge(twice, "target.id <= source.id AND target.id > 39").when_matched_delete().execute()
        with nothing("column 'id' of .* NOT NULL|NULL.*id"):
            table.update({"id": "NULLIF(id, 117)"})
        with nothing("column n: the value 130 does not fit tinyint"):
            small.update({"n": "n + 120"}, where="n >= 10")
        with nothing("there is no column 'nome'", penstock.NotFoundError):
            table.update({"nome": "1"})
        with nothing("column day has type date.*cast it first"):
            table.update({"day": "12"})
        with nothing("inside a map.*set m whole"):
            table.update({"m.value": "12"})
        with nothing("no column 'extra', which the source has; say which columns to insert"):
            table.merge(some(spark, 500, 501).withColumn("extra", F.lit(1)), "target.id = source.id") \
                .when_not_matched_insert().execute()  # fmt: skip
        with nothing("nothing to set in main.t"):
            table.update({})
        with nothing("has no clause"):
            upsert.execute()
        with nothing("DIVIDE_BY_ZERO", Exception):
            table.update({"f": "1 / (id - 90)"})
        # Only one of the two has an effect: no error.
        upsert.when_matched_update({"name": "'fine'"}, "source.id < 41 OR source.name IS NULL").execute()
        assert table.read().where("name = 'fine'").count() == 3


@contextmanager
def read_by(spark: SparkSession) -> Iterator[list[tuple[int, int]]]:
    """What Spark's own metrics say of each scan meanwhile: files and rows, of scans that read any."""
    store: Any = spark._jsparkSession.sharedState().statusStore()
    seen = max((execution.executionId() for execution in _each(store.executionsList())), default=-1)
    found: list[tuple[int, int]] = []
    yield found
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    for execution in _each(store.executionsList()):
        if execution.executionId() <= seen:
            continue
        values = store.executionMetrics(execution.executionId())
        graph = store.planGraph(execution.executionId()).allNodes()
        for node in (graph.apply(i) for i in range(graph.size())):
            if node.name().startswith("Scan parquet"):
                metrics = {m.name(): values.get(m.accumulatorId()) for m in _each(node.metrics())}
                found.append((_number(metrics["number of files read"]), _number(metrics["number of output rows"])))
    found[:] = [scan for scan in found if scan != (0, 0)]


def _each(items: Any) -> Iterator[Any]:
    return (items.apply(i) for i in range(items.size()))


def _number(text: Any) -> int:
    return int(text.get().replace(",", "")) if text.isDefined() else 0


@pytest.mark.compiled
@pytest.mark.classic
@pytest.mark.slow
def test_one_row_of_many_files(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Only files whose statistics allow it are read, by Spark's own count of them."""
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, v STRING")
        table.append(spark.range(0, 4000, 1, 200).selectExpr("id", "'x'"), distribution="none")
        assert table.files().count() == 200
        with read_by(spark) as found:
            table.update({"v": "'y'"}, where="id = 1234")
        assert found == [(1, 20)]
        with read_by(spark) as found:
            table.merge(spark.range(77, 78).selectExpr("id", "'z' AS v"), "target.id = source.id") \
                .when_matched_update().when_not_matched_insert().execute()  # fmt: skip
        assert found == [(1, 20)]
        with read_by(spark) as found:
            table.delete("id = 3000")
        assert found == [(1, 20)]
        assert table.read().count() == 3999
        assert {row.v for row in table.read().where("id IN (77, 1234)").collect()} == {"y", "z"}


@pytest.mark.slow
def test_keys_of_many_types(file_catalog: Catalog, spark: SparkSession) -> None:
    """What the source's keys say about the files is true for every type, for few keys and for many."""
    columns = {
        "f": "float(0.1)", "d": "DATE'0001-01-01'", "ts": "TIMESTAMP'1969-12-31 23:59:59.123456'", "b": "X'00ff'",
        "n": "CAST(99999999999999999999999999999999999.999 AS DECIMAL(38,3))", "t": "'it''s 🦆'",
    }  # fmt: skip
    rows = spark.range(20).selectExpr(*(f"{value} AS {name}" for name, value in columns.items()), "0 AS v")
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", rows)
        merges = 0
        for number, name in enumerate(columns):
            key = rows.limit(1).select(name)
            for operator in ("=", "<=>") if effort.is_full() else (("=", "<=>")[number % 2],):
                on = f"target.{name} {operator} source.{name}"
                table.merge(key, on).when_matched_update({"v": "target.v + 1"}).execute()
                merges += 1
            assert {row.v for row in table.read().collect()} == {merges}, name
        many = lake.create_table("many", "id BIGINT, v STRING")
        for value, count in (("'new'", 30), ("'x'", 200)):  # the table is empty at first
            upsert = many.merge(spark.range(count).selectExpr("id", f"{value} AS v"), "target.id = source.id")
            upsert.when_matched_update().when_not_matched_insert().execute()
            assert many.read().where(f"v = {value}").count() == many.read().count() == count
    assert_same_tables(file_catalog, spark, "t", "many")


@pytest.mark.slow
def test_keys_by_their_names(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        odd = "q`u.o=t e🦆"
        table = lake.create_table("t", f"id BIGINT, `{odd.replace('`', '``')}` STRING, v INT")
        table.append(spark.range(20).selectExpr("nullif(id, 19)", "'x'", "0"))
        source = spark.createDataFrame([(1, "x", 1), (2, "y", 1), (None, "x", 1)], ["ID", odd, "v"])
        nothing = lambda match, error: leaving_nothing(file_catalog, lake, match, error)  # noqa: E731

        def updated() -> list[int | None]:
            return sorted(row.id for row in table.read().where("v = 1").collect())

        table.merge(source, on="id").when_matched_update({"v": "source.v"}).execute()
        assert updated() == [1, 2]
        table.update({"v": "0"})
        table.merge(source, on=["id", odd]).when_matched_update({"v": "source.v"}).execute()
        assert updated() == [1]
        table.merge(source.limit(1), on=odd).when_matched_update({"v": "source.v"}, "target.id < 5").execute()
        assert updated() == [0, 1, 2, 3, 4]
        # NULL equals nothing, as with USING: the source's row of NULL is new.
        table.merge(source, on=["ID"]).when_not_matched_insert().execute()
        assert table.read().where("id IS NULL").count() == 2
        table.merge(source, on="target.id = source.id AND source.v = 1").when_matched_delete().execute()
        assert table.read().count() == 19
        wrong = table.merge(source, on=["id", "nome"]).when_matched_delete()
        with nothing("matches by 'nome', which the table does not have; it has id", penstock.NotFoundError):
            wrong.execute()
        with nothing("matches by 'v', and its source has only ID", penstock.InvalidError):
            table.merge(source.drop("v"), on=["v"]).when_matched_delete().execute()
        with nothing("matches by 'id', and its source has two columns", penstock.InvalidError):
            table.merge(source.selectExpr("ID", "v AS Id"), on=["id"]).when_matched_delete().execute()
        unnamed: list[Any] = [[], None, "", [source.ID]]
        for on in unnamed:
            with nothing("has nothing to match by; name a column", penstock.InvalidError):
                table.merge(source, on=on).when_matched_delete().execute()
        with nothing("matches by 'nope', which the table does not have", penstock.NotFoundError):
            table.merge(source, on="nope").when_matched_delete().execute()
        with nothing("matches by 'rowid', and its source has only", penstock.InvalidError):
            table.merge(source, on="rowid").when_matched_delete().execute()


def test_row_ids_in_conditions(file_catalog: Catalog, spark: SparkSession) -> None:
    """Of rows in files, updated ones, and rows in the catalog; no error tells of columns that only Penstock knows."""
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", spark.range(100, 120).selectExpr("id", "0 AS v"))
        table.append(spark.range(120, 123).selectExpr("id", "0"))
        table.update({"v": "int(rowid)"}, where="rowid IN (3, 7) OR target.rowid >= 21")
        table.delete("rowid = 5 OR rowid = 22")
        table.delete(F.col("rowid") == 7)
        doomed = spark.createDataFrame([(3, 1), (20, 1)], "rowid long, x int")
        table.merge(doomed, on="rowid").when_matched_delete("target.rowid = 3").when_matched_update(
            {"v": "target.rowid + source.rowid"}
        ).execute()
        rows = {row.rowid: (row.id, row.v) for row in table.read(row_ids=True).collect()}
        gone = {3, 5, 7, 22}
        assert rows == {i: (100 + i, {20: 40, 21: 21}.get(i, 0)) for i in range(23) if i not in gone}
        own = lake.create_table("own", spark.range(20).selectExpr("id", "id + 100 AS rowid"))
        own.delete("rowid = 105")
        own.update({"id": "-1"}, where="RowId = 106")
        assert {row.id for row in own.read().collect()} == {*range(20)} - {5, 6} | {-1}
        known = {"id", "v", "rowid", "x", "source", "target"}
        for statement in (
            lambda: table.delete("nome = 5"), lambda: table.delete("_penstock_file = 0"),
            lambda: table.update({"v": "1"}, where="rowids = 5"), lambda: table.update({"v": "positions + 1"}),
            lambda: table.merge(doomed, "target.rowidd = source.rowid").when_matched_delete().execute(),
            lambda: table.merge(doomed, "rowid").when_matched_update({"v": "source.nome"}).execute(),
            lambda: table.merge(doomed, "rowid").when_matched_delete("target.penstock_row > 0").execute(),
            lambda: table.merge(doomed, "rowid").when_not_matched_insert({"v": "source.penstock_source"}).execute(),
        ):  # fmt: skip
            with pytest.raises(AnalysisException) as raised:
                statement()
            told = str(raised.value)
            suggested = set(re.findall("`([^`.]+)`", told.partition("Did you mean")[2].partition("]")[0]))
            assert suggested, told
            assert suggested <= known, told
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.slow
def test_nested_keys(file_catalog: Catalog, spark: SparkSession) -> None:
    """Structs and arrays match as they are and prune nothing; maps cannot be compared."""
    with attached(file_catalog, spark) as lake:
        rows = "id", "struct(id AS a, 'x' AS b) AS s", "array(id, NULL) AS l", "map('k', id) AS m", "0 AS v"
        table = lake.create_table("t", spark.range(20).selectExpr(*rows))
        source = spark.range(18, 22).selectExpr(*rows).withColumn("v", F.lit(1))
        for number, on in enumerate(("s", ["l", "id"], "target.s <=> source.s AND target.l = source.l")):
            upsert = table.merge(source, on).when_matched_update({"v": "target.v + 1"})
            (upsert.when_not_matched_insert() if number == 0 else upsert).execute()
        assert {row.id: row.v for row in table.read().where("v > 0").collect()} == {18: 3, 19: 3, 20: 3, 21: 3}
        for condition in ("m", ["id", "m"], "target.m = source.m", "target.id = source.id AND target.m <=> source.m"):
            with leaving_nothing(file_catalog, lake, "values that Spark cannot compare, such as maps"):
                table.merge(source, condition).when_matched_delete().execute()
        with leaving_nothing(file_catalog, lake, "2 rows of the source match the same row of main.t .target.s = "):
            table.merge(source.union(source), "s").when_matched_delete().execute()


def test_rows_of_every_type_are_written_again(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark) as lake:
        table = lake.create_table(
            "t", "id INT, u UUID, j JSON, i INTERVAL, va VARIANT, tz TIMETZ, ti TIME, n UINT64, g GEOMETRY"
        )
        rows = spark.sql(
            """SELECT int(id), '00000000-0000-0000-0000-00000000000a', '{"a":1}',
                      named_struct('months', 1, 'days', 2, 'microseconds', 3000000L), parse_json('{"a":[1,null]}'),
                      TIME'10:00:00', TIME'23:59:59.999999', CAST(18446744073709551615 AS DECIMAL(20,0)),
                      st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') FROM range(20)"""
        )
        table.append(rows)
        table.update({"j": "'[]'"}, where="id % 2 = 0")
        table.merge(spark.range(3), "target.id = source.id").when_matched_update({"n": "1"}).execute()
    with file_catalog.reference() as reference:
        kept = "u, i, va, tz, ti, ST_AsText(g)"
        assert len(reference.rows(f"SELECT DISTINCT {kept} FROM t")) == 1
        assert reference.rows(f"SELECT DISTINCT {kept} FROM t") == reference.rows(
            f"SELECT DISTINCT {kept} FROM t AT (VERSION => 2)"
        )
        assert reference.rows("SELECT j, n, count(*) FROM t WHERE rowid = id GROUP BY ALL ORDER BY ALL") == [
            ("[]", 1, 2), ("[]", 2**64 - 1, 8), ('{"a":1}', 1, 1), ('{"a":1}', 2**64 - 1, 9),
        ]  # fmt: skip
