"""Catalogs of very many files: python benchmarks/catalog_scale.py [--files 100000 1000000] [--only sqlite postgres]

A table with an id, a region, a moment and a day, which it is partitioned by: ten files a day, each with statistics of
all columns. Only the catalog is real. What a catalog is asked is timed at every size in one run, the first time and
then, and plans the second time too, which may look at more than the first; with --bare without the indexes, as in
lakes that DuckDB made. The goal for planning is 2 s at a million files, for all else twice the time of a hundred
thousand.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from commits import place
from pyspark.sql import SparkSession
from runs import seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import penstock
from penstock.ducklake.catalog.catalog_tables import INDEXES
from penstock.ducklake.catalog.commits.staged_files import add_files
from penstock.ducklake.catalog.databases import Database
from penstock.schema.statistics import ColumnStatistics, WrittenFile

KINDS = ("sqlite", "postgres")
COLUMNS = "id BIGINT, region STRING, ts TIMESTAMP_NTZ, day DATE"
FILES_A_DAY, FILES_A_SNAPSHOT, ROWS_A_FILE, FILE_BYTES, NEW_FILES = 10, 1000, 1000, 1_000_000, 10_000
FIRST_DAY = date(1800, 1, 1)


@dataclass(frozen=True)
class Question:
    """A filter that keeps ten files of a lake, or as few as that is made of."""

    name: str
    predicate: str
    kept: int


def day_of(file: int) -> date:
    return FIRST_DAY + timedelta(days=file // FILES_A_DAY)


def questions(files: int) -> list[Question]:
    middle = files // 2
    low, high = middle * ROWS_A_FILE, (middle + FILES_A_DAY) * ROWS_A_FILE - 1
    day = day_of(middle)
    by_id, by_day = f"id BETWEEN {low} AND {high}", f"day = DATE '{day}'"
    by_time = f"ts >= TIMESTAMP_NTZ '{day} 00:00:00' AND ts < TIMESTAMP_NTZ '{day + timedelta(days=1)} 00:00:00'"
    return [
        Question("statistics of a number", by_id, FILES_A_DAY),
        Question("statistics of a moment", by_time, FILES_A_DAY),
        Question("a partition", by_day, FILES_A_DAY),
        Question("both", f"{by_id} AND {by_day}", FILES_A_DAY),
    ]


def fill(database: Database, table_id: int, partition_id: int, files: int) -> None:
    """Rows for so many files, as so many appends have left them; the second of these removed the files of the first."""
    [(newest, catalog_id)] = database.query("SELECT max(snapshot_id), max(next_catalog_id) FROM ducklake_snapshot")
    snapshots, now = range(files // FILES_A_SNAPSHOT), datetime.now(UTC)
    database.expect_many_rows()
    database.execute("CREATE TABLE scale_days (number BIGINT PRIMARY KEY, day_text VARCHAR(10))")
    with database.transaction():
        days = [(number, str(FIRST_DAY + timedelta(days=number))) for number in range(files // FILES_A_DAY)]
        database.insert("scale_days", ("number", "day_text"), days)
        for table, rows in {
            "ducklake_snapshot": [(newest + n + 1, now, 2, catalog_id, (n + 1) * FILES_A_SNAPSHOT) for n in snapshots],
            "ducklake_snapshot_changes": [
                (newest + n + 1, f"inserted_into_table:{table_id}", None, None, None) for n in snapshots
            ],
            "ducklake_table_stats": [(table_id, files * ROWS_A_FILE, files * ROWS_A_FILE, files * FILE_BYTES)],
        }.items():
            database.insert(table, database.columns(table), rows)
        for table, selected in _rows(table_id, partition_id, newest + 1).items():
            columns, values = ", ".join(selected), ", ".join(selected.values())
            each = ", (SELECT 1 AS c UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) columns"
            database.execute(
                f"""INSERT INTO {table} ({columns})
                    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {files - 1})
                    SELECT {values} FROM n JOIN scale_days d ON d.number = n.i / {FILES_A_DAY}
                    {each if "column_id" in selected else ""}"""
            )
    database.execute("DROP TABLE scale_days")


def _rows(table_id: int, partition_id: int, first: int) -> dict[str, dict[str, str]]:
    """The columns of each table of files, as SQL over the file `n.i`, its day `d` and the column `c`."""
    low, high = f"n.i * {ROWS_A_FILE}", f"n.i * {ROWS_A_FILE} + {ROWS_A_FILE - 1}"
    bounds = {
        "min_value": (f"CAST({low} AS VARCHAR(20))", "'Americas'", "d.day_text || ' 00:00:00'"),
        "max_value": (f"CAST({high} AS VARCHAR(20))", "'Oceania'", "d.day_text || ' 23:59:59.999999'"),
    }
    texts = {
        name: f"CASE c WHEN 1 THEN {number} WHEN 2 THEN {region} WHEN 3 THEN {moment} ELSE d.day_text END"
        for name, (number, region, moment) in bounds.items()
    }
    file = {"data_file_id": "n.i", "table_id": str(table_id)}
    name = "'/ducklake-00000000-0000-7000-8000-' || (100000000000 + n.i) || '.parquet'"
    return {
        "ducklake_data_file": {
            **file,
            "begin_snapshot": f"{first} + n.i / {FILES_A_SNAPSHOT}",
            "end_snapshot": f"CASE WHEN n.i < {FILES_A_SNAPSHOT} THEN {first + 1} END",
            "path": f"'day=' || d.day_text || {name}",
            "path_is_relative": "CAST(1 AS BOOLEAN)",
            "file_format": "'parquet'",
            "record_count": str(ROWS_A_FILE),
            "file_size_bytes": str(FILE_BYTES),
            "footer_size": "500",
            "row_id_start": low,
            "partition_id": str(partition_id),
        },
        "ducklake_file_partition_value": {**file, "partition_key_index": "0", "partition_value": "d.day_text"},
        "ducklake_file_column_stats": {
            **file, "column_id": "c", "column_size_bytes": "4000", "value_count": str(ROWS_A_FILE), "null_count": "0",
            **texts,
        },
    }  # fmt: skip


class Scale:
    """One lake of so many files, and what is timed on it."""

    def __init__(self, lake: penstock.Lake, files: int, runs: int) -> None:
        self.lake, self.files, self.runs = lake, files, runs
        self.database = lake._attachment.catalog.database
        self.times: dict[str, float] = {}

    def make(self, *, bare: bool) -> None:
        """The table and its files."""
        self.lake.create_table("events", COLUMNS, partitioned_by=["day"])
        [(table_id, partition_id)] = self.database.query("SELECT table_id, partition_id FROM ducklake_partition_info")
        self.table_id, self.partition_id = table_id, partition_id
        fill(self.database, table_id, partition_id, self.files)
        for index in INDEXES if bare else ():
            self.database.execute(f"DROP INDEX {index.name}")
        if not bare:
            self.lake.optimize_catalog()  # PostgreSQL counts the rows that its planner goes by
        os.makedirs(self.lake.table("events").info.path, exist_ok=True)

    def run(self) -> dict[str, float]:
        table = self.lake.table("events")
        self.timed("read()", table.read)
        for question in questions(self.files):
            self.timed(f"plan: {question.name}", partial(self.plan, question))
            self.timed(f"explain: {question.name}", partial(table.explain, question.predicate))
        self.timed("tables()", self.lake.tables)
        self.timed("files()", table.files)
        self.timed("current_snapshot()", self.lake.current_snapshot)
        self.timed("expire_snapshots, dry run", partial(self.lake.expire_snapshots, keep_last=10, dry_run=True))
        self.timed("commit of one file", partial(self.commit, 1))
        self.timed("read() after it", table.read, after=partial(self.commit, 1))
        self.timed(f"commit of {NEW_FILES:,} files", partial(self.commit, NEW_FILES))
        oldest = iter(range(1, self.files))
        self.timed("expire_snapshots", lambda: self.lake.expire_snapshots(versions=[next(oldest), next(oldest)]))
        return self.times

    def timed(self, name: str, call: Callable[[], object], after: Callable[[], object] = lambda: None) -> None:
        taken = []
        for _ in range(self.runs + 1):
            after()
            taken.append(seconds(call))
        self.times[f"{name}, first"] = taken[0]
        if name.startswith("plan: "):
            self.times[f"{name}, second"] = taken[1]
        self.times[name] = statistics.median(taken[1:])

    def plan(self, question: Question) -> None:
        frame = self.lake.table("events").read().where(question.predicate)
        plan: Any = frame._jdf.queryExecution().executedPlan()
        kept = plan.collectLeaves().apply(0).selectedPartitions().totalNumberOfFiles()
        assert kept == question.kept, (question, kept)

    def commit(self, files: int) -> None:
        day = str(day_of(self.files))
        bounds = ("1", "Asia", f"{day} 00:00:00", day)
        columns = tuple(ColumnStatistics(n + 1, 4000, ROWS_A_FILE, 0, text, text) for n, text in enumerate(bounds))
        written = [
            WrittenFile(f"day={day}/ducklake-{uuid4()}.parquet", ROWS_A_FILE, FILE_BYTES, 500, columns=columns,
                        partition_values=(day,))
            for _ in range(files)
        ]  # fmt: skip
        with self.lake._attachment.statement() as transaction:
            add_files(transaction.staging, self.table_id, self.partition_id, written)


def measured(kind: str, files: int, options: argparse.Namespace, spark: SparkSession) -> dict[str, float]:
    with place(kind) as catalog, penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        scale = Scale(lake, files, options.runs)
        scale.make(bare=options.bare)
        return scale.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", nargs="*", type=int, default=[100_000, 1_000_000], help="whole tens of thousands")
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS, help="the databases")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--bare", action="store_true", help="without indexes")
    options = parser.parse_args()
    spark = penstock.session("local[2]")
    for kind in options.only:
        times = [measured(kind, files, options, spark) for files in options.files]
        print(f"\n| {kind} | " + " | ".join(f"{files:,} files" for files in options.files) + " | ratio |")
        print("|---" * (len(times) + 2) + "|")
        for name in times[0]:
            row = [one[name] for one in times]
            print(f"| {name} | " + " | ".join(f"{taken:.3f} s" for taken in row) + f" | {row[-1] / row[0]:.1f} |")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
