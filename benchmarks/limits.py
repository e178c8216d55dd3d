"""Where others fall off a cliff: python benchmarks/limits.py [--only partitions columns merge] [--most 10000000]

The same work at growing sizes in one run: one append to 100, 1,000 and 10,000 partitions; tables of 100, 1,000, 2,000
and 10,000 columns, appended to, read and changed; merges of 100,000, 1 million and 10 million source rows, nine in ten
of which match. Every table tells the time of a piece (a partition, a column, a source row) at each size and over that
of the smallest size, so that 1 or less is no cliff; and the memory that the JVM, the driver's Python and a worker held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psutil
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from runs import Setting, seconds, setting

import penstock
from penstock import Lake, Table

PARTITIONS = (100, 1_000, 10_000)
WIDTHS = (100, 1_000, 2_000, 10_000)
SOURCES = (100_000, 1_000_000, 10_000_000)
ROWS_A_PARTITION, ROWS_OF_WIDE, MEMORY = 10, 1_000, "4g"
ON = "target.id = source.id"


class Memory:
    """The most that this process and its JVM, and any one of its Python workers, held while it was watched."""

    def __init__(self) -> None:
        self.jvm = self.driver = self.worker = 0
        self._over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.driver = max(self.driver, psutil.Process().memory_info().rss)
            for process in psutil.Process().children(recursive=True):
                try:
                    held, name = process.memory_info().rss, process.name()
                except psutil.NoSuchProcess:
                    continue
                if name == "java":
                    self.jvm = max(self.jvm, held)
                else:
                    self.worker = max(self.worker, held)

    def told(self) -> str:
        return " | ".join(f"{held / 1e6:,.0f} MB" for held in (self.jvm, self.driver, self.worker))


class Report:
    """Rows of a table: the seconds of each size, and of a piece of it over that of the smallest size."""

    def __init__(self, title: str) -> None:
        self._smallest: dict[str, tuple[int, float]] = {}
        print(f"\n| {title} | size | time | a piece | of the smallest's | JVM | driver | worker |", flush=True)
        print("|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)

    def time(self, name: str, size: int, call: Callable[[], object]) -> None:
        memory = Memory()
        with memory.watched():
            taken = seconds(call)
        piece = taken / size
        if size <= self._smallest.get(name, (size, 0))[0]:  # the second time, when all is warm
            self._smallest[name] = size, piece
        ratio = piece / self._smallest[name][1]
        print(
            f"| {name} | {size:,} | {taken:.1f} s | {piece * 1e6:,.0f} µs | {ratio:.2f} | {memory.told()} |", flush=True
        )


@contextmanager
def new_lake(given: Setting, name: str) -> Iterator[Lake]:
    place = given.scratch / f"{name}-{time.monotonic_ns()}"
    place.mkdir()
    with penstock.attach(f"ducklake:sqlite:{place}/l.sqlite", data_path=f"{place}/data/", spark=given.spark) as lake:
        yield lake


def many_partitions(given: Setting) -> None:
    report = Report("one append")
    for count in (PARTITIONS[0], *PARTITIONS):  # the first warms up
        with new_lake(given, "partitions") as lake:
            table = lake.create_table("t", "part BIGINT, id BIGINT, name STRING", partitioned_by=["part"])
            ids = given.spark.range(count * ROWS_A_PARTITION)
            rows = ids.selectExpr(f"id % {count} AS part", "id", "concat('row ', id) AS name")
            report.time("to partitions", count, partial(table.append, rows))
            report.time("read one of them", count, table.read().where("part = 7").collect)
            report.time("read them all", count, table.read().groupBy("part").agg(F.max("name")).collect)


def wide_tables(given: Setting) -> None:
    report = Report("a wide table")
    for width in (WIDTHS[0], *WIDTHS):
        with new_lake(given, "columns") as lake:
            types = ("BIGINT", "STRING", "DOUBLE", "DATE")
            values = ("id + {i}", "concat('value ', id % {i})", "id / {i}", "date_add(DATE'2026-01-01', {i})")
            names = [f"c{i} {types[i % 4]}" for i in range(1, width + 1)]
            report.time("create", width, partial(lake.create_table, "t", ", ".join(names)))
            table = lake.table("t")
            given_values = (f"{values[i % 4].format(i=i)} AS c{i}" for i in range(1, width + 1))
            rows = given.spark.range(ROWS_OF_WIDE).selectExpr(*given_values)
            report.time("append", width, partial(table.append, rows))
            report.time("plan a read", width, table.read)
            report.time("read three columns", width, table.read().select("c1", "c2", f"c{width}").collect)
            report.time("read all columns", width, table.read().where("c4 % 10 = 1").toArrow)
            report.time("count of every column", width, table.read().selectExpr(*counts(width)).collect)
            report.time("update", width, partial(table.update, {"c1": "'changed'"}, where="c4 % 10 = 1"))


def counts(width: int) -> Iterator[str]:
    return (f"count(c{i}) AS n{i}" for i in range(1, width + 1))


def large_merges(given: Setting) -> None:
    """Nine of ten source rows match one of the target's, and all but the key is given anew."""
    report = Report("a merge")
    columns = "id BIGINT, name STRING, amount DECIMAL(15, 2), day DATE"
    for count in [size for size in (SOURCES[0], *SOURCES) if size <= given.options.most]:
        with new_lake(given, "merge") as lake:
            table = lake.create_table("t", columns)
            table.append(given.spark.sql(made(count, 0)))
            source = given.spark.sql(made(count, count // 10))
            report.time("rows of the source", count, partial(merged, table, source))
            found = table.read().agg(F.count("id"), F.countDistinct("id"), F.max("id")).collect()[0]
            expected = count + count // 10
            assert tuple(found) == (expected, expected, expected - 1), found


def made(count: int, first: int) -> str:
    shuffled = f"{first} + (id * 7919) % {count}"  # every id once, in no order: the number is prime
    return f"""SELECT {shuffled} AS id, concat('name of ', id) AS name, CAST(id % 100000 AS DECIMAL(15, 2)) AS amount,
               date_add(DATE'1990-01-01', CAST(id % 10000 AS INT)) AS day FROM range({count})"""


def merged(table: Table, source: DataFrame) -> None:
    table.merge(source, ON).when_matched_update().when_not_matched_insert().execute()


WORK = {"partitions": many_partitions, "columns": wide_tables, "merge": large_merges}


def main() -> None:
    only, most = {"nargs": "+", "choices": WORK, "default": list(WORK)}, {"type": int, "default": SOURCES[-1]}
    with setting(__doc__, {"spark.driver.memory": MEMORY}, only=only, most=most) as given:
        for name in given.options.only:
            WORK[name](given)


if __name__ == "__main__":
    main()
