"""Commits of our own, judged by deltalake and DuckDB; and writers that meet."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import duckdb_extensions
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from penstock.delta.format.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, Txn
from penstock.delta.format.features import with_materialized
from penstock.delta.format.file_paths import log_path, partition_directory
from penstock.delta.format.partition_values import to_text
from penstock.delta.log.commits import Committed, commit
from penstock.delta.log.conflicts import ReadSet, everything_read, nothing_read
from penstock.delta.log.snapshot import LogSnapshot
from penstock.delta.log.table_log import TableLog
from penstock.delta.writing.maintenance import checkpoint
from penstock.errors import ConflictError, InvalidError, UnsupportedError
from penstock.storage.filesystems import create_file

_UTC = pa.timestamp("us", "UTC")
_PARTITIONS = [
    ("s", "string", pa.string()),
    ("d", "date", pa.date32()),
    ("n", "decimal(38,10)", pa.decimal128(38, 10)),
    ("t", "timestamp", _UTC),
    ("f", "double", pa.float64()),
]
_VALUES: list[tuple[Any, ...]] = [
    (None, None, None, None, None),
    ("/ = % $ : +&#?", date(1969, 12, 31), Decimal("-0.5"), datetime(1965, 1, 2, 3, 4, 5, 123456, UTC), -0.0),
    ("🚰 é", date(1, 1, 1), Decimal("1E-10"), datetime(2026, 1, 2, tzinfo=UTC), 1e300),
    (
        "__HIVE_DEFAULT_PARTITION__",
        date(9999, 12, 31),
        Decimal(10**27),
        datetime(9999, 12, 31, tzinfo=UTC),
        float("-inf"),
    ),
    ("'\"\\\t\n", date(1970, 1, 1), Decimal(0), datetime(1, 1, 1, tzinfo=UTC), 5e-324),
]
_PROTOCOL = Protocol(1, 2)


def _metadata(partitions: Sequence[tuple[str, str]] = (("p", "string"),), **properties: str) -> Metadata:
    columns = [("id", "long"), *partitions]
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return Metadata(
        str(uuid4()),
        json.dumps({"type": "struct", "fields": fields}),
        partition_columns=tuple(name for name, _ in partitions),
        configuration={f"delta.{name}": value for name, value in properties.items()},
        created_time=0,
    )


def _created(path: Path, protocol: Protocol = _PROTOCOL, metadata: Metadata | None = None) -> TableLog:
    log = TableLog(str(path))
    assert commit(log, None, [protocol, metadata or _metadata()], "CREATE TABLE", {}) == Committed(0)
    return log


def _file(name: str, partition: str = "a") -> AddFile:
    return AddFile(name, {"p": partition}, 1, 0, True)


def _append(
    log: TableLog, *actions: Action, base: LogSnapshot | None = None, read_set: ReadSet = nothing_read
) -> Committed:
    return commit(log, base or log.snapshot(), actions, "WRITE", {"mode": "Append"}, read_set=read_set)


@pytest.mark.parametrize("materialized", [False, True])
def test_other_readers_read_our_commits(tmp_path: Path, materialized: bool) -> None:
    names = [name for name, _, _ in _PARTITIONS]
    protocol = with_materialized(_PROTOCOL) if materialized else _PROTOCOL
    log = _created(tmp_path, protocol, _metadata([(name, kind) for name, kind, _ in _PARTITIONS]))
    expected = []
    for number, values in enumerate(_VALUES):
        rows = pa.table({"id": pa.array([number, None], pa.int64())})
        if materialized:
            for value, (name, _, arrow) in zip(values, _PARTITIONS, strict=True):
                rows = rows.append_column(name, pa.array([value] * 2, arrow))
        texts = [to_text(value, kind) for value, (_, kind, _) in zip(values, _PARTITIONS, strict=True)]
        place = partition_directory(names, texts)
        (tmp_path / place).mkdir(parents=True)
        pq.write_table(rows, tmp_path / place / "part.parquet")
        size = (tmp_path / place / "part.parquet").stat().st_size
        stats = json.dumps({"numRecords": 2})
        file = AddFile(log_path(place + "part.parquet"), dict(zip(names, texts, strict=True)), size, 0, True, stats)
        assert _append(log, file).version == number + 1
        expected += [(number, *values), (None, *values)]
    assert _read_by_deltalake(tmp_path) == _keyed(expected)
    assert _read_by_duckdb(tmp_path) == _keyed(expected)
    checkpoint(log)
    for written in (tmp_path / "_delta_log").glob("*.json"):
        written.unlink()
    assert len(log.snapshot().files) == len(_VALUES)
    assert _read_by_deltalake(tmp_path) == _read_by_duckdb(tmp_path) == _keyed(expected)


def _read_by_deltalake(path: Path) -> list[str]:
    # Its `to_pyarrow_table` fails on a decimal like -0.5.
    found = pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t"))
    return _keyed([tuple(row.values()) for row in found.to_pylist()])


def _read_by_duckdb(path: Path) -> list[str]:
    duckdb_extensions.import_extension("delta")
    with duckdb.connect() as connection:
        connection.load_extension("delta")
        connection.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(["id", *(name for name, _, _ in _PARTITIONS)])
        return _keyed(connection.execute(f"SELECT {columns} FROM delta_scan('{path}')").fetchall())


def _keyed(rows: Sequence[Sequence[Any]]) -> list[str]:
    return sorted(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Decimal():
            return f"{value:.10f}"
    return value


def test_the_commit_tells_about_itself(tmp_path: Path) -> None:
    log = _created(tmp_path)
    base = log.snapshot()
    commit(log, base, [_file("f")], "WRITE", {"mode": "Append", "partitionBy": ["p"]}, metrics={"numFiles": 1})
    line = json.loads((tmp_path / "_delta_log" / f"{1:020}.json").read_text().split("\n")[0])
    info = line["commitInfo"]
    assert info["operationParameters"] == {"mode": "Append", "partitionBy": '["p"]'}
    assert (info["readVersion"], info["isBlindAppend"], info["operationMetrics"]) == (0, True, {"numFiles": "1"})
    assert info["engineInfo"].startswith("Penstock/")
    assert abs(info["timestamp"] / 1000 - time.time()) < 60
    latest = log.snapshot()
    file = latest.files["f", None]
    commit(log, latest, [file.removed(0)], "DELETE", {}, read_set=everything_read)
    assert log.history(1)[0].info["isBlindAppend"] is False
    assert DeltaTable(tmp_path).history(1)[0]["operation"] == "DELETE"
    assert log.snapshot().files == {}
    assert log.snapshot(1).files == {("f", None): file}


_ONE, _TWO, _NEW, _OTHER = _file("1"), _file("2", "b"), _file("3"), _file("4")


def _of_b(file: AddFile) -> bool:
    return file.partition_values["p"] == "b"


@pytest.mark.parametrize(
    ("winner", "ours", "read_set", "conflict"),
    [
        ([_NEW], [_OTHER], nothing_read, None),
        ([_NEW], [_OTHER], _of_b, None),
        ([_NEW], [_OTHER], everything_read, "added 3 to what this write has read"),
        ([_NEW], [_ONE.removed(0)], everything_read, "added 3"),
        ([_NEW], [_ONE.removed(0, data_change=False), AddFile("5", {"p": "a"}, 1, 0, False)], everything_read, None),
        ([_file("3", "b")], [_TWO.removed(0)], _of_b, "added 3"),
        ([_ONE.removed(0)], [_OTHER], nothing_read, None),
        ([_ONE.removed(0)], [_TWO.removed(0)], _of_b, None),
        ([_ONE.removed(0)], [_OTHER], everything_read, "removed 1, which this write has read"),
        ([_ONE.removed(0)], [_ONE.removed(0)], nothing_read, "removed 1, which this write removes"),
        (
            [_ONE.removed(0)],
            [AddFile("1", {"p": "a"}, 1, 0, False)],
            nothing_read,
            "removed 1, which this write removes or adds",
        ),
        ([_metadata(x="1")], [_OTHER], nothing_read, "changed the table's metadata"),
        ([Protocol(1, 4)], [_OTHER], nothing_read, "changed the table's protocol"),
        ([_PROTOCOL], [_OTHER], nothing_read, None),
        (
            [with_materialized(_PROTOCOL)],
            [_OTHER],
            nothing_read,
            "switched on materializePartitionColumns.*run the write again",
        ),
        ([_NEW], [with_materialized(_PROTOCOL)], nothing_read, None),
        ([Txn("q", 1)], [_OTHER, Txn("q", 2)], nothing_read, "is of the same application q"),
        ([Txn("q", 1)], [_OTHER, Txn("r", 1)], nothing_read, None),
        ([DomainMetadata("x", "1")], [DomainMetadata("x", "2")], nothing_read, "the same domain x"),
        ([DomainMetadata("x", "1")], [DomainMetadata("y", "2")], nothing_read, None),
    ],
)
def test_conflicts(
    tmp_path: Path, winner: list[Action], ours: list[Action], read_set: ReadSet, conflict: str | None
) -> None:
    log = _created(tmp_path)
    _append(log, _ONE, _TWO)
    base = log.snapshot()
    _append(log, *winner, base=base)
    _append(log, _file("later", "c"), base=log.snapshot()) if conflict else None
    if conflict is None:
        assert _append(log, *ours, base=base, read_set=read_set) == Committed(3)
    else:
        with pytest.raises(ConflictError, match=conflict):
            _append(log, *ours, base=base, read_set=read_set)
        assert log.latest_version() == 3
    assert not list((tmp_path / "_delta_log").glob(".*"))


def test_a_table_is_created_once(tmp_path: Path) -> None:
    _created(tmp_path)
    with pytest.raises(ConflictError, match="was created at"):
        _created(tmp_path)
    with pytest.raises(InvalidError, match="lacks its protocol"):
        commit(TableLog(str(tmp_path / "x")), None, [_ONE], "WRITE", {})


def test_a_writer_from_before_the_kept_commits_is_turned_away(tmp_path: Path) -> None:
    log = _created(tmp_path)
    base = log.snapshot()
    _append(log, _ONE)
    checkpoint(log)
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(ConflictError, match="version 1 can no longer be compared"):
        _append(log, _TWO, base=base)
    assert _append(log, _TWO) == Committed(2)


def test_a_transaction_is_written_once(tmp_path: Path) -> None:
    log = _created(tmp_path)
    assert _append(log, _ONE, Txn("q", 7, 0)) == Committed(1)
    assert _append(log, _TWO, Txn("q", 7)) == Committed(1, skipped=True)
    assert _append(log, _TWO, Txn("q", 6)) == Committed(1, skipped=True)
    assert _append(log, _TWO, Txn("q", 8)) == Committed(2)
    assert log.snapshot().txns == {"q": 8}
    assert DeltaTable(tmp_path).transaction_version("q") == 8


def test_what_may_not_be_written_is_refused(tmp_path: Path) -> None:
    log = _created(tmp_path, metadata=_metadata(appendOnly="true"))
    _append(log, _ONE)
    with pytest.raises(UnsupportedError, match="append-only"):
        _append(log, _ONE.removed(0))
    with pytest.raises(InvalidError, match="has 2 twice"):
        _append(log, _TWO, _file("2"))
    _append(log, Protocol(1, 7, None, ("appendOnly", "clustering")))
    with pytest.raises(UnsupportedError, match=r"read-only here.*clustering"):
        _append(log, _TWO)
    with pytest.raises(UnsupportedError, match="put-if-absent"):
        create_file("gs://nowhere/x", b"")


def test_in_commit_timestamps_go_forward(tmp_path: Path) -> None:
    log = _created(tmp_path, Protocol(1, 7, None, ("inCommitTimestamp",)), _metadata(enableInCommitTimestamps="true"))
    for version in (1, 2, 3):
        _append(log, _file(str(version)), base=log.snapshot(0))
    path = tmp_path / "_delta_log" / f"{3:020}.json"
    told = json.loads(path.read_text().split("\n")[0])["commitInfo"]["inCommitTimestamp"]
    path.write_text(path.read_text().replace(str(told), str(told + 10**9)))  # a writer whose clock is fast
    _append(log, _file("4"), base=log.snapshot(1))
    _append(log, _file("5"))
    times = [entry.timestamp for entry in reversed(log.history())]
    assert times == sorted(set(times))
    assert times[5] - times[3] == timedelta(milliseconds=2)
    assert [log.version_at(time) for time in times] == [0, 1, 2, 3, 4, 5]
    assert log.version_at(times[3] - timedelta(milliseconds=1)) == 2
    assert log.snapshot(4).timestamp == times[4]
    assert DeltaTable(tmp_path).version() == 5


def _many(path: str, writer: int, count: int) -> list[int]:
    log = TableLog(path)
    base = log.snapshot()  # stale for all but the first commit
    return [_append(log, _file(f"{writer}-{number}"), base=base).version for number in range(count)]


@pytest.mark.parametrize(("kind", "writers", "count"), [("threads", 8, 25), ("processes", 4, 25)])
def test_no_commit_is_lost(tmp_path: Path, kind: str, writers: int, count: int) -> None:
    log = _created(tmp_path)
    pool: Any = (
        ThreadPoolExecutor(writers)
        if kind == "threads"
        else ProcessPoolExecutor(writers, mp_context=multiprocessing.get_context("spawn"))
    )
    with pool:
        results = [pool.submit(_many, str(tmp_path), writer, count) for writer in range(writers)]
        versions = sorted(version for result in results for version in result.result())
    assert versions == list(range(1, writers * count + 1))
    assert {path for path, _ in log.snapshot().files} == {f"{w}-{n}" for w in range(writers) for n in range(count)}
    assert not list((tmp_path / "_delta_log").glob(".*"))
    assert len(DeltaTable(tmp_path).file_uris()) == writers * count


def _forever(path: str) -> None:
    _many(path, os.getpid(), 10**6)


def test_a_killed_writer_leaves_the_last_version(tmp_path: Path) -> None:
    log = _created(tmp_path)
    for pause in (0.0, 0.05):
        before = log.latest_version()
        writer = multiprocessing.get_context("spawn").Process(target=_forever, args=(str(tmp_path),))
        writer.start()
        while log.latest_version() < before + 5:
            time.sleep(0.01)
        time.sleep(pause)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        latest = log.latest_version()
        assert len(log.snapshot().files) == latest == DeltaTable(tmp_path).version()
        assert _append(log, _file(f"after {latest}")) == Committed(latest + 1)
