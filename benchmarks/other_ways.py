"""Other ways from Spark to a DuckLake, beside DuckDB: python benchmarks/other_ways.py

DuckDB's extension makes tables of what lakes have. Each way reads them, some also as they were at first, and appends to
three; DuckDB says what is right. `ducklake-dataframe` (to be installed) and DuckDB's JDBC driver (which Spark fetches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import lakes
from ducklake_pyspark import read_ducklake, write_ducklake
from pyspark.sql import DataFrame, Row, SparkSession
from runs import setting

import penstock

DRIVER = {"driver": "org.duckdb.DuckDBDriver", "preferTimestampNTZ": "true"}
SETTINGS = {"spark.jars.packages": "org.duckdb:duckdb_jdbc:1.5.5.1", "spark.sql.session.timeZone": "UTC"}
OLD = "CREATE TABLE {} AS SELECT i AS id, if(i % 10 = 0, NULL, 'x' || i) AS name FROM range(1000) t(i)"
MORE = "INSERT INTO {} SELECT i, 'y' || i FROM range(1000, 2000) t(i)"
DAYS = "SELECT i, ['EU', 'US', NULL][i % 3 + 1], DATE '2026-01-01' + (i % 90)::INTEGER FROM range(1000) t(i)"
TYPES = """SELECT i AS id, (i / 4)::DECIMAL(12, 2) AS amount, i / 8 AS number, i % 2 = 0 AS flag,
DATE '1969-12-01' + i::INTEGER AS day, TIMESTAMP '1969-12-31 23:59:58.123' + to_hours(i) AS ts FROM range(1000) t(i)"""
TABLES = {
    "files": [OLD, MORE],
    "few_deleted": [OLD, "DELETE FROM {} WHERE id < 5"],
    "many_deleted": [OLD, "DELETE FROM {} WHERE id % 3 = 0"],
    "updated": [OLD, "UPDATE {} SET name = 'new' WHERE id % 4 = 0"],
    "inlined": [OLD, "INSERT INTO {} VALUES (5000, 'few'), (5001, NULL)"],
    "added": [OLD, "ALTER TABLE {} ADD COLUMN more INTEGER", "INSERT INTO {} SELECT i, 'y', i FROM range(999) t(i)"],
    "with_default": [OLD, "ALTER TABLE {} ADD COLUMN more INTEGER DEFAULT 7"],
    "renamed": [OLD, "ALTER TABLE {} RENAME name TO label", MORE],
    "dropped_and_added": [OLD, "ALTER TABLE {} DROP name", "ALTER TABLE {} ADD COLUMN name VARCHAR"],
    "widened": ["CREATE TABLE {} (id INTEGER)", "INSERT INTO {} FROM range(1000)",
                "ALTER TABLE {} ALTER id TYPE BIGINT", "INSERT INTO {} FROM range(5000000000, 5000001000)"],
    "partitioned": ["CREATE TABLE {} (id BIGINT, region VARCHAR, day DATE)",
                    "ALTER TABLE {} SET PARTITIONED BY (region, month(day))", f"INSERT INTO {{}} {DAYS}"],
    "types": [f"CREATE TABLE {{}} AS {TYPES}"],
    "nested": ["CREATE TABLE {} AS SELECT i AS id, [i, NULL] AS list, struct_pack(a := i) AS row FROM range(500) t(i)"],
    "merged": [OLD, MORE, "CALL ducklake_merge_adjacent_files('lake', '{}')"],
}  # fmt: skip
AT_FIRST = ("many_deleted", "renamed", "merged")
NEW = {
    "files": ["id", "'new' AS name"],
    "renamed": ["id", "'new' AS label"],
    "partitioned": ["id", "'EU' AS region", "date_add(DATE'2026-01-01', int(id % 90)) AS day"],
}


def in_duckdb(uri: str, *statements: str, options: str = "READ_ONLY") -> list[tuple[Any, ...]]:
    with lakes.duck() as duckdb:
        duckdb.execute(f"ATTACH '{uri}' AS lake ({options}); USE lake")
        return [duckdb.execute(statement).fetchall() for statement in statements][-1]


def at(version: int | None) -> str:
    return "" if version is None else f" AT (VERSION => {version})"


def compared(read: Callable[[], DataFrame], right: Counter[str]) -> str:
    rows = read().collect()
    found = Counter(repr(tuple(one.asDict() if isinstance(one, Row) else one for one in row)) for row in rows)
    lost, foreign = (right - found).total(), (found - right).total()
    return f"{lost} rows lost, {foreign} that are not there" if lost or foreign else "right"


def told(work: Callable[[], object]) -> object:
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def main() -> None:
    with setting(__doc__, SETTINGS) as given:
        try_ways(given.spark, str(given.scratch))


def try_ways(spark: SparkSession, folder: str) -> None:
    path, uri, data = f"{folder}/lake.sqlite", f"ducklake:sqlite:{folder}/lake.sqlite", f"DATA_PATH '{folder}/data'"
    right: dict[tuple[str, int | None], Counter[str]] = {}
    for table, (first, *later) in TABLES.items():
        snapshot = (first.format(table), "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
        [[version]] = in_duckdb(uri, *snapshot, options=data)
        rows = in_duckdb(uri, *(statement.format(table) for statement in later), f"FROM {table}", options=data)
        right[table, None] = Counter(map(repr, rows))
        if table in AT_FIRST:
            right[table, version] = Counter(map(repr, in_duckdb(uri, f"FROM {table}{at(version)}")))
    ready = f"LOAD ducklake; LOAD sqlite_scanner; ATTACH '{uri}' AS lake (READ_ONLY);"
    source = spark.read.format("jdbc").options(**DRIVER, url="jdbc:duckdb:", prepareQuery=ready)
    lake = penstock.attach(uri)
    ways: dict[str, tuple[Callable[[str, int | None], DataFrame], Callable[[DataFrame, str], object]]] = {
        "Penstock": (lambda name, at: lake.table(name).read(version=at), lambda df, name: lake.table(name).append(df)),
        "ducklake-dataframe": (
            lambda name, at: read_ducklake(spark, path, name, snapshot_version=at),
            lambda df, name: write_ducklake(df, path, name, mode="append"),
        ),
        "JDBC": (
            lambda name, version: source.option("query", f"SELECT * FROM lake.{name}{at(version)}").load(),
            lambda df, name: df.write.jdbc(f"jdbc:duckdb:{uri}", name, "append", DRIVER),
        ),
    }
    for way, (read, _) in ways.items():
        for (name, version), rows_of in right.items():
            print(way, "reads", name + at(version), told(partial(compared, partial(read, name, version), rows_of)))
    for (way, (_, write)), (name, columns), tasks in product(ways.items(), NEW.items(), (1, 2)):
        [[start]] = in_duckdb(uri, f"SELECT max(id) + 1 FROM {name}")
        said = told(partial(write, spark.range(start, start + 1000, 1, tasks).selectExpr(*columns), name))
        [[found]] = in_duckdb(uri, f"SELECT count(*) FROM {name} WHERE id >= {start}")
        print(way, "appends to", name, "in", tasks, "tasks:", found, "of 1000 rows;", said, flush=True)


if __name__ == "__main__":
    main()
