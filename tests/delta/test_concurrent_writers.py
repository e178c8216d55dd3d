"""Many writers of one table at once: nothing is lost or twice, and a feature that is switched on holds for all."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.delta
from penstock.delta import DeltaTable
from penstock.delta.writing import backfill, file_commits
from penstock.errors import ConflictError
from support.delta_writers import (
    Attempt,
    Writer,
    appends,
    attempts_of,
    by_deltalake,
    by_duckdb,
    described,
    in_order,
    switches_at,
    transacts,
)
from support.processes import READY, Child
from support.small_sessions import SMALL
from support.stalled import Stalled

WRITERS, BATCHES = 8, 8
SPARKS, SPARK_BATCHES = 2, 2


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer.create(tmp_path)


def opened(writer: Writer, spark: SparkSession) -> DeltaTable:
    return penstock.delta.open(writer.root, spark=spark)


def check_switch(writer: Writer, switched: int, told: list[list[Attempt]]) -> None:
    """Every batch is there once, and no file from before the switch came in after it."""
    attempts = [attempt for ones in told for attempt in ones]
    made = sorted(attempt.version for attempt in attempts if attempt.version is not None)
    assert made == [version for version in range(1, len(made) + 2) if version != switched], "a commit was lost"
    for attempt in attempts:
        if attempt.version is None:
            assert attempt.base < switched
            assert "switched on materializePartitionColumns" in attempt.told
        else:
            assert (attempt.base < switched) == (attempt.version < switched), attempt
    for version in made:
        for file in writer.added_by(version):
            kinds = [finding.kind for finding in writer.findings(file)]
            assert kinds == (["missing"] if version < switched else []), (version, file)
    assert writer.data_files() == writer.live_files(), "files of those that came too late are left"
    assert writer.unfinished() == []
    assert by_deltalake(writer.root) == by_duckdb(writer.root) == writer.rows()


def test_eight_processes_append_while_the_feature_is_switched_on(writer: Writer) -> None:
    held = {0: 2, 1: 3}  # these two are surely under way at the switch
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child(appends, (writer.root, number, BATCHES, held.get(number))))
            for number in range(WRITERS)
        ]
        switch = stack.enter_context(Child(switches_at, (writer.root, WRITERS * BATCHES // 2 - len(held))))
        for child in (switch, *children):
            child.is_ready()
        for child in (switch, *children):
            child.go()
        for number in held:
            children[number].is_ready()
        switched = switch.told()
        for number in held:
            children[number].go()
        told = [child.told() for child in children]
    check_switch(writer, switched, told)
    assert all(any(attempt.version is None for attempt in told[number]) for number in held)
    assert 1 < switched < WRITERS * BATCHES
    assert writer.ids() == list(range(WRITERS * BATCHES * 4))


def spark_appends(root: str, number: int) -> None:
    """A process with a Spark of its own, whose second append waits, its files written, until it is told to go on."""
    spark = penstock.session("local[1]", **SMALL)
    delta, attempts, committing = penstock.delta.open(root, spark=spark), [], file_commits.commit
    waits, base = False, -1

    def waiting(log: Any, snapshot: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal waits, base
        base = snapshot.version
        if waits:
            waits = False
            print(READY, flush=True)
            sys.stdin.readline()
        return committing(log, snapshot, *arguments, **named)

    file_commits.commit = waiting  # type: ignore[assignment]
    print(READY, flush=True)
    sys.stdin.readline()
    for batch in range(SPARK_BATCHES):
        first = (number * SPARK_BATCHES + batch) * 3
        rows = [(first, "US", "x"), (first + 1, None, None), (first + 2, "a/b=%", "'")]
        frame = spark.createDataFrame(rows, "id long, country string, batch string").coalesce(1)
        waits = batch == 1
        while True:
            try:
                version = delta.append(frame)
                attempts.append(Attempt(base, version))
                break
            except ConflictError as error:
                attempts.append(Attempt(base, None, str(error)))
    print(described(attempts), flush=True)


@pytest.mark.slow
def test_two_sparks_append_while_the_feature_is_switched_on(writer: Writer, spark: SparkSession) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(Child.script(__file__, writer.root, str(number))) for number in range(SPARKS)]
        for child in children:
            child.is_ready()
        for child in children:
            child.go()
        for child in children:
            child.is_ready()
        switched = opened(writer, spark).enable_materialized_partition_columns()
        for child in children:
            child.go()
        told = [attempts_of(child.told()) for child in children]
    check_switch(writer, switched, told)
    assert all(sum(attempt.version is None for attempt in attempts) == 1 for attempts in told)
    assert writer.ids() == list(range(SPARKS * SPARK_BATCHES * 3))
    assert in_order(opened(writer, spark).read().select("id", "batch", "country").collect()) == writer.rows()


def test_processes_that_write_the_same_transactions(writer: Writer) -> None:
    versions = 6
    with ExitStack() as stack:
        children = [stack.enter_context(Child(transacts, (writer.root, number, versions))) for number in range(3)]
        for child in children:
            child.is_ready()
        for child in children:
            child.go()
        told = [text for child in children for text in child.told()]
    assert all("is of the same application app" in text for text in told)
    assert writer.ids() == [version for version in range(versions) for _ in range(2)]
    assert writer.log.latest_version() == versions
    assert writer.log.snapshot().txns == {"app": versions - 1}
    assert writer.data_files() == writer.live_files()


# Verbs that meet: one waits, its files written, while the other is done.

FIRST = [(1, "US"), (2, "US"), (3, "CN"), (4, None)]


@pytest.fixture
def filled(writer: Writer) -> Writer:
    writer.append("a", FIRST)
    return writer


def frame(spark: SparkSession, *rows: tuple[int, str | None]) -> DataFrame:
    return spark.createDataFrame([*rows], "id long, country string").coalesce(1)


def stalled(monkeypatch: pytest.MonkeyPatch, delta: DeltaTable, verb: str, *arguments: Any, **named: Any) -> Stalled:
    call = named.pop("call", 1)

    def act() -> Any:
        return getattr(delta, verb)(*arguments, **named)

    return Stalled(monkeypatch, act, file_commits, "commit", call)


@pytest.mark.parametrize(("country", "conflict"), [("US", "added country=US/.*run the write again"), (None, None)])
def test_overwrite_of_a_partition_beside_an_append(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, country: str | None, conflict: str | None
) -> None:
    slow = stalled(monkeypatch, opened(filled, spark), "overwrite", frame(spark, (10, "US")), where="country = 'US'")
    opened(filled, spark).append(frame(spark, (20, country)))
    before = filled.data_files()
    outcome = slow.goes_on()
    if conflict is None:
        assert outcome == 3
        assert filled.ids() == [3, 4, 10, 20]
    else:
        with pytest.raises(ConflictError, match=conflict):
            raise outcome
        assert filled.ids() == [1, 2, 3, 4, 20]
        assert len(filled.data_files()) == len(before) - 1
        assert opened(filled, spark).overwrite(frame(spark, (10, "US")), where="country = 'US'") == 3
        assert filled.ids() == [3, 4, 10]


def test_appends_go_past_what_removes_rows(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = stalled(monkeypatch, opened(filled, spark), "append", frame(spark, (10, "US")))
    opened(filled, spark).overwrite(frame(spark, (20, None)))
    opened(filled, spark).delete("id = 20")
    assert slow.goes_on() == 4
    assert filled.ids() == [10]


@pytest.mark.parametrize(
    ("where", "other", "conflict"),
    [
        ("id = 1", "id <= 2", r"removed country=US/\S+, which this write removes"),
        ("country = 'US'", "id = 2", r"removed country=US/\S+, which this write removes|added"),
        ("id = 3", "country = 'US'", None),
    ],
)
def test_delete_beside_delete(
    filled: Writer,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    other: str,
    conflict: str | None,
) -> None:
    slow = stalled(monkeypatch, opened(filled, spark), "delete", where)
    assert opened(filled, spark).delete(other) == 2
    kept, version = filled.ids(), filled.log.latest_version()
    outcome = slow.goes_on()
    if conflict is None:
        assert outcome == 3
    else:
        with pytest.raises(ConflictError, match=conflict):
            raise outcome
        assert (filled.ids(), filled.log.latest_version()) == (kept, version)
        assert set(filled.data_files()) == {file.decoded_path for v in (1, 2) for file in filled.added_by(v)}
        opened(filled, spark).delete(where)
    gone = f"({where}) OR ({other})"
    left = spark.createDataFrame(FIRST, "id long, country string").where(f"NOT coalesce({gone}, false)")
    assert filled.ids() == sorted(row.id for row in left.collect())


@pytest.mark.parametrize(("where", "call"), [("country IS NULL", 1), ("id = 4 OR id = 2", 2)])
def test_backfill_beside_a_delete(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, where: str, call: int
) -> None:
    """It looks again, and never brings back what was deleted."""
    monkeypatch.setattr(backfill, "_FILES_A_COMMIT", 1)
    filled.enable()
    slow = stalled(monkeypatch, opened(filled, spark), "backfill", call=call)
    opened(filled, spark).delete(where)
    expected = filled.rows()
    outcome = slow.goes_on()
    assert outcome == filled.log.latest_version(), outcome
    assert filled.rows() == expected == by_deltalake(filled.root)
    assert opened(filled, spark).verify().ok


def test_a_delete_between_two_commits_of_a_backfill(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "_FILES_A_COMMIT", 1)
    filled.append("b", [(5, "US"), (6, "CN"), (7, None)])
    filled.enable()
    slow = Stalled(monkeypatch, opened(filled, spark).backfill, backfill, "_backfill_files", 2)
    opened(filled, spark).delete("country = 'US' OR id = 7")
    expected = filled.rows()
    outcome = slow.goes_on()
    assert outcome == filled.log.latest_version(), outcome
    assert filled.rows() == expected == by_duckdb(filled.root)
    assert opened(filled, spark).verify().ok


SWITCHED = "switched on materializePartitionColumns.*run the write again"
CHANGED = "changed the table's metadata; run the write again"


@pytest.mark.parametrize(
    ("verb", "change", "conflict"),
    [
        ("append", lambda writer: writer.enable(), SWITCHED),
        ("delete", lambda writer: writer.enable(), SWITCHED),
        ("append", lambda writer: writer.set_property("x", "y"), CHANGED),
        ("overwrite", lambda writer: writer.set_property("x", "y"), CHANGED),
    ],
    ids=["append and feature", "delete and feature", "append and property", "overwrite and property"],
)
def test_a_table_that_changes_meanwhile(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, verb: str, change: Any, conflict: str
) -> None:
    files, rows = filled.data_files(), filled.rows()
    argument = "id = 1" if verb == "delete" else frame(spark, (10, "US"))
    slow = stalled(monkeypatch, opened(filled, spark), verb, argument)
    change(filled)
    with pytest.raises(ConflictError, match=conflict):
        raise slow.goes_on()
    assert (filled.rows(), filled.data_files()) == (rows, files)
    version = getattr(opened(filled, spark), verb)(argument)
    assert version == 3
    if opened(filled, spark).materializes_partition_columns:
        assert [filled.findings(file) for file in filled.added_by(version)] == [[]]


def test_the_same_transaction_twice_at_once(
    filled: Writer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = stalled(monkeypatch, opened(filled, spark), "append", frame(spark, (10, "US")), txn=("app", 1))
    assert opened(filled, spark).append(frame(spark, (10, "US")), txn=("app", 1)) == 2
    with pytest.raises(ConflictError, match="is of the same application app; run the write again"):
        raise slow.goes_on()
    assert opened(filled, spark).append(frame(spark, (10, "US")), txn=("app", 1)) == 2, "it is there already"
    assert filled.ids() == [1, 2, 3, 4, 10]
    assert filled.data_files() == filled.live_files()


if __name__ == "__main__":
    spark_appends(sys.argv[1], int(sys.argv[2]))
