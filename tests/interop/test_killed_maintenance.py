"""Maintenance that is killed at the worst moments: nothing is lost, and the next run finishes the work."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_history, record
from support.processes import Child
from support.small_sessions import SMALL
from support.writing import attached, files_of

STATEMENTS = (
    "CREATE TABLE t (id INTEGER, name VARCHAR)",
    "INSERT INTO t SELECT i, 'a' FROM range(0, 20) r(i)",
    "INSERT INTO t SELECT i, 'b' FROM range(100, 120) r(i)",
    "INSERT INTO t SELECT i, 'c' FROM range(200, 220) r(i)",
    "INSERT INTO t SELECT i, 'd' FROM range(300, 320) r(i)",
    "DELETE FROM t WHERE id BETWEEN 200 AND 215",
    "INSERT INTO t VALUES (1000, 'inlined'), (1001, 'inlined')",
    "DELETE FROM t WHERE id IN (1000, 5)",
)
VERBS: dict[str, Callable[[penstock.Lake], Any]] = {
    "flush": lambda lake: lake.flush_inlined_data(),
    "rewrite": lambda lake: lake.rewrite_data_files(delete_threshold=0.5),
    "merge": lambda lake: lake.merge_adjacent_files(),
    "expire": lambda lake: lake.expire_snapshots(keep_last=2),
    "cleanup": lambda lake: lake.cleanup_old_files(cleanup_all=True),
}


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        _die()

    return dying


def _die_with_the_first_file(data_path: str) -> None:
    """Die as soon as a task has begun a file, while the other tasks are still at theirs."""
    before = set(Path(data_path).rglob("*.parquet"))

    def watch() -> None:
        while set(Path(data_path).rglob("*.parquet")) <= before:
            pass
        _die()

    threading.Thread(target=watch, daemon=True).start()


def _die_at(moment: str, data_path: str) -> None:
    from penstock.ducklake import transaction
    from penstock.ducklake.catalog import file_paths
    from penstock.ducklake.catalog.databases.base import Database
    from penstock.ducklake.maintenance import old_files

    match moment:
        case "writing":
            _die_with_the_first_file(data_path)
        case "written":
            transaction.commit = _die
        case "committing":
            Database._commit = _die  # type: ignore[method-assign]
        case "committed":
            transaction.commit = _dying_after(transaction.commit)
        case "deleted":
            assert old_files.forget_scheduled is file_paths.forget_scheduled
            old_files.forget_scheduled = _die


def victim(uri: str, data_path: str, *steps: str) -> None:
    """A process of its own that runs verbs, and dies at a moment of the last of them."""
    spark = penstock.session("local[1]", **SMALL)
    *verbs, last, moment = steps
    with penstock.attach(uri, data_path=data_path, spark=spark) as lake:
        for verb in verbs:
            VERBS[verb](lake)
        _die_at(moment, data_path)
        VERBS[last](lake)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.takes(25)
@pytest.mark.parametrize(
    "steps",
    [
        ("flush", "writing"),
        ("flush", "written"),
        ("flush", "committing"),
        ("flush", "committed"),
        ("rewrite", "writing"),
        ("rewrite", "written"),
        ("rewrite", "committed"),
        ("merge", "writing"),
        ("merge", "written"),
        ("merge", "committing"),
        ("merge", "committed"),
        ("merge", "expire", "committing"),
        ("merge", "expire", "cleanup", "deleted"),
    ],
    ids="-".join,
)
def test_the_next_run_finishes_the_work(sqlite_catalog: Catalog, spark: SparkSession, steps: tuple[str, ...]) -> None:
    catalog = sqlite_catalog
    with catalog.build(data_inlining_row_limit=5) as reference:
        reference.execute(*STATEMENTS)
        history = record(reference, "t")
    child = Child.script(__file__, catalog.uri, catalog.data_path, *steps)
    child.process.join(300)
    assert child.process.exitcode == -signal.SIGKILL
    newest = max(version for _, version in history)
    kept = {key: rows for key, rows in history.items() if "expire" not in steps or key[1] == newest}
    assert_history(catalog, spark, kept if steps[-1] != "committing" else history)
    with attached(catalog, spark) as lake:
        lake.checkpoint()
        expected = sorted(lake.table("t").read(version=newest, row_ids=True).collect())
        lake.expire_snapshots(keep_last=1)
        lake.cleanup_old_files(cleanup_all=True)
        assert sorted(lake.table("t").read(row_ids=True).collect()) == expected
        named = {row.data_file for row in lake.table("t").files().collect()}
    assert named <= {f"{catalog.data_path}{path}" for path in files_of(catalog)}


if __name__ == "__main__":
    victim(*sys.argv[1:])
