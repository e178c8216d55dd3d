"""The main job on the embedded default: a DuckDB-file catalog and local Parquet. Run it with `make demo`.

DuckDB's own extension makes and changes the lake; Spark reads it through Penstock.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
from duckdb_extensions import import_extension

import penstock

SETUP = """
    CREATE SCHEMA sales;
    CREATE TABLE sales.orders (id BIGINT NOT NULL, region VARCHAR, ts TIMESTAMP, total DECIMAL(12,2));
    ALTER TABLE sales.orders SET PARTITIONED BY (region, year(ts), month(ts));
    INSERT INTO sales.orders
        SELECT i, ['EU', 'US', 'APAC'][1 + i % 3], TIMESTAMP '2026-01-01' + to_hours(CAST(i // 20 AS INTEGER)),
               i % 1000 / 7
        FROM range(100000) r(i);
    DELETE FROM sales.orders WHERE id % 1000 = 7;
    UPDATE sales.orders SET total = total * 2 WHERE region = 'EU' AND id < 3000;
    ALTER TABLE sales.orders ADD COLUMN note VARCHAR DEFAULT 'none';
    INSERT INTO sales.orders VALUES (100001, 'EU', TIMESTAMP '2026-09-01', 12.5, 'a small insert stays in the catalog');
"""


def make_lake(uri: str) -> None:
    import_extension("ducklake")
    with duckdb.connect() as connection:
        connection.execute("LOAD ducklake")
        connection.execute(f"ATTACH '{uri}' AS lake")
        connection.execute("USE lake")
        for statement in SETUP.split(";\n"):
            connection.execute(statement)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        uri = f"ducklake:{Path(directory) / 'sales.ducklake'}"
        print(f"DuckDB makes a lake: a table by region, year and month, loaded and changed\n  {uri}\n")
        make_lake(uri)
        spark = penstock.session()
        with penstock.attach(uri, read_only=True, spark=spark) as lake:
            show(lake)
        spark.stop()


def show(lake: penstock.Lake) -> None:
    print("Its snapshots:")
    lake.snapshots().select("snapshot_id", "snapshot_time", "changes").show(truncate=False)

    orders = lake.table("sales.orders")
    print("Spark reads it, deletes, updates, defaults and inlined rows included:")
    orders.read().groupBy("region").agg({"*": "count", "total": "sum"}).orderBy("region").show()
    orders.read(row_ids=True).where("id IN (2999, 100001)").show(truncate=False)

    print("As it was before the DELETE:")
    first_load = 4
    print(f"  {orders.read(version=first_load).count()} rows at version {first_load}, {orders.read().count()} now\n")

    print("What pruning does:")
    for predicate in ("region = 'EU'", "region = 'EU' AND ts >= '2026-03-01' AND ts < '2026-04-01'", "id = 4242"):
        print(orders.explain(predicate))


if __name__ == "__main__":
    main()
