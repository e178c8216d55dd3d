"""Writers that die or fail at the worst moments, and bad input: the last version stays, and nothing else shows."""

from __future__ import annotations

import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
import penstock.delta
from penstock.delta import DeltaTable
from penstock.delta.writing import backfill, file_commits
from penstock.errors import InvalidError, PenstockError, UnsupportedError
from penstock.storage import filesystems
from support.delta_writers import (
    Row,
    Writer,
    by_deltalake,
    by_duckdb,
    dies,
    in_order,
)
from support.processes import READY, Child
from support.small_sessions import SMALL

FIRST = [(1, "US"), (2, "US"), (3, "CN"), (4, None)]
DEAD: list[Row] = [(100, "dead", "US"), (101, "dead", "new"), (102, "dead", None)]


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    made = Writer.create(tmp_path)
    made.append("a", FIRST[::2])
    made.append("b", FIRST[1::2])
    return made


def opened(writer: Writer, spark: SparkSession) -> DeltaTable:
    return penstock.delta.open(writer.root, spark=spark)


def rows_of(delta: DeltaTable) -> list[Row]:
    return in_order(delta.read().select("id", "batch", "country").collect())


def everyone_reads(writer: Writer, spark: SparkSession, expected: list[Row]) -> None:
    assert rows_of(opened(writer, spark)) == expected
    assert by_deltalake(writer.root) == by_duckdb(writer.root) == writer.rows() == expected


@pytest.mark.parametrize(
    ("moment", "committed", "unfinished"),
    [("written in part", 0, 1), ("written", 0, 1), ("linked", 1, 1), ("linked and tidied", 1, 0)],
)
def test_a_commit_that_is_killed(
    writer: Writer, spark: SparkSession, moment: str, committed: int, unfinished: int
) -> None:
    expected = writer.rows() + (DEAD if committed else [])
    with Child(dies, (writer.root, moment)) as child:
        child.is_ready()
        child.kill()
    assert len(writer.unfinished()) == unfinished
    assert writer.log.latest_version() == 2 + committed
    everyone_reads(writer, spark, expected)
    frame = spark.createDataFrame([(200, "next", "US")], "id long, batch string, country string")
    assert opened(writer, spark).append(frame) == 3 + committed
    opened(writer, spark).checkpoint()
    everyone_reads(writer, spark, [*expected, (200, "next", "US")])


def backfills(root: str) -> None:
    """A process of its own, whose backfill stops before its second commit."""
    spark = penstock.session("local[1]", **SMALL)
    committing, calls = file_commits.commit, count(1)

    def stopping(*arguments: Any, **named: Any) -> Any:
        if next(calls) == 2:
            print(READY, flush=True)
            time.sleep(600)
        return committing(*arguments, **named)

    file_commits.commit, backfill._FILES_A_COMMIT = stopping, 2
    penstock.delta.open(root, spark=spark).backfill()


def compacts(root: str, moment: str) -> None:
    """A process of its own, whose compaction stops before its commit, or after it."""
    spark = penstock.session("local[1]", **SMALL)
    committing = file_commits.commit

    def stopping(*arguments: Any, **named: Any) -> Any:
        done = committing(*arguments, **named) if moment == "committed" else None
        print(READY, flush=True)
        time.sleep(600)
        return done

    file_commits.commit = stopping
    penstock.delta.open(root, spark=spark).compact()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["written", "committed"])
def test_a_compaction_that_is_killed(writer: Writer, spark: SparkSession, moment: str) -> None:
    expected, files = writer.rows(), set(writer.data_files())
    with Child.script(__file__, writer.root, moment) as child:
        child.is_ready()
    assert writer.log.latest_version() == 2 + (moment == "committed")
    assert files < set(writer.data_files()), "nothing is deleted, and what was written is there"
    everyone_reads(writer, spark, expected)
    assert opened(writer, spark).compact() == 3, "what was not done is done now, and what was done is not done again"
    everyone_reads(writer, spark, expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda now=time.time: now() + 10 * 86400)
        opened(writer, spark).vacuum()
    everyone_reads(writer, spark, expected)


@pytest.mark.slow
def test_a_backfill_that_is_killed_between_two_commits(writer: Writer, spark: SparkSession) -> None:
    writer.enable()
    expected = writer.rows()
    with Child.script(__file__, writer.root) as child:
        child.is_ready()
    everyone_reads(writer, spark, expected)
    found = opened(writer, spark).verify()
    assert (found.files, [finding.kind for finding in found.findings]) == (4, ["missing"] * 2)
    assert opened(writer, spark).backfill() == 5
    assert opened(writer, spark).verify().ok
    everyone_reads(writer, spark, expected)
    assert opened(writer, spark).backfill() == 5, "there is nothing more to do"
    assert all(not action.data_change for action in writer.added_by(4) + writer.added_by(5))


