"""A commit that is broken off, by Ctrl-C or with its connection: no file is deleted that a snapshot may show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake import transaction as transactions
from penstock.ducklake.transaction import Transaction
from support.catalogs import Catalog
from support.reference import METADATA
from support.writers import Writer
from support.writing import attached, files_of

Moment = Callable[[Callable[[], None], Callable[[], None]], None]


def interrupt() -> None:
    raise KeyboardInterrupt


def before(commit: Callable[[], None], close: Callable[[], None]) -> None:
    interrupt()


def after(commit: Callable[[], None], close: Callable[[], None]) -> None:
    commit()
    interrupt()


def failing_after(commit: Callable[[], None], close: Callable[[], None]) -> None:
    commit()
    raise OSError("the answer was lost")


def closed_before(commit: Callable[[], None], close: Callable[[], None]) -> None:
    close()
    commit()


def closed_after(commit: Callable[[], None], close: Callable[[], None]) -> None:
    commit()
    close()
    interrupt()


def at_commit(transaction: Transaction, moment: Moment) -> None:
    """Something else than a plain COMMIT, once, when the transaction makes its snapshot."""
    database: Any = transaction.catalog.database
    execute, connection = database._execute, database._connection

    def executing(sql: str, parameters: Any) -> None:
        if sql == "COMMIT" and transaction.staging.attempted is not None:
            del vars(database)["_execute"]
            moment(lambda: execute(sql, parameters), getattr(connection, "_force_close", connection.close))
        else:
            execute(sql, parameters)

    vars(database)["_execute"] = executing


# What happens to COMMIT, whether the snapshot is there then, whether the files are, and what the caller hears.
BROKEN_OFF = [
    (before, False, False, KeyboardInterrupt),
    (after, True, True, KeyboardInterrupt),
    (failing_after, True, True, None),
    (closed_before, False, True, penstock.PenstockError),
    (closed_after, True, True, KeyboardInterrupt),
]


@pytest.mark.parametrize(("moment", "committed", "kept", "heard"), BROKEN_OFF)
def test_a_commit_that_is_broken_off(
    moment: Moment,
    committed: bool,
    kept: bool,
    heard: type[BaseException] | None,
    catalog: Catalog,
) -> None:
    def write() -> None:
        with Writer(catalog.uri, catalog.data_path) as writer, writer.transaction(message="é 🦆") as transaction:
            writer.stage_file(transaction, "t", *range(20))
            at_commit(transaction, moment)

    with Writer(catalog.uri, catalog.data_path) as first:
        first.create_table("t")
    if heard is None:
        write()
    else:
        with pytest.raises(heard) as raised:
            write()
        if moment is closed_before:  # a server can be asked on another connection
            asked = catalog.kind in ("postgres", "mysql")
            kept = kept and not asked
            assert ("nothing was, so do it again" if asked else "whether it was is not known") in str(raised.value)
    assert len(files_of(catalog)) == int(kept)
    with catalog.reference() as reference:
        assert reference.value(f"SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot") == 1 + committed
        assert reference.rows("SELECT count(*) FROM t") == [(20 * committed,)]


@pytest.mark.parametrize(("moment", "committed"), [(before, False), (failing_after, True)])
def test_without_files_the_catalog_is_asked_for_the_snapshot_itself(
    moment: Moment, committed: bool, catalog: Catalog
) -> None:
    with Writer(catalog.uri, catalog.data_path) as writer:
        writer.create_table("t")
        transaction = Transaction(writer.catalog, transactions.CommitInfo("a", "é 🦆", ""), writer.retries)
        writer.stage_table(transaction, "u")
        at_commit(transaction, moment)
        if committed and catalog.kind == "mysql":  # whose times of snapshots are too coarse to know one's own by
            with pytest.raises(penstock.CatalogError, match="whether it was is not known"):
                transaction.commit()
        elif committed:
            assert transaction.commit() == transactions.latest_snapshot(writer.catalog.database)
            assert transaction.snapshot is not None
            assert transaction.snapshot.id == 2
        else:
            with pytest.raises(KeyboardInterrupt):
                transaction.commit()
            assert transaction.snapshot is None
            assert transactions.latest_snapshot(writer.catalog.database).id == 1


def test_an_interrupt_right_after_the_commit_undoes_no_statement(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of statement: files, delete files, linked files, rows in the catalog, new tables."""
    commit = transactions.commit

    def interrupted(*arguments: Any) -> None:
        commit(*arguments)
        interrupt()

    linked = tmp_path / "linked.parquet"
    pq.write_table(pa.table({"id": pa.array(range(300, 310), pa.int64())}), linked)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", spark.range(100))

        def in_a_transaction() -> None:
            with lake.transaction():
                table.append(spark.range(500, 520))
                table.append(spark.range(1000, 1001))

        statements: list[Callable[[], object]] = [
            lambda: table.append(spark.range(200, 220)),
            lambda: table.delete("id < 50 AND id % 3 = 0"),
            lambda: table.add_files(str(linked)),
            in_a_transaction,
            lambda: lake.create_table("copy", table.read()),
        ]
        monkeypatch.setattr(transactions, "commit", interrupted)
        for number, statement in enumerate(statements):
            with pytest.raises(KeyboardInterrupt):
                statement()
            assert lake.current_snapshot().id == 2 + number
        assert linked.exists()
        ids = sorted(row.id for row in table.read().collect())
        assert len(ids) == 100 + 20 - 17 + 10 + 21
    with file_catalog.reference() as reference:
        for name in ("t", "copy"):
            assert reference.rows(f"SELECT id FROM {name} ORDER BY id") == [(value,) for value in ids]


def test_a_second_interrupt_while_the_catalog_is_asked_leaves_the_files(
    sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(sqlite_catalog.uri, sqlite_catalog.data_path) as writer:
        writer.create_table("t")
        monkeypatch.setattr(transactions, "is_committed", lambda *_: interrupt())
        with pytest.raises(KeyboardInterrupt), writer.transaction() as transaction:  # noqa: PT012 - at its end
            writer.stage_file(transaction, "t", 1)
            at_commit(transaction, before)
        assert not transaction.is_open
    assert len(files_of(sqlite_catalog)) == 1
