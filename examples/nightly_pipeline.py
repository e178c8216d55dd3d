"""A nightly pipeline: new and changed orders are merged into a table, totals follow, and the lake tidies itself up.

Run it as often as you like: `python examples/nightly_pipeline.py [FOLDER]`. Each run is another night.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import penstock

ORDERS = "id BIGINT NOT NULL, customer STRING, total DECIMAL(12,2), changed DATE"


def main(folder: Path) -> None:
    spark = penstock.session()
    # SQLite, so that others can use the lake meanwhile; the files lie beside it.
    with penstock.attach(f"ducklake:sqlite:{folder}/shop.sqlite", data_path=f"{folder}/data") as lake:
        orders = lake.create_table("orders", ORDERS, partitioned_by=["month(changed)"], if_not_exists=True)
        totals = lake.create_table("totals", "customer STRING, total DECIMAL(22,2)", if_not_exists=True)
        # How long the past is kept, said once: it is stored in the lake.
        lake.set_option("expire_older_than", "30 days")
        lake.set_option("delete_older_than", "2 days")

        night = nights_so_far(lake)
        load(lake, orders, totals, delivery(spark, night), night)
        print(f"night {night}: {orders.read().count()} orders")
        totals.read().orderBy("customer").show()

        lake.checkpoint()  # small files become large ones, old snapshots and files go


def nights_so_far(lake: penstock.Lake) -> int:
    """The number of this night: the lake remembers the last one that it has."""
    last = lake.streams().where("stream = 'orders-nightly'").agg({"batch": "max"}).first()
    return 0 if last is None or last[0] is None else last[0] + 1


def delivery(spark: SparkSession, night: int) -> DataFrame:
    """What came since yesterday: a hundred new orders, and twenty of before with another total."""
    return spark.sql(
        f"""SELECT id, array('Ada', 'Bob', 'Cem')[int(id % 3)] AS customer,
                   CAST(id + {night} AS DECIMAL(12,2)) AS total, DATE'2026-11-01' + {night} AS changed
            FROM range(greatest(0, {night} * 100 - 20), {night} * 100 + 100)"""
    )


def load(lake: penstock.Lake, orders: penstock.Table, totals: penstock.Table, rows: DataFrame, night: int) -> None:
    """Both tables, in one snapshot; a night that was loaded before changes nothing."""
    with lake.write_once(stream="orders-nightly", batch=night) as once:
        if once.is_new:
            orders.merge(rows, on="id").when_matched_update().when_not_matched_insert().execute()
            totals.overwrite(orders.read().groupBy("customer").sum("total").toDF("customer", "total"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-nightly-") as made:
            main(Path(made))
