"""What vacuum deletes, and what it leaves alone: logs may name and remove files in ways that deltalake overlooks."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.delta.format.actions import Action, AddFile, DeletionVectorDescriptor, Metadata, Protocol, RemoveFile
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint, vacuum
from penstock.errors import InvalidError, UnsupportedError

_DAY = 86_400_000
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
_VECTOR = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
_WITH_VECTORS = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
_FILE = "x y.parquet"


def _log(path: Path, *commits: Sequence[Action], **configuration: str) -> TableLog:
    """A table with a file on the disk, whatever its commits say of it."""
    (path / "_delta_log").mkdir(parents=True)
    (path / _FILE).write_bytes(b"rows")
    metadata = Metadata("1", _SCHEMA, configuration={f"delta.{name}": value for name, value in configuration.items()})
    for version, actions in enumerate([[_WITH_VECTORS, metadata], *commits]):
        lines = "\n".join(action.to_json() for action in actions)
        (path / "_delta_log" / f"{version:020}.json").write_text(lines)
    return TableLog(str(path))


def _add(path: str = "x%20y.parquet", vector: DeletionVectorDescriptor | None = None) -> AddFile:
    return AddFile(path, {}, 4, 0, True, deletion_vector=vector)


def _removed(file: AddFile, days: float) -> RemoveFile:
    return file.removed(int(time.time() * 1000 - days * _DAY))


def test_a_file_that_came_back_and_went_again_is_kept(tmp_path: Path) -> None:
    again = _log(tmp_path / "a", [_add()], [_removed(_add(), 30)], [_add()], [_removed(_add(), 0)])
    thinned = _add(vector=_VECTOR)
    vectors = _log(tmp_path / "b", [_add()], [_removed(_add(), 30), thinned], [_removed(thinned, 0)])
    for log in (again, vectors):
        assert vacuum(log) == []
        assert (Path(log.path) / _FILE).exists()
    gone = _log(tmp_path / "c", [_add()], [_removed(_add(), 30), thinned], [_removed(thinned, 8)])
    assert vacuum(gone) == [_FILE]
    assert not (tmp_path / "c" / _FILE).exists()


def test_the_last_removal_is_known_from_a_checkpoint(tmp_path: Path) -> None:
    thinned = _add(vector=_VECTOR)
    log = _log(tmp_path / "t", [_add()], [_removed(_add(), 3), thinned], [_removed(thinned, 2)])
    checkpoint(log)
    for commit in (tmp_path / "t" / "_delta_log").glob("*.json"):
        commit.unlink()
    assert sorted(removal.decoded_path for removal in log.removals()) == [_FILE, _FILE]
    assert vacuum(log, retention=timedelta(days=2.5), enforce_retention=False, dry_run=True) == []
    assert vacuum(log, retention=timedelta(days=1), enforce_retention=False, dry_run=True) == [_FILE]


def test_a_removal_without_a_time_keeps_its_file(tmp_path: Path) -> None:
    log = _log(tmp_path / "t", [_add()], [RemoveFile("x%20y.parquet", True)])
    assert vacuum(log) == []
    assert (tmp_path / "t" / _FILE).exists()


@pytest.mark.parametrize("prefix", ["file://", "file:", ""])
def test_a_file_of_the_table_by_an_absolute_name_is_kept(tmp_path: Path, prefix: str) -> None:
    live = _add(f"{prefix}{tmp_path}/t/x%20y.parquet")
    removed = _add(f"{prefix}{tmp_path}/u/x%20y.parquet")
    log = _log(tmp_path / "t", [_add()], [_removed(_add(), 30)], [live])
    assert vacuum(log) == []
    assert (tmp_path / "t" / _FILE).exists()
    log = _log(tmp_path / "u", [_add()], [_removed(_add(), 30)], [removed], [_removed(removed, 0)])
    assert vacuum(log) == []
    assert (tmp_path / "u" / _FILE).exists()


def test_a_retention_that_is_no_time_is_named(tmp_path: Path) -> None:
    log = _log(tmp_path / "t", [_add()], [_removed(_add(), 30)], deletedFileRetentionDuration="garbage")
    with pytest.raises(InvalidError, match=r"delta\.deletedFileRetentionDuration is 'garbage'"):
        vacuum(log)
    assert (tmp_path / "t" / _FILE).exists()
    assert vacuum(log, retention=timedelta(days=7)) == [_FILE]


def test_vacuum_asks_for_the_right_to_write(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(UnsupportedError, match="enableChangeDataFeed"):
        vacuum(TableLog(str(tmp_path)))


def test_removed_files_are_vacuumed(table: Path) -> None:
    log = TableLog(str(table))
    live = {file.decoded_path for file in log.snapshot().files.values()}
    assert vacuum(log, retention=timedelta(minutes=1), enforce_retention=False) == []
    gone = vacuum(log, retention=timedelta(), enforce_retention=False)
    assert gone
    assert [one.info["operation"] for one in log.history()[:2]] == ["VACUUM END", "VACUUM START"]
    assert {
        str(path.relative_to(table)) for path in table.glob("*/*.parquet") if "_delta_log" not in path.parts
    } == live


def _again(table: Path, *actions: dict[str, Any]) -> None:
    """One more commit, as another writer might make it."""
    path = table / "_delta_log" / f"{TableLog(str(table)).latest_version() + 1:020}.json"
    path.write_text("\n".join(map(json.dumps, actions)))


def _removes(table: Path) -> list[dict[str, Any]]:
    lines = (
        json.loads(line)
        for commit in sorted((table / "_delta_log").glob("*.json"))
        for line in commit.read_text().splitlines()
    )
    return [line for line in lines if "remove" in line]


def test_files_that_were_removed_twice_or_came_back(table: Path) -> None:
    log = TableLog(str(table))
    first, *others = _removes(table)
    back = {key: first["remove"][key] for key in ("path", "partitionValues", "size")}
    _again(table, *others, {"add": {**back, "modificationTime": 0, "dataChange": True}})
    _again(table, *others)
    gone = vacuum(log, retention=timedelta(), enforce_retention=False)
    assert len(gone) == len(set(gone)) == len({one["remove"]["path"] for one in others})
    assert (table / unquote(back["path"])).exists()
    assert [one.info["operation"] for one in log.history()[:2]] == ["VACUUM END", "VACUUM START"]


def test_a_vacuum_that_fails_says_so(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("penstock.delta.writing.maintenance.delete_file", fails)
    with pytest.raises(PermissionError):
        vacuum(TableLog(str(table)), retention=timedelta(), enforce_retention=False)
    [end, start] = TableLog(str(table)).history()[:2]
    assert (end.info["operation"], start.info["operation"]) == ("VACUUM END", "VACUUM START")
    assert end.info["operationParameters"] == {"status": "FAILED", "numDeletedFiles": "0"}
