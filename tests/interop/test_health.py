"""`lake.health()`, and that the verbs and statements that it names mend what it found."""

from __future__ import annotations

import shlex

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import InvalidError
from support.catalogs import Catalog
from support.reference import identifier

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
