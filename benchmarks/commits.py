"""Commits, beside DuckDB's extension on the same database: python benchmarks/commits.py [--only sqlite postgres]

For each database: the time to register 10,000 files with statistics of 16 columns in one commit; commits a second of
one row that is kept in the catalog, by the catalog layer alone; and appends a second of five rows, by `Table.append` of
Python's rows, of Arrow, of a DataFrame of a list and of one whose rows take a job, and by the extension's INSERT.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import penstock
from penstock.ducklake.catalog.commits.staged_files import add_files
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile
from penstock.schema.types import Type
from support.catalogs import Catalog, DuckDBCatalog, MySQLCatalog, PostgresCatalog, SQLiteCatalog
from support.servers import MariaDBServer, PostgresServer
from support.writers import Writer

FILES, COLUMNS, RUNS = 10_000, 16, 3
COMMITS = {"catalog": 200, "rows": 200, "Arrow": 200, "DataFrame": 60, "job": 20, "DuckDB": 100}
ROWS = [(number, f"name {number}", number / 2) for number in range(5)]
SCHEMA = "id BIGINT, name STRING, x DOUBLE"
KINDS = ("duckdb", "sqlite", "postgres", "mysql")


@contextmanager
def place(kind: str) -> Iterator[Catalog]:
    """An empty place for a lake."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        match kind:
            case "duckdb":
                yield DuckDBCatalog(directory)
            case "sqlite":
                yield SQLiteCatalog(directory)
            case _:
                server = PostgresServer() if kind == "postgres" else MariaDBServer()
                try:
                    yield (
                        PostgresCatalog(directory, server)
                        if isinstance(server, PostgresServer)
                        else MySQLCatalog(directory, server)
                    )
                finally:
                    server.stop()


def bulk(kind: str) -> float:
    """Seconds of a commit of many files."""
    columns = tuple(Column(i, f"c{i}", Type("int64" if i % 2 else "varchar"), 0) for i in range(1, COLUMNS + 1))
    files = [
        WrittenFile(
            f"ducklake-{n:036}.parquet", 1000, 123_456, 789,
            columns=tuple(ColumnStatistics(c.id, 1000, 1000, 0, str(n), str(n + 1000)) for c in columns),
        )
        for n in range(FILES)
    ]  # fmt: skip

    def once(writer: Writer) -> float:
        started = time.perf_counter()
        with writer.transaction() as transaction:
            add_files(transaction.staging, writer.table(transaction, "t").id, None, files)
        return time.perf_counter() - started

    with place(kind) as catalog, Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t", columns)
        return statistics.median(once(writer) for _ in range(RUNS))


def rate(commit: Callable[[int], object], commits: int) -> float:
    """Commits a second, after one that warms up."""
    commit(0)
    started = time.perf_counter()
    for number in range(1, commits + 1):
        commit(number)
    return commits / (time.perf_counter() - started)


def by_catalog(kind: str) -> float:
    with place(kind) as catalog, Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t")
        return rate(lambda number: writer.append("t", number), COMMITS["catalog"])


def ways(spark: SparkSession) -> dict[str, Callable[[], Any]]:
    """The rows, in each of the ways that `append` takes them."""
    arrow = pa.table(dict(zip(("id", "name", "x"), map(list, zip(*ROWS, strict=True)), strict=True)))
    return {
        "rows": lambda: ROWS,
        "Arrow": lambda: arrow,
        "DataFrame": lambda: spark.createDataFrame(ROWS, SCHEMA),
        "job": lambda: spark.createDataFrame(ROWS, SCHEMA).coalesce(1),
    }


def by_append(kind: str, spark: SparkSession) -> Iterator[float]:
    for way, rows in ways(spark).items():
        with place(kind) as catalog, penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
            table = lake.create_table("t", SCHEMA)
            yield rate(lambda _, table=table, rows=rows: table.append(rows()), COMMITS[way])  # type: ignore[misc]


def by_duckdb(kind: str) -> float | None:
    values = ", ".join(map(str, ROWS))
    with place(kind) as catalog, catalog.reference() as reference:
        reference.execute("CREATE TABLE t (id BIGINT, name VARCHAR, x DOUBLE)")
        try:
            return rate(lambda _: reference.execute(f"INSERT INTO t VALUES {values}"), COMMITS["DuckDB"])
        except duckdb.Error:  # on MySQL it fails at the second insert
            return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS, help="the databases")
    kinds = parser.parse_args().only
    spark = penstock.session("local[2]")
    heads = ("catalog", "rows", "Arrow", "DataFrame", "job", "DuckDB")
    print(f"{'':10}{f'{FILES:,} files':>14}" + "".join(f"{head:>12}" for head in heads))
    print(f"{'':10}{'s a commit':>14}" + "".join(f"{'a second':>12}" for _ in heads))
    for kind in kinds:
        theirs = by_duckdb(kind)
        found = (by_catalog(kind), *by_append(kind, spark))
        told = [*(f"{value:.1f}" for value in found), "fails" if theirs is None else f"{theirs:.1f}"]
        print(f"{kind:10}{bulk(kind):14.2f}" + "".join(f"{text:>12}" for text in told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
