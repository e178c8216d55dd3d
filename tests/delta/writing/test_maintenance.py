"""What vacuum leaves alone: logs that name and remove their files in ways that deltalake does not look through."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.delta.format.actions import Action, AddFile, DeletionVectorDescriptor, Metadata, Protocol, RemoveFile
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint, vacuum
from penstock.errors import InvalidError

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
