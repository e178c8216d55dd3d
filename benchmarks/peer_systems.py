"""Penstock, Iceberg and Delta at the same work, each in a process of its own that peers.py starts and speaks to.

A line of the standard input is a piece of work with its arguments; a line of the standard output is what came of it.
Each process has the PySpark that its system is made for, so nothing of Penstock is imported before it is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import IO, Any

from pyspark.sql import SparkSession

FEW = "id BIGINT, name STRING, day DATE, price DECIMAL(12, 2)"
APPENDS, ROWS_EACH = 20, 5
DELETED, UPDATED = "l_orderkey % 100 = 0", "l_orderkey % 100 = 1"
ASSIGNED = {"l_quantity": "l_quantity + 1", "l_comment": "upper(l_comment)"}
KEYS = "target.l_orderkey = source.l_orderkey AND target.l_linenumber = source.l_linenumber"
MERGED = {"l_quantity": "source.l_quantity", "l_comment": "source.l_comment"}


def few(number: int) -> str:
    """The rows of a small append, as SQL."""
    ids = range(number * ROWS_EACH, (number + 1) * ROWS_EACH)
    return ", ".join(f"({i}L, 'row {i}', DATE'2026-01-01' + {number}, CAST({i}.25 AS DECIMAL(12, 2)))" for i in ids)


def assignments(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in columns.items())


class Peer:
    """A system that is spoken to in SQL. Its three tables are made anew by `begin` and removed by `end`."""

    catalog = "spark_catalog.default"
    clauses = ""
    by_month = ""

    def __init__(self, scratch: Path, settings: dict[str, str]) -> None:
        self.scratch = scratch
        self.spark = self.session(settings | {"spark.sql.warehouse.dir": str(scratch / "warehouse")})
        self.spark.sparkContext.setLogLevel("ERROR")

    def session(self, settings: dict[str, str]) -> SparkSession:
        return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()

    def begin(self, source: str, changes: str) -> list[str]:
        """Makes empty tables for rows of `source`; the columns."""
        rows = self.spark.read.parquet(source)
        rows.createOrReplaceTempView("origin")
        self.spark.read.parquet(changes).createOrReplaceTempView("changes")
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
        self.create(columns)
        return rows.columns

    def create(self, columns: str) -> None:
        for name, text in (("lineitem", f"({columns})"), ("few", f"({FEW})")):
            self.spark.sql(f"CREATE TABLE {self.catalog}.{name} {text} {self.clauses.format(partition='')}")
        self.create_by_month(columns)

    def create_by_month(self, columns: str) -> None:
        clauses = self.clauses.format(partition=self.by_month)
        self.spark.sql(f"CREATE TABLE {self.catalog}.monthly ({columns}) {clauses}")

    def end(self) -> None:
        for name in ("lineitem", "few", "monthly"):
            self.spark.sql(f"DROP TABLE {self.catalog}.{name}")

    def query(self, table: str, text: str) -> list[list[str]]:
        """The rows of a query with a {table}, as texts."""
        rows = self.spark.sql(text.format(table=self.readable(table))).collect()
        return [[str(value) for value in row] for row in rows]

    def readable(self, table: str) -> str:
        """The name of a table in a query."""
        return f"{self.catalog}.{table}"

    def append(self) -> None:
        self.spark.sql(f"INSERT INTO {self.catalog}.lineitem SELECT * FROM origin")

    def append_by_month(self) -> None:
        self.spark.sql(f"INSERT INTO {self.catalog}.monthly SELECT * FROM origin")

    def delete(self) -> None:
        self.spark.sql(f"DELETE FROM {self.catalog}.lineitem WHERE {DELETED}")

    def update(self) -> None:
        self.spark.sql(f"UPDATE {self.catalog}.lineitem SET {assignments(ASSIGNED)} WHERE {UPDATED}")

    def merge(self) -> None:
        self.spark.sql(
            f"MERGE INTO {self.catalog}.lineitem AS target USING changes AS source ON {KEYS}"
            f" WHEN MATCHED THEN UPDATE SET {assignments(MERGED)} WHEN NOT MATCHED THEN INSERT *"
        )

    def append_few(self) -> None:
        for number in range(APPENDS):
            self.spark.sql(f"INSERT INTO {self.catalog}.few VALUES {few(number)}")


class Iceberg(Peer):
    """Format 3, and changed rows written beside the files: Iceberg's counterpart of what the others do."""

    PYSPARK = "4.1.4"
    PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

    catalog = "peer.db"
    clauses = (
        "USING iceberg {partition} TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read',"
        " 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"
    )
    by_month = "PARTITIONED BY (months(l_shipdate))"

    def session(self, settings: dict[str, str]) -> SparkSession:
        own = {
            "spark.jars.packages": self.PACKAGE,
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.peer.type": "hadoop",
            "spark.sql.catalog.peer.warehouse": str(self.scratch / "iceberg"),
        }
        return super().session(settings | own)


