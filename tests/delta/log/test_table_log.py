"""Logs that deltalake has written, read as it reads them."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.delta.format.partition_values import from_text
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint, vacuum
from penstock.errors import NotFoundError, PenstockError

_TEXTS = ["", None, "a/b=c%d$e:f g", "🚰é", "'\"\\", "x\ty\n", "a+b&c#d?e~[i]{j}|^`", " ", ".."]
_UTC = pa.timestamp("us", "UTC")
_EARLY = datetime(1965, 1, 2, 3, 4, 5, 123456)


def _rows(count: int, **columns: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64()), **columns})


def _commits(path: Path) -> list[Path]:
    return sorted((path / "_delta_log").glob("*.json"))


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("string", pa.array(_TEXTS)),
        ("date", pa.array([date(1, 1, 1), date(1969, 12, 31), None, date(9999, 12, 31)])),
        ("decimal(38,2)", pa.array([Decimal("123456789012345678901234567890123456.78"), None], pa.decimal128(38, 2))),
        ("timestamp", pa.array([_EARLY, None, datetime(2026, 1, 2)], _UTC)),
        ("timestamp_ntz", pa.array([_EARLY, None], pa.timestamp("us"))),
        ("boolean", pa.array([True, False, None])),
        ("double", pa.array([1.5, -2.0, None])),
        ("byte", pa.array([-128, 127, None], pa.int8())),
    ],
)
def test_files_and_values_are_those_of_deltalake(tmp_path: Path, type_name: str, values: pa.Array) -> None:
    write_deltalake(tmp_path, _rows(len(values), p=values), partition_by=["p"])
    judge = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()
    snapshot = TableLog(str(tmp_path)).snapshot()
    ours = {file.path: file for file in snapshot.files.values()}
    assert len(ours) == len(judge) == len(values)
    assert snapshot.metadata.partition_columns == ("p",)
    for row in judge:
        file = ours[row["path"]]
        assert (file.size, file.modification_time) == (row["size_bytes"], row["modification_time"])
        assert json.loads(file.stats or "")["numRecords"] == row["num_records"]
        assert (tmp_path / file.decoded_path).stat().st_size == file.size
        assert from_text(file.partition_values["p"], type_name) == _scalar(row["partition.p"])


def _scalar(value: Any) -> Any:
    match value:
        case "":
            return None
        case datetime():
            return (value.replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
    return value


def _same(path: Path, version: int) -> None:
    ours = {file.path for file in TableLog(str(path)).snapshot(version).files.values()}
    judge = pa.table(DeltaTable(path, version=version).get_add_actions())
    assert ours == set(judge["path"].to_pylist())


def test_every_version_is_the_one_of_deltalake(table: Path) -> None:
    log = TableLog(str(table))
    assert log.latest_version() == 5
    for version in range(6):
        _same(table, version)
    assert log.snapshot().version == 5
    assert log.snapshot().metadata.id == str(DeltaTable(table).metadata().id)


def test_without_the_commits_before_a_checkpoint(table: Path) -> None:
    for commit in _commits(table)[:4]:
        commit.unlink()
    (table / "_delta_log" / "_last_checkpoint").write_text("{no hint")
    for version in (3, 4, 5):
        assert TableLog(str(table)).snapshot(version).version == version
    with pytest.raises(NotFoundError, match="no version 2: there are the versions 3 to 5"):
        TableLog(str(table)).snapshot(2)
    with pytest.raises(NotFoundError, match="no version 6: there are the versions 3 to 5"):
        TableLog(str(table)).snapshot(6)
    with pytest.raises(NotFoundError, match="no version -1"):
        TableLog(str(table)).snapshot(-1)


def test_with_a_checkpoint_alone(table: Path) -> None:
    log = TableLog(str(table))
    before = log.snapshot()
    checkpoint(log)
    for commit in _commits(table):
        commit.unlink()
    after = log.snapshot()
    assert (after.version, after.protocol, after.metadata) == (5, before.protocol, before.metadata)
    paths = {file.path: (file.size, file.partition_values) for file in before.files.values()}
    assert {file.path: (file.size, file.partition_values) for file in after.files.values()} == paths
    assert log.history() == []
    assert vacuum(log, dry_run=True) == []


def test_a_checkpoint_in_parts(table: Path) -> None:
    log, directory = TableLog(str(table)), table / "_delta_log"
    before = {version: log.snapshot(version).files for version in (3, 5)}
    whole = directory / f"{3:020}.checkpoint.parquet"
    rows = pq.read_table(whole)
    whole.unlink()
    parts = [directory / f"{3:020}.checkpoint.{part:010}.0000000002.parquet" for part in (1, 2)]
    pq.write_table(rows.slice(0, 2), parts[0])
    assert log.snapshot(3).files == before[3]  # one part is none: the commits are read
    pq.write_table(rows.slice(2), parts[1])
    for commit in _commits(table)[:4]:
        commit.unlink()
    assert {version: log.snapshot(version).files.keys() for version in (3, 5)} == {
        version: files.keys() for version, files in before.items()
    }


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_with_sidecars(table: Path, form: str) -> None:
    log, directory = TableLog(str(table)), table / "_delta_log"
    before = log.snapshot(3)
    whole = directory / f"{3:020}.checkpoint.parquet"
    (directory / "_sidecars").mkdir()
    pq.write_table(pq.read_table(whole, columns=["add", "remove"]), directory / "_sidecars" / "a b.parquet")
    whole.unlink()
    for commit in _commits(table)[:4]:
        commit.unlink()
    rows: list[dict[str, Any]] = [
        {"checkpointMetadata": {"version": 3}},
        {"protocol": before.protocol.to_fields()},
        {"metaData": {"id": before.metadata.id, "schemaString": before.metadata.schema_string}},
        {"sidecar": {"path": "a%20b.parquet", "sizeInBytes": 1, "modificationTime": 1}},
    ]
    named = directory / f"{3:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    if form == "json":
        named.write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(
            pa.Table.from_pylist([dict.fromkeys(("protocol", "metaData", "sidecar")) | row for row in rows]), named
        )
    assert log.snapshot(3).files.keys() == before.files.keys()
    assert log.snapshot().version == 5
    (directory / "_sidecars" / "a b.parquet").unlink()
    with pytest.raises(NotFoundError, match=r"a sidecar of a checkpoint is missing; restore .*/_sidecars/a b\.parquet"):
        log.snapshot()


def test_what_is_missing_or_damaged_is_named(table: Path, tmp_path: Path) -> None:
    log = TableLog(str(table))
    _commits(table)[4].unlink()
    assert log.snapshot(3).version == 3
    with pytest.raises(PenstockError, match="the commit of version 4 is missing"):
        log.snapshot()
    _commits(table)[1].write_text('{"add":')
    with pytest.raises(PenstockError, match=r"00001\.json is damaged"):
        log.snapshot(1)
    nowhere = TableLog(str(tmp_path / "nowhere"))
    assert not nowhere.exists()
    with pytest.raises(NotFoundError, match="no Delta table at"):
        nowhere.snapshot()


def test_other_files_of_the_directory_are_not_read(table: Path) -> None:
    log = TableLog(str(table))
    for name in (
        f".{6:020}.json.tmp",
        f"_{6:020}.json",
        f"{6:020}.json.tmp",
        f"{4:020}.{9:020}.compacted.json",
        f"{9:020}.crc",
    ):
        (table / "_delta_log" / name).write_text("{half")
    assert log.latest_version() == 5


def test_history_and_time_travel(table: Path) -> None:
    log = TableLog(str(table))
    start = 1_700_000_000
    for version, seconds in enumerate([0, 10, 5, 20, 20, 30]):  # a clock that stood still and went back
        os.utime(_commits(table)[version], (start + seconds, start + seconds))
    assert [commit.version for commit in log.history()] == [5, 4, 3, 2, 1, 0]
    assert [commit.info["operation"] for commit in log.history(3)] == ["WRITE", "WRITE", "WRITE"]
    times = [commit.timestamp for commit in reversed(log.history())]
    assert times == sorted(set(times))
    for version, time in enumerate(times):
        assert log.version_at(time) == version
        assert log.snapshot(version).timestamp == time
    assert log.version_at(times[5] + timedelta(days=1)) == 5
    assert log.version_at(times[1].replace(tzinfo=None) - timedelta(seconds=1)) == 0
    with pytest.raises(NotFoundError, match="its first one is of 2023-11-14"):
        log.version_at(times[0] - timedelta(seconds=1))
