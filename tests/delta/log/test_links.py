"""Notes about tables that show files of a Delta table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.delta.format.actions import AddFile, Txn
from penstock.delta.log.commits import commit
from penstock.delta.log.links import linked_into, with_link
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint
from penstock.errors import ConflictError


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    configuration = {"delta.setTransactionRetentionDuration": "interval 0 seconds"}
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=configuration)
    return TableLog(str(tmp_path))


def test_notes_outlive_transactions(log: TableLog) -> None:
    base = log.snapshot()
    commit(log, base, [Txn("penstock:linked-into:old", 1, 1), Txn("app", 1, 1)], "LINK", {})
    for name in ("it's \U0001f6b0", "b"):
        snapshot = log.snapshot()
        commit(log, snapshot, [with_link(snapshot, name)], "LINK", {"into": name})
    DeltaTable(log.path).create_checkpoint()
    after = log.snapshot()
    assert after.txns == {}  # or this test tells nothing
    assert linked_into(after) == ["b", "it's \U0001f6b0", "old"]
    assert with_link(after, "b") == after.metadata


def test_checkpoints_keep_notes_of_older_versions(log: TableLog) -> None:
    checkpoint(log)
    assert log.latest_version() == 0, "there is nothing to note"
    commit(log, log.snapshot(), [Txn("penstock:linked-into:old", 1, 1)], "LINK", {})
    checkpoint(log)
    after = log.snapshot()
    assert (after.version, after.txns) == (2, {})
    assert linked_into(after) == ["old"]
    checkpoint(log)
    assert log.latest_version() == 2


def test_a_note_stops_no_writer_but_one_that_would_lose_it(log: TableLog) -> None:
    base = log.snapshot()
    commit(log, base, [with_link(base, "a")], "LINK", {})
    assert commit(log, base, [AddFile("f", {}, 1, 0, True)], "WRITE", {}).version == 2
    changed = replace(base.metadata, configuration={**base.metadata.configuration, "x": "1"})
    with pytest.raises(ConflictError, match="changed the table's metadata"):
        commit(log, base, [changed], "SET TBLPROPERTIES", {})
    assert json.loads(log.snapshot().metadata.configuration["penstock.linkedInto"]) == ["a"]