class Delta(Peer):
    """With deletion vectors. It has no transforms, so the month is one column more."""

    clauses = "USING delta {partition} TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    by_month = "PARTITIONED BY (l_shipmonth)"

    def session(self, settings: dict[str, str]) -> SparkSession:
        from support.delta_spark import SETTINGS

        return super().session(settings | SETTINGS)

    def create_by_month(self, columns: str) -> None:
        super().create_by_month(f"{columns}, l_shipmonth STRING")

    def append_by_month(self) -> None:
        month = "date_format(l_shipdate, 'yyyy-MM')"
        self.spark.sql(f"INSERT INTO {self.catalog}.monthly SELECT *, {month} FROM origin")


class Names(Peer):
    """Penstock by the names of its tables in SQL: a lake a round, its catalog in SQLite."""

    catalog = "peer.main"

    def session(self, settings: dict[str, str]) -> SparkSession:
        import penstock

        return penstock.session("local[2]", **settings)

    def create(self, columns: str) -> None:
        import penstock

        place = self.scratch / "lake"
        place.mkdir()
        self.lake = penstock.attach(
            f"ducklake:sqlite:{place}/lake.sqlite", data_path=f"{place}/data/", name="peer", spark=self.spark
        )
        self.lake.create_table("lineitem", columns)
        self.lake.create_table("few", FEW)
        self.lake.create_table("monthly", columns, partitioned_by=["year(l_shipdate)", "month(l_shipdate)"])

    def end(self) -> None:
        self.lake.close()
        shutil.rmtree(self.scratch / "lake")


class Penstock(Names):
    """Penstock by its Python methods."""

    def readable(self, table: str) -> str:
        self.lake.table(table).read().createOrReplaceTempView("shown")
        return "shown"

    def append(self) -> None:
        self.lake.table("lineitem").append(self.spark.table("origin"))

    def append_by_month(self) -> None:
        self.lake.table("monthly").append(self.spark.table("origin"))

    def delete(self) -> None:
        self.lake.table("lineitem").delete(DELETED)

    def update(self) -> None:
        self.lake.table("lineitem").update(ASSIGNED, where=UPDATED)

    def merge(self) -> None:
        clauses = self.lake.table("lineitem").merge(self.spark.table("changes"), KEYS)
        clauses.when_matched_update(MERGED).when_not_matched_insert().execute()

    def append_few(self) -> None:
        table = self.lake.table("few")
        for number in range(APPENDS):
            table.append(self.spark.sql(f"SELECT * FROM VALUES {few(number)} AS rows(id, name, day, price)"))


SYSTEMS: dict[str, type[Peer]] = {"penstock": Penstock, "names": Names, "iceberg": Iceberg, "delta": Delta}


def serve(peer: Peer, replies: IO[str]) -> None:
    for line in sys.stdin:
        work, *arguments = json.loads(line)
        told: dict[str, Any]
        try:
            told = {"answer": getattr(peer, work)(*arguments)}
        except Exception as error:
            told = {"error": str(error)[:3000]}
        print(json.dumps(told), file=replies, flush=True)
    peer.spark.stop()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    # The JVM prints to the standard output that it inherits: keep the replies apart.
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(SYSTEMS[sys.argv[1]](Path(sys.argv[2]), json.loads(sys.argv[3])), own)
