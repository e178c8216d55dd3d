"""Commits, beside DuckDB's extension on the same database: python benchmarks/commits.py [--only sqlite postgres]

For each database: the time to register 10,000 files with statistics of 16 columns in one commit; commits a second of
one row that is kept in the catalog, by the catalog layer alone, by `Table.append`, and by the extension.
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

import duckdb
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
COMMITS = {"catalog": 200, "Table.append": 30, "DuckDB": 100}
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


def by_spark(kind: str, spark: SparkSession) -> float:
    with place(kind) as catalog, penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT")
        return rate(lambda number: table.append(spark.range(number, number + 1)), COMMITS["Table.append"])


def by_duckdb(kind: str) -> float | None:
    with place(kind) as catalog, catalog.reference() as reference:
        reference.execute("CREATE TABLE t (id BIGINT)")
        try:
            return rate(lambda number: reference.execute(f"INSERT INTO t VALUES ({number})"), COMMITS["DuckDB"])
        except duckdb.Error:  # on MySQL it fails at the second insert
            return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS, help="the databases")
    kinds = parser.parse_args().only
    spark = penstock.session("local[2]")
    print(f"{'':10}{f'{FILES:,} files':>14}{'catalog':>12}{'Table.append':>14}{'DuckDB':>10}")
    print(f"{'':10}{'s a commit':>14}{'commits/s':>12}{'commits/s':>14}{'commits/s':>10}")
    for kind in kinds:
        theirs = by_duckdb(kind)
        row = (bulk(kind), by_catalog(kind), by_spark(kind, spark))
        print(
            f"{kind:10}{row[0]:14.2f}{row[1]:12.1f}{row[2]:14.1f}{'fails' if theirs is None else f'{theirs:.1f}':>10}",
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
