"""`lake.health()`, and that the verbs and statements that it names mend what it found."""

from __future__ import annotations

import shlex

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import InvalidError
from support.catalogs import Catalog
from support.reference import identifier

UNTOLD = "files without statistics"
NAME = 'it\'s "a" \\ 🦆'


def test_what_health_names_mends_the_lake(spark: SparkSession, sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.build(data_inlining_row_limit=0) as reference:
        table = identifier(NAME)
        reference.execute(f"CREATE TABLE {table} (i BIGINT)", *[f"INSERT INTO {table} FROM range(20)"] * 12)
        reference.execute(
            "CREATE TABLE u AS FROM range(40000) r(i)",
            "DELETE FROM u WHERE i < 12000",
            f"CALL lk.set_option('auto_compact', 'false', table_name => '{NAME.replace(chr(39), chr(39) * 2)}')",
        )
    with penstock.attach(sqlite_catalog.uri, spark=spark) as lake:
        found = lake.health().collect()
        bad = {row.check: row for row in found if row.severity != "fine"}
        assert set(bad) == {"small files", "deleted rows", "options"}
        assert (bad["small files"].table_name, bad["small files"].numbers["merged"]) == (NAME, "12")
        for check, row in bad.items():
            if check == "small files":
                eval(row.verb, {"lake": lake})
            else:
                program, command, place, statement = shlex.split(row.remedy)
                assert (program, command, place) == ("penstock", "sql", "LAKE")
                lake.sql(statement).collect()
        assert {row.severity for row in lake.health(store=False).collect()} == {"fine"}
        lake.sql("CALL system.optimize_catalog()").collect()
        assert lake.optimize_catalog().count() == 0
        with lake.transaction(), pytest.raises(InvalidError, match="cannot be part of a transaction"):
            lake.health()


def test_files_get_statistics_by_what_is_said_of_them(spark: SparkSession, sqlite_catalog: Catalog) -> None:
    """Small ones by a merge, those with deletes by a rewrite; one that is alone by an update."""
    insert = "INSERT INTO t SELECT {0}, i FROM range(100) r(i)"
    with sqlite_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (p INTEGER, i BIGINT)", "ALTER TABLE t SET PARTITIONED BY (p)")
        reference.execute(*(insert.format(p) for p in (1, 1, 2, 3)), "DELETE FROM t WHERE p = 2 AND i < 50")
    sqlite_catalog.tamper("DELETE FROM ducklake_file_column_stats")
    with penstock.attach(sqlite_catalog.uri, spark=spark, data_inlining_row_limit=0) as lake:
        rows = sorted(lake.table("t").read().collect())
        merge, rewrite, alone = (row for row in lake.health(store=False).collect() if row.check == UNTOLD)
        assert [row.numbers["files"] for row in (merge, rewrite, alone)] == ["2", "1", "1"]
        assert "no maintenance writes them anew" in alone.message
        assert {alone.remedy, alone.verb} == {None}
        eval(merge.verb, {"lake": lake})
        assert _untold(lake) == [rewrite.numbers, alone.numbers]
        *_, statement = shlex.split(rewrite.remedy)
        lake.sql(statement).collect()
        assert _untold(lake) == [alone.numbers]
        lake.merge_adjacent_files("t")
        lake.rewrite_data_files("t", delete_threshold=0.0)
        assert _untold(lake) == [alone.numbers]  # as it was said
        lake.sql("UPDATE t SET i = i").collect()
        assert _untold(lake) == []
        assert sorted(lake.table("t").read().collect()) == rows


def _untold(lake: penstock.Lake) -> list[dict[str, str]]:
    found = lake.health(store=False).collect()
    return [row.numbers for row in found if row.check == UNTOLD and row.severity != "fine"]
