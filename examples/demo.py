"""The main job on the embedded default: a DuckDB-file catalog and local Parquet. Run it with `make demo`.

Spark creates a partitioned table, loads it, changes it, travels in time and shows what was pruned; then DuckDB's own
extension reads and changes the same lake, and Spark reads that.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
from duckdb_extensions import import_extension
from pyspark.sql import DataFrame, SparkSession

import penstock


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        uri = f"ducklake:{Path(directory) / 'sales.ducklake'}"
        spark = penstock.session()
        print(f"Spark makes a lake: a table by region, year and month\n  {uri}\n")
        with penstock.attach(uri, spark=spark) as lake:
            load(lake, spark)
            show(lake)
        ask_duckdb(uri)
        with penstock.attach(uri, read_only=True, spark=spark) as lake:
            print("Spark reads what DuckDB did:")
            lake.table("sales.orders").read().groupBy("region").count().orderBy("region").show()
        spark.stop()


def orders_of(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.sql(
        f"""SELECT id, array('EU', 'US', 'APAC')[int(id % 3)] AS region,
                   timestampadd(HOUR, int(id / 20), TIMESTAMP_NTZ '2026-01-01 00:00:00') AS ts,
                   CAST(id % 1000 / 7 AS DECIMAL(12,2)) AS total
            FROM range({first}, {end})"""
    )


def load(lake: penstock.Lake, spark: SparkSession) -> None:
    lake.create_schema("sales")
    orders = lake.create_table(
        "sales.orders",
        "id BIGINT NOT NULL, region STRING, ts TIMESTAMP_NTZ, total DECIMAL(12,2)",
        partitioned_by=["region", "year(ts)", "month(ts)"],
        sorted_by=["ts"],
    )
    orders.append(orders_of(spark, 0, 100_000))
    orders.delete("id % 1000 = 7")
    orders.add_column("note STRING DEFAULT 'none'")
    with lake.transaction(author="demo", message="two tables, one snapshot"):
        orders.overwrite(orders_of(spark, 0, 3000), where="id < 3000", by_name=True)
        totals = orders.read().groupBy("region").sum("total").toDF("region", "total")
        lake.create_table("sales.totals", totals)
    orders.update({"note": "'checked'"}, where="region = 'EU' AND id < 300")
    changes = spark.sql("SELECT id, CAST(1.25 AS DECIMAL(12,2)) AS total FROM VALUES (10L), (11L), (200000L) AS t(id)")
    orders.merge(changes, on="target.id = source.id").when_matched_update().when_not_matched_insert().execute()
    small = spark.sql("SELECT 100001L AS id, 'EU' AS region, 12.5 AS total, 'stays in the catalog' AS note")
    orders.append(small, by_name=True)


def show(lake: penstock.Lake) -> None:
    print("Its snapshots:")
    lake.snapshots().select("snapshot_id", "changes", "commit_message").show(truncate=False)

    orders = lake.table("sales.orders")
    print("Spark reads it, deletes, defaults and inlined rows included:")
    orders.read().groupBy("region").agg({"*": "count", "total": "sum"}).orderBy("region").show()
    orders.read(row_ids=True).where("id IN (2999, 100001)").show(truncate=False)

    print("As it was before the DELETE:")
    first_load = 3
    print(f"  {orders.read(version=first_load).count()} rows at version {first_load}, {orders.read().count()} now\n")

    print("What the merge changed:")
    merged = lake.current_snapshot().id - 1
    orders.changes(merged, merged).orderBy("id", "change_type").show(truncate=False)

    print("What pruning does:")
    for predicate in ("region = 'EU'", "region = 'EU' AND ts >= '2026-03-01' AND ts < '2026-04-01'", "id = 4242"):
        print(orders.explain(predicate))


def ask_duckdb(uri: str) -> None:
    import_extension("ducklake")
    with duckdb.connect() as connection:
        connection.execute("LOAD ducklake")
        connection.execute(f"ATTACH '{uri}' AS lake")
        print("\nDuckDB reads the same lake:")
        print(connection.sql("SELECT region, count(*), sum(total) FROM lake.sales.orders GROUP BY 1 ORDER BY 1"))
        print("... and changes it: DELETE WHERE region = 'APAC' AND id % 2 = 0\n")
        connection.execute("DELETE FROM lake.sales.orders WHERE region = 'APAC' AND id % 2 = 0")


if __name__ == "__main__":
    main()
