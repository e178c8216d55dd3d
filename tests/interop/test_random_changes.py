"""Random statements, here and with DuckDB's extension: the same rows, row ids and change feeds at every snapshot.

One lake is changed and maintained by both, turn by turn; its twin is changed by DuckDB alone. They are not
partitioned: after partitioned inserts with NULLs the extension loses rows. More of it with `--full`, or on demand:
PENSTOCK_RANDOM_STEPS=5000 python -m pytest tests/interop/test_random_changes.py
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog, DuckDBCatalog, SQLiteCatalog
from support.compare import Contents, assert_contents, query
from support.effort import tries
from support.reference import Reference

pytestmark = pytest.mark.compiled

STEPS_A_LAKE = 20
STEPS = int(os.environ.get("PENSTOCK_RANDOM_STEPS", tries(60, 500)))
TEXTS = [None, "", "a/=%", "O'Hara", "🦆", "NULL", "b"]
# No -0.0: the extension inlines it as 0.0.
FLOATS = [None, float("nan"), 0.0, 1e300, float("-inf"), 1.5, -2.5]
DAYS = [None, -25567, 0, 19000, 2932896]  # from 1900 to 9999
PREDICATES = [
    "k % 3 = 0", "k < 10", "k = 7", "p IS NULL", "p = ''", "f > 0", "d < DATE '1970-01-01'", "k BETWEEN 5 AND 25",
    "true", "k < 0", "p LIKE 'O%' OR f IS NULL",
]  # fmt: skip
VALUES: list[dict[str, str]] = [
    {"p": "'new'"}, {"f": "-0.5"}, {"p": "NULL", "d": "DATE '2024-02-29'"}, {"k": "k + 1"}, {"f": "k * 0.5"},
]  # fmt: skip
_SCHEMA = pa.schema([("k", pa.int64()), ("p", pa.string()), ("f", pa.float64()), ("d", pa.date32())])


def some_rows(seed: int, count: int, keys: int = 60, unique: bool = False) -> pa.Table:
    chance = random.Random(seed)
    chosen = chance.sample(range(keys), min(count, keys)) if unique else [chance.randrange(keys) for _ in range(count)]
    rows = [(k, chance.choice(TEXTS), chance.choice(FLOATS), chance.choice(DAYS)) for k in chosen]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def with_source(reference: Reference, rows: pa.Table, sql: str) -> None:
    reference.connection.register("source_rows", rows)
    reference.execute(sql)
    reference.connection.unregister("source_rows")


class TwoLakes(RuleBasedStateMachine):
    """`shared` is changed by Spark and DuckDB, `twin` by DuckDB; every statement is done in both."""

    spark: ClassVar[SparkSession]

    @initialize(limit=st.sampled_from([0, 10]), sqlite=st.booleans())
    def make(self, limit: int, sqlite: bool) -> None:
        self.directory = tempfile.TemporaryDirectory()
        root = Path(self.directory.name)
        for name in ("shared", "twin"):
            (root / name).mkdir()
        self.shared: Catalog = (SQLiteCatalog if sqlite else DuckDBCatalog)(root / "shared")
        self.twin: Catalog = DuckDBCatalog(root / "twin")
        self.names = ["k", "p", "f", "d"]
        self.snapshots: list[tuple[int, int]] = []
        self.added = 0
        self.maintained = False
        self.steps = [f"make limit={limit} sqlite={sqlite}"]
        for catalog in (self.shared, self.twin):
            with catalog.build(data_inlining_row_limit=limit) as reference:
                reference.set_option("data_inlining_row_limit", limit)
                reference.execute("CREATE TABLE t (k BIGINT, p VARCHAR, f DOUBLE, d DATE)")

    def lake(self) -> penstock.Lake:
        return penstock.attach(self.shared.uri, spark=self.spark)

    def both(
        self, what: str, by_spark: bool, here: Callable[[penstock.Lake], object], there: Callable[[Reference], object]
    ) -> None:
        """One statement in both lakes; remember the snapshots that it led to."""
        if by_spark:
            with self.lake() as lake:
                here(lake)
                ours = lake.current_snapshot().id
        else:
            with self.shared.reference() as reference:
                there(reference)
                ours = reference.value("FROM lk.current_snapshot()")
        with self.twin.reference() as reference:
            there(reference)
            theirs = reference.value("FROM lk.current_snapshot()")
        self.snapshots.append((ours, theirs))
        self.steps.append(f"{ours}, {theirs}: {'Spark' if by_spark else 'DuckDB'} {what}")

    def given(self, rows: pa.Table) -> pa.Table:
        """Rows under the table's columns of today; what was added later is NULL."""
        columns = [rows.column(i) if i < 4 else pa.nulls(rows.num_rows, pa.int32()) for i in range(len(self.names))]
        return pa.table(columns, names=self.names)

    @rule(by_spark=st.booleans(), seed=st.integers(0, 10**6), count=st.integers(1, 30))
    def insert(self, by_spark: bool, seed: int, count: int) -> None:
        rows = self.given(some_rows(seed, count))
        self.both(
            f"insert {seed} {count}",
            by_spark,
            lambda lake: lake.table("t").append(lake.spark.createDataFrame(rows).coalesce(1)),
            lambda reference: with_source(reference, rows, "INSERT INTO t FROM source_rows"),
        )

    @rule(by_spark=st.booleans(), where=st.sampled_from(PREDICATES))
    def delete(self, by_spark: bool, where: str) -> None:
        where = self.renamed(where)
        self.both(
            f"delete {where}",
            by_spark,
            lambda lake: lake.table("t").delete(where),
            lambda reference: reference.execute(f"DELETE FROM t WHERE {where}"),
        )

    @rule(by_spark=st.booleans(), where=st.sampled_from(PREDICATES), values=st.sampled_from(VALUES))
    def update(self, by_spark: bool, where: str, values: dict[str, str]) -> None:
        where = self.renamed(where)
        new = {self.renamed(name): self.renamed(value) for name, value in values.items()}
        assignments = ", ".join(f"{name} = {value}" for name, value in new.items())
        self.both(
            f"update {assignments} where {where}",
            by_spark,
            lambda lake: lake.table("t").update(new, where=where),
            lambda reference: reference.execute(f"UPDATE t SET {assignments} WHERE {where}"),
        )

    @rule(
        by_spark=st.booleans(),
        seed=st.integers(0, 10**6),
        count=st.integers(1, 25),
        inserts=st.booleans(),
        deletes=st.booleans(),
    )
    def merge(self, by_spark: bool, seed: int, count: int, inserts: bool, deletes: bool) -> None:
        # New rows get their ids in no order that is promised: one of them, outside the usual keys.
        rows = some_rows(seed, count, unique=True)
        new = some_rows(seed + 1, 1).set_column(0, "k", pa.array([100 + seed % 50], pa.int64()))
        rows = pa.concat_tables([rows, new]) if inserts else rows
        k, p = self.names[0], self.names[1]
        condition = "(source.k % 2 = 0 OR source.p IS NULL)"

        def here(lake: penstock.Lake) -> object:
            merge = lake.table("t").merge(lake.spark.createDataFrame(rows), on=f"target.{k} = source.k")
            if deletes:
                merge = merge.when_matched_delete(condition)
            else:
                merge = merge.when_matched_update({p: "source.p"}, condition)
            if inserts:
                merge = merge.when_not_matched_insert({k: "source.k", p: "'merged'"}, "source.k >= 100")
            return merge.execute()

        # The extension's own limit: one clause that updates or deletes.
        changing = "DELETE" if deletes else f"UPDATE SET {p} = source.p"
        inserting = f"WHEN NOT MATCHED AND source.k >= 100 THEN INSERT ({k}, {p}) VALUES (source.k, 'merged')"
        sql = f"""MERGE INTO t USING source_rows AS source ON t.{k} = source.k
                  WHEN MATCHED AND {condition} THEN {changing}
                  {inserting if inserts else ""}"""

        self.both(
            f"merge {seed} {count} {inserts=} {deletes=}",
            by_spark,
            here,
            lambda reference: with_source(reference, rows, sql),
        )

    @precondition(lambda self: self.added < 3)
    @rule(by_spark=st.booleans())
    def add_column(self, by_spark: bool) -> None:
        self.added += 1
        name = f"x{self.added}"
        self.names.append(name)
        self.both(
            f"add {name}",
            by_spark,
            lambda lake: lake.table("t").add_column(f"{name} INT DEFAULT {self.added}"),
            lambda reference: reference.execute(f"ALTER TABLE t ADD COLUMN {name} INTEGER DEFAULT {self.added}"),
        )

    @precondition(lambda self: self.names[1] == "p")
    @rule(by_spark=st.booleans())
    def rename_column(self, by_spark: bool) -> None:
        self.names[1] = "q"
        self.both(
            "rename p",
            by_spark,
            lambda lake: lake.table("t").rename_column("p", "q"),
            lambda reference: reference.execute("ALTER TABLE t RENAME COLUMN p TO q"),
        )

    @rule()
    def flush(self) -> None:
        """In one of them: it changes nothing that is shown. The extension's merging would: it loses rows' ids."""
        with self.shared.reference() as reference:
            reference.execute("CALL ducklake_flush_inlined_data('lk')")
        self.maintained = True
        self.steps.append("flush")

    @rule(verb=st.sampled_from(["flush_inlined_data", "merge_adjacent_files", "rewrite_data_files"]))
    def maintain(self, verb: str) -> None:
        """In one of them, by Spark: nobody sees a difference, whatever comes after it."""
        arguments = {"delete_threshold": 0.1} if verb == "rewrite_data_files" else {}
        with self.lake() as lake:
            getattr(lake, verb)(**arguments)
        self.maintained = True
        self.steps.append(verb)

    def renamed(self, sql: str) -> str:
        return sql.replace("p ", f"{self.names[1]} ") if sql != "p" else self.names[1]

    def teardown(self) -> None:
        if not getattr(self, "snapshots", None):
            return
        try:
            self.compare()
        except pytest.fail.Exception as difference:
            steps = "\n".join(self.steps)
            raise AssertionError(f"{difference}\nafter\n{steps}") from None
        self.directory.cleanup()

    def compare(self) -> None:
        number = dict(reversed([(b, a) for a, b in self.snapshots]))  # the first, before any flush
        middle, (last, their_last) = self.snapshots[len(self.snapshots) // 2], self.snapshots[-1]
        spans = {(a, last): (b, their_last) for a, b in (self.snapshots[0], middle)}
        with self.twin.reference() as reference:
            rows = {
                ours: query(reference, f"SELECT *, rowid FROM t AT (VERSION => {theirs})")
                for ours, theirs in self.snapshots
            }
            feeds = {
                ours: _numbered(query(reference, f"FROM lk.table_changes('t', {theirs[0]}, {theirs[1]})"), number)
                for ours, theirs in spans.items()
            }
        with self.shared.reference() as reference:
            for version, expected in rows.items():
                sql = f"SELECT *, rowid FROM t AT (VERSION => {version})"
                _assert_equal(query(reference, sql), expected, f"the extension at version {version}")
            # After compaction, its feed tells updates that nobody made.
            for (start, end), expected in () if self.maintained else feeds.items():
                sql = f"FROM lk.table_changes('t', {start}, {end})"
                _assert_equal(query(reference, sql), expected, f"the extension's changes from {start} to {end}")
        with self.lake() as lake:
            table = lake.table("t")
            for version, expected in rows.items():
                assert_contents(table.read(version=version, row_ids=True), expected, f"version {version}")
            for (start, end), expected in feeds.items():
                assert_contents(table.changes(start, end), expected, f"changes from {start} to {end}")


def _assert_equal(found: Contents, expected: Contents, what: str) -> None:
    if found != expected:
        pytest.fail(f"{what}: {dict(found.rows - expected.rows)} instead of {dict(expected.rows - found.rows)}")


def _numbered(feed: Contents, number: dict[int, int]) -> Contents:
    """The feed of the twin under the other lake's snapshot ids."""
    position = [name for name, _ in feed.columns].index("snapshot_id")
    rows: Counter[tuple[Any, ...]] = Counter()
    for row, times in feed.rows.items():
        rows[(*row[:position], number[row[position]], *row[position + 1 :])] += times
    return Contents(feed.columns, rows)


@pytest.mark.takes(60)
def test_random_statements(spark: SparkSession) -> None:
    TwoLakes.spark = spark
    run_state_machine_as_test(
        TwoLakes,
        settings=settings(
            max_examples=max(1, STEPS // STEPS_A_LAKE),
            stateful_step_count=STEPS_A_LAKE,
            deadline=None,
            derandomize="PENSTOCK_RANDOM_STEPS" not in os.environ,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            print_blob=True,
        ),
    )