def test_a_disk_that_fails_before_the_commit_or_after_it(
    writer: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the log keeps its files, whatever the writer is told."""

    def failing(*_: Any) -> None:
        raise OSError("the disk is full")

    files, expected = writer.data_files(), writer.rows()
    frame = spark.createDataFrame([(200, "next", "US")], "id long, batch string, country string")
    with monkeypatch.context() as patch:
        patch.setattr(filesystems.os, "link", failing)
        for act in (lambda: opened(writer, spark).append(frame), lambda: opened(writer, spark).delete("id = 1")):
            with pytest.raises(OSError, match="the disk is full"):
                act()
    assert (writer.data_files(), writer.unfinished()) == (files, [])
    everyone_reads(writer, spark, expected)
    with monkeypatch.context() as patch:
        patch.setattr(filesystems, "_sync_directory", failing)
        with pytest.raises(OSError, match="the disk is full"):
            opened(writer, spark).append(frame)
    everyone_reads(writer, spark, [*expected, (200, "next", "US")])


@pytest.mark.parametrize(
    ("rows", "schema", "where", "message"),
    [
        ([(5, "US"), (None, "CN")], "id long, country string", None, "id.*NULL|NULL.*id"),
        ([("CN",)], "country string", None, "column 'id' takes no NULL"),
        ([(5, "US", 1)], "id long, country string, other int", None, "no column 'other'"),
        ([("x", "US")], "id string, country string", None, "id"),
        ([(5, "US"), (6, "CN")], "id long, country string", "country = 'US'", "does not satisfy country = 'US'"),
        ([(5, None)], "id long, country string", "country = 'US'", "does not satisfy country = 'US'"),
    ],
    ids=["null", "not given", "unknown column", "wrong type", "outside the predicate", "unknown to the predicate"],
)
def test_bad_input_leaves_nothing(
    writer: Writer,
    spark: SparkSession,
    rows: list[Any],
    schema: str,
    where: str | None,
    message: str,
) -> None:
    files, version = writer.data_files(), writer.log.latest_version()
    frame = spark.createDataFrame(rows, schema).repartition(2)
    delta = opened(writer, spark)
    with pytest.raises(InvalidError, match=message):
        delta.append(frame) if where is None else delta.overwrite(frame, where=where)
    assert (writer.data_files(), writer.log.latest_version()) == (files, version)


@pytest.mark.parametrize("materialized", [False, True])
@pytest.mark.parametrize("value", [None, ""])
def test_a_partition_column_that_takes_no_null(
    tmp_path: Path, spark: SparkSession, value: str | None, materialized: bool
) -> None:
    """An empty text is NULL in the log."""
    delta = penstock.delta.create(
        str(tmp_path),
        "id BIGINT, country STRING NOT NULL",
        partitioned_by=["country"],
        materialize_partition_columns=materialized,
        spark=spark,
    )
    with pytest.raises(InvalidError, match="country"):
        delta.append(spark.createDataFrame([(1, "US"), (2, value)], "id long, country string"))
    assert delta.version == 0
    assert list(tmp_path.rglob("*.parquet")) == []


def test_an_append_only_table_keeps_its_rows(tmp_path: Path, spark: SparkSession) -> None:
    writer = Writer.create(tmp_path, appendOnly="true")
    writer.append("a", FIRST)
    writer.enable()
    files, rows, delta = writer.data_files(), writer.rows(), opened(writer, spark)
    frame = spark.createDataFrame([(5, "US")], "id long, country string")
    for act in (
        lambda: delta.delete("id = 1"),
        lambda: delta.delete(),
        lambda: delta.overwrite(frame, where="country = 'US'"),
    ):
        with pytest.raises(UnsupportedError, match="is append-only"):
            act()
    assert (writer.log.latest_version(), writer.data_files(), writer.rows()) == (2, files, rows)
    assert delta.append(frame) == 3
    assert delta.backfill() == 4
    assert delta.verify().ok
    assert writer.ids() == [1, 2, 3, 4, 5]


def test_a_predicate_that_cannot_be_computed_leaves_nothing(writer: Writer, spark: SparkSession) -> None:
    files, delta = writer.data_files(), opened(writer, spark)
    frame = spark.createDataFrame([(5, "US")], "id long, country string")
    for act in (
        lambda: delta.delete("raise_error(country) IS NULL"),
        lambda: delta.overwrite(frame, where="raise_error(country) IS NULL"),
        lambda: delta.delete("nowhere = 1"),
    ):
        with pytest.raises((PenstockError, PySparkException)):
            act()
    assert (writer.data_files(), writer.log.latest_version()) == (files, 2)


if __name__ == "__main__":
    backfills(sys.argv[1]) if len(sys.argv) == 2 else compacts(*sys.argv[1:])
