"""Old versions go, with the files that they alone needed: kept ones read as before, and writers notice nothing."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
import penstock.lance
from penstock.lance.commits import namespace_commit, writer_lease
from penstock.lance.commits.namespace_commit import NamespaceCommit
from penstock.lance.commits.writer_lease import WRITER
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import NamespaceDefinition, new_definition
from penstock.lance.format.field_ids import with_field_ids
from penstock.lance.format.kept_versions import check_kept, version_at
from penstock.lance.format.manifest import MANIFEST, Manifest
from penstock.lance.writing import cleanup
from penstock.lance.writing.creation import create_namespace
from support.effort import tries
from support.lance_judges import by_duckdb, by_pylance, check_manifest, client, in_order
from support.lance_writers import COLUMNS, NAME, SCHEMA, Writer, data_files, stop
from support.processes import Child
from support.stalled import Stalled

HOSTILE = ("US", "", None, "a/b=c$d%e.f", "../..", "é😀", 'it\'s "q"', "__HIVE_DEFAULT_PARTITION__", " x ", "a\\b\tc")


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.setattr(writer_lease, "_LEASE", 0.4)
    return Writer.create(tmp_path)


def leaf_versions(writer: Writer, country: str) -> list[int]:
    return [item["version"] for item in lance.dataset(writer.leaf(country)).versions()]


def manifest_versions(writer: Writer) -> list[int]:
    return writer.manifest.versions()


def all_rows(writer: Writer) -> dict[int, list[Any]]:
    return {version: writer.rows(version) for version in writer.versions()}


def filled(writer: Writer) -> Writer:
    """Six versions: three appends, a delete, a compaction."""
    for number in range(3):
        writer.append(f"b{number}", [(10 * number + place, value) for place, value in enumerate(HOSTILE)])
    writer.delete("id % 10 = 0 or id = 21")
    writer.compact()
    return writer


@pytest.mark.parametrize("keep", [1, 3, 100])
def test_kept_versions_read_as_before(writer: Writer, keep: int) -> None:
    before = all_rows(filled(writer))
    kept = list(before)[-keep:]
    size = sum(path.stat().st_size for path in Path(writer.root).rglob("*") if path.is_file())
    told = writer.clean_up(keep, dry_run=True)
    assert all_rows(writer) == before
    removed = writer.clean_up(keep)
    assert [one[:4] for one in told if one.table != MANIFEST] == [one[:4] for one in removed if one.table != MANIFEST]
    assert writer.versions() == kept
    assert all_rows(writer) == {version: before[version] for version in kept}
    left = sum(path.stat().st_size for path in Path(writer.root).rglob("*") if path.is_file())
    if keep < len(before):
        # Two small versions of the manifest are new: whose turn it was, and what is kept.
        assert 0 < size - left <= sum(one.bytes for one in removed)
        assert next(one for one in removed if one.table == MANIFEST).versions[-1] < kept[0]
    else:
        assert [one.table for one in removed if one.table != MANIFEST] == []
    for version in before.keys() - set(kept):
        with pytest.raises(penstock.NotFoundError, match=f"version {version} of namespace 'events' was cleaned up"):
            check_kept(writer.manifest, NAME, version)
    assert [one for one in writer.clean_up(keep) if one.table != MANIFEST] == [], "there is nothing left to do"
    check_manifest(writer.root)
    assert len(by_duckdb(writer.root, NAME)) == len(writer.rows())
    writer.append("next", [(100, "US"), (101, "new")])
    assert len(writer.rows()) == len(before[max(before)]) + 2


def test_what_only_old_versions_had_is_gone(writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    old = data_files(writer.root)
    writer.overwrite("b", [(2, "US")])
    writer.clean_up(2)
    assert set(old) < set(data_files(writer.root))
    [leaf, _] = writer.clean_up(1)
    assert (leaf.table, leaf.versions, leaf.files) == (f"{NAME}$country=US", [1], 1)
    assert leaf.bytes > 0
    assert not set(old) & set(data_files(writer.root))
    assert writer.ids() == [2]


def test_versions_by_their_times(writer: Writer) -> None:
    filled(writer)
    before = all_rows(writer)
    times = {change.version: change.timestamp for change in writer.manifest.changes()}
    third = list(before)[2]
    writer.clean_up(moment=times[third])
    assert writer.versions() == list(before)[2:]
    assert all_rows(writer) == {version: before[version] for version in list(before)[2:]}
    with pytest.raises(penstock.NotFoundError, match="no version at or before"):
        version_at(writer.manifest, NAME, times[third] - timedelta(microseconds=1))
    assert version_at(writer.manifest, NAME, times[third]) == third
    writer.clean_up(moment=datetime.now(UTC) + timedelta(days=1))
    assert writer.versions() == list(before)[-1:], "the newest always stays"
    assert writer.rows() == before[max(before)]
    writer.clean_up(moment=datetime(1970, 1, 1, tzinfo=UTC))
    assert writer.versions() == list(before)[-1:]


def test_leaves_that_were_dropped_are_emptied_and_can_come_back(writer: Writer) -> None:
    writer.append("a", [(1, "US"), (2, "CN")])
    late = Writer(writer.root)
    writer.delete("country = 'CN'")
    scan = late.scan()
    under_way = late.written(scan, "late", [(3, "CN")])  # its files are in the leaf's directory already
    gone = list(Path(writer.root).glob("*CN/data/*"))
    removed = {one.table: one for one in writer.clean_up(1)}
    assert removed[f"{NAME}$country=CN"].files >= 1
    assert len([path for path in gone if path.exists()]) == 1
    assert [one for one in writer.clean_up(1) if one.table != MANIFEST] == []
    late.commit(scan, *under_way)
    assert writer.ids() == [1, 3]
    assert sorted(row["id"] for table in by_pylance(writer.root, NAME).values() for row in table.to_pylist()) == [1, 3]
    writer.clean_up(1)
    assert writer.ids() == [1, 3]


def test_leaves_of_other_programs_are_left_alone(writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    client(writer.root).declare_table(DeclareTableRequest(id=[NAME, "country=XX"]))
    foreign = writer.leaf("XX")
    schema = lance.dataset(writer.leaf("US")).schema
    for number in range(3):
        rows = pa.table([[50 + number], ["theirs"], ["XX"]], schema=schema)
        lance.write_dataset(rows, foreign, mode="append" if number else "create")
    other = Path(writer.root, "other.lance")
    for number in range(3):
        lance.write_dataset(pa.table({"x": [number]}), other, mode="overwrite" if number else "create")
    writer.append("b", [(2, "US"), (53, "XX")])
    writer.append("c", [(3, "US")])
    files = sorted(path for path in [*Path(foreign).rglob("*"), *other.rglob("*")] if path.is_file())
    removed = writer.clean_up(1)
    assert f"{NAME}$country=XX" not in [one.table for one in removed]
    assert sorted(path for path in [*Path(foreign).rglob("*"), *other.rglob("*")] if path.is_file()) == files
    assert writer.ids() == [1, 2, 3, 50, 51, 52, 53]
    assert lance.dataset(other, version=1).to_table()["x"].to_pylist() == [0]


def test_rows_that_others_put_into_our_leaves_stay(writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    writer.append("b", [(2, "US"), (3, "CN")])
    writer.delete("country = 'CN'")
    leaves = [writer.leaf("US"), next(str(path) for path in Path(writer.root).glob("*=CN"))]
    for leaf in leaves:
        rows = pa.table([[99], ["theirs"], ["US"]], schema=lance.dataset(leaf).schema)
        lance.write_dataset(rows, leaf, mode="append")
    lance.dataset(leaves[0]).tags.create("audit", 1)
    writer.clean_up(1)
    assert writer.ids() == [1, 2]
    assert 99 in lance.dataset(leaves[1]).to_table()["id"].to_pylist(), "somebody still uses what we have dropped"
    assert lance.dataset(leaves[0], version="audit").count_rows() == 1, "a tag keeps its version"
    writer.adopt()
    assert writer.ids() == [1, 2, 99]


def test_leaves_that_others_have_deleted_are_not_in_the_way(writer: Writer) -> None:
    for number in range(2):
        writer.append(f"b{number}", [(number, "US"), (10 + number, "CN")])
    shutil.rmtree(writer.leaf("CN"))
    assert [one.table for one in writer.clean_up(1)] == [f"{NAME}$country=US", MANIFEST]
    assert lance.dataset(writer.leaf("US")).count_rows() == 2


@pytest.mark.parametrize("dropped", [False, True])
def test_leaves_that_another_program_has_made_anew_are_its_own(writer: Writer, dropped: bool) -> None:
    """With fewer versions than ours had: they tell nothing of ours."""
    for number in range(5):
        writer.append(f"a{number}", [(number, "US"), (10 + number, "CN")])
    leaf = writer.leaf("CN")
    if dropped:
        writer.delete("country = 'CN'")
    schema = lance.dataset(leaf).schema
    shutil.rmtree(leaf)
    for number in range(3):
        rows = pa.table([[90 + number], ["theirs"], ["CN"]], schema=schema)
        lance.write_dataset(rows, leaf, mode="append" if number else "create")
    assert f"{NAME}$country=CN" not in [one.table for one in writer.clean_up(1, dry_run=True)]
    writer.clean_up(1)
    assert [item["version"] for item in lance.dataset(leaf).versions()] == [1, 2, 3]


def another_namespace(writer: Writer) -> NamespaceDefinition:
    definition = new_definition(with_field_ids(SCHEMA), COLUMNS, ["country"])
    create_namespace(DatasetStore.at(writer.root), "other", definition)
    return definition


def test_a_run_that_stops_is_finished_also_when_another_namespace_was_cleaned(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest's old versions name the leaves that were dropped."""
    writer.append("a", [(1, "US"), (2, "CN")])
    leaf = writer.leaf("CN")
    writer.delete("country = 'CN'")
    definition = another_namespace(writer)

    def failing(*_: Any) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "_removed", failing)
        with pytest.raises(OSError, match="the disk is gone"):
            writer.clean_up(1)
    cleanup.clean_up(writer.manifest, "other", definition, None, 1)
    assert len(list(Path(leaf, "data").iterdir())) == 1
    writer.clean_up(1)
    assert list(Path(leaf, "data").iterdir()) == []
    assert writer.ids() == [1]


def test_two_namespaces_are_cleaned_at_once(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        writer.append(f"a{number}", [(number, "US"), (10 + number, "CN")])
    writer.delete("country = 'CN'")
    definition = another_namespace(writer)
    entries, called = Manifest.entries, []

    def late(self: Manifest, *arguments: Any, **named: Any) -> Any:
        if not called:
            called.append(True)
            cleanup.clean_up(writer.manifest, "other", definition, None, 1)
        return entries(self, *arguments, **named)

    monkeypatch.setattr(Manifest, "entries", late)
    assert writer.clean_up(1)
    assert writer.ids() == [0, 1, 2]


def test_a_writer_whose_version_of_the_manifest_is_gone_looks_again(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.append("a", [(1, "US")])
    writer.append("b", [(2, "US")])
    late = Writer(writer.root)
    scan = late.scan()
    job, written = late.written(scan, "late", [(9, "CN")])
    commit, done = Manifest.commit, []

    def beaten(self: Manifest, *arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            writer.append("c", [(3, "US")])
            writer.clean_up(1)
        return commit(self, *arguments, **named)

    monkeypatch.setattr(Manifest, "commit", beaten)
    with suppress(penstock.PenstockError):  # told that its version is gone, or done
        late.commit(scan, job, written)
    assert set(writer.ids()) - {9} == {1, 2, 3}


def test_namespaces_of_one_directory_share_the_manifest(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (
        penstock.lance.create(str(tmp_path), name, "id BIGINT, p STRING", partitioned_by=["p"], spark=spark)
        for name in ("first", "second")
    )
    for number in range(3):
        for namespace in (first, second):
            namespace.append(spark.sql(f"SELECT {number}L AS id, 'x' AS p"))
    versions = [row.version for row in second.versions().collect()]
    rows = {version: in_order(second.read(version=version).collect()) for version in versions}
    oldest = first.versions().collect()[0].version
    removed = first.clean_up(keep_last=1).collect()
    assert [row.versions for row in removed if row.table == MANIFEST] in ([], [list(range(1, versions[0]))])
    assert first.versions().count() == 1
    with pytest.raises(penstock.NotFoundError, match=r"version \d+ of namespace 'first' was cleaned up"):
        first.read(version=oldest)
    with pytest.raises(penstock.NotFoundError, match="was cleaned up"):
        first.partitions(version=oldest)
    with pytest.raises(penstock.NotFoundError, match="no version at or before"):
        first.read(timestamp="2026-01-01 00:00:00")
    assert {version: in_order(second.read(version=version).collect()) for version in versions} == rows
    removed = second.clean_up(keep_last=2).collect()
    assert [row.table for row in removed] == ["second$p=x", MANIFEST]
    assert {version: in_order(second.read(version=version).collect()) for version in versions[-2:]} == {
        version: rows[version] for version in versions[-2:]
    }
    assert in_order(first.read().collect()) == in_order([(0, "x"), (1, "x"), (2, "x")])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "either older_than or keep_last"),
        ({"older_than": timedelta(1), "keep_last": 1}, "either older_than or keep_last"),
        ({"keep_last": 0}, "keep_last=0"),
        ({"keep_last": -1}, "keep_last=-1"),
        ({"keep_last": True}, "keep_last=True"),
        ({"keep_last": "2"}, "keep_last='2'"),
        ({"older_than": "yesterday"}, "'yesterday' is not a timestamp"),
        ({"older_than": 7}, "older_than=7"),
        ({"older_than": timedelta.max}, "older_than=.*before all times"),
    ],
)
def test_wrong_arguments_change_nothing(spark: SparkSession, writer: Writer, given: Any, told: str) -> None:
    filled(writer)
    before, versions = all_rows(writer), manifest_versions(writer)
    namespace = penstock.lance.open(writer.root, NAME, spark=spark)
    with pytest.raises(penstock.InvalidError, match=told):
        namespace.clean_up(**given)
    assert (all_rows(writer), manifest_versions(writer)) == (before, versions)


@pytest.mark.slow
def test_what_users_see(spark: SparkSession, tmp_path: Path) -> None:
    fields = ["day", "country"]
    namespace = penstock.lance.create(
        str(tmp_path), "db$events", "id BIGINT, day DATE, country STRING", partitioned_by=fields, spark=spark
    )
    assert namespace.clean_up(keep_last=1).where("table <> '__manifest'").count() == 0, "there is no leaf yet"
    rows = [
        (number, None if number % 3 else datetime(1969, 12, 31).date(), HOSTILE[number % len(HOSTILE)])
        for number in range(30)
    ]
    frame = spark.createDataFrame(rows, "id long, day date, country string").coalesce(1)
    for _ in range(3):
        namespace.append(frame)
    namespace.delete(F.col("country") == "US")
    namespace.compact()
    expected = in_order(namespace.read().collect())
    partitions = namespace.partitions().count()
    told = namespace.clean_up(keep_last=1, dry_run=True)
    removed = namespace.clean_up(older_than=timedelta(seconds=-1))
    assert removed.columns == ["table", "location", "versions", "files", "bytes"]
    assert in_order(removed.where("table <> '__manifest'").drop("bytes").collect()) == in_order(
        told.where("table <> '__manifest'").drop("bytes").collect()
    )
    assert removed.count() == partitions + 1 + len({str(row[1]) for row in rows if row[2] == "US"})
    assert in_order(namespace.read().collect()) == expected
    assert len(by_duckdb(tmp_path, "db$events")) == len(expected)
    assert namespace.check().count() == 0
    namespace.append(frame)
    assert namespace.read().count() == len(expected) + len(rows)


# Beside other writers.


def test_writes_under_way_go_on_or_are_told(writer: Writer) -> None:
    filled(writer)
    scan = writer.scan()
    appended, deleted = writer.written(scan, "late", [(70, "é😀"), (71, "brand new")]), writer.marked(scan, "id = 11")
    writer.append("now", [(80, "é😀"), (81, "")])
    writer.clean_up(1)
    expected = writer.ids()
    with pytest.raises(penstock.ConflictError, match="cleaned up meanwhile; run again"):
        writer.commit(scan, *appended)
    with pytest.raises(penstock.ConflictError, match="cleaned up meanwhile; run again"):
        writer.remove(scan, deleted)
    assert writer.ids() == expected
    writer.append("again", [(70, "é😀"), (71, "brand new")])
    writer.delete("id = 11")
    assert writer.ids() == sorted({*expected, 70, 71} - {11})


def test_writes_under_way_whose_version_is_kept_go_through(writer: Writer) -> None:
    filled(writer)
    scan = writer.scan()
    appended, deleted = writer.written(scan, "late", [(70, "US"), (71, "new")]), writer.marked(scan, "id = 11")
    writer.clean_up(1)
    writer.remove(scan, deleted)
    writer.commit(scan, *appended)
    assert {70, 71} < set(writer.ids())
    assert 11 not in writer.ids()


_TRIES = 10


def test_writers_and_cleaners_at_once(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []

    def runs(act: Any, times: int) -> threading.Thread:
        def run() -> None:
            for number in range(times):
                try:
                    for attempt in range(_TRIES):  # a busy machine takes longer than a lease, more than once
                        with suppress(penstock.ConflictError):
                            act(number + 1000 * attempt)
                            break
                    else:
                        failures.append(AssertionError(f"{_TRIES} conflicts"))
                except Exception as error:
                    failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    monkeypatch.setattr(writer_lease, "_LEASE", 15.0)
    writer.append("first", [(0, "US")])
    threads = [
        runs(lambda number: writer.append("a", [(10_000 + number, "US"), (20_000 + number, None)]), 6),
        runs(lambda number: writer.append("b", [(30_000 + number, "US"), (40_000 + number, "é/😀")]), 6),
        runs(lambda number: writer.clean_up(1), 4),
        runs(lambda number: writer.clean_up(2), 4),
    ]
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(writer.rows()) == 25
    assert len(set(writer.ids())) == 25
    writer.clean_up(1)
    assert len(writer.rows()) == 25


def test_a_writer_that_died_before_it_published(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(writer)
    expected = writer.rows()
    monkeypatch.setattr(namespace_commit, "DATASETS_AT_ONCE", 1)
    late = Stalled(monkeypatch, lambda: writer.append("dead", [(100, "US"), (101, "")]), NamespaceCommit, "publish")
    writer.clean_up(1)
    assert writer.rows() == expected
    assert isinstance(late.goes_on(), penstock.ConflictError)
    assert writer.rows() == expected
    writer.append("next", [(200, "US")])
    assert writer.ids() == sorted([*(row[0] for row in expected), 200])


@pytest.mark.parametrize("call", [1, 3, 6])
def test_a_run_that_stops_on_its_way_is_finished_by_the_next(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    filled(writer)
    writer.delete("country = 'US'")
    newest, whole = writer.rows(), {one.table: one.versions for one in writer.clean_up(1, dry_run=True)}
    original, calls = cleanup._removed, iter(range(1, 100))

    def failing(*arguments: Any) -> Any:
        if next(calls) == call:
            raise OSError("the disk is gone")
        return original(*arguments)

    monkeypatch.setattr(cleanup, "_removed", failing)
    monkeypatch.setattr(namespace_commit, "DATASETS_AT_ONCE", 1)
    with pytest.raises(OSError, match="the disk is gone"):
        writer.clean_up(1)
    root = writer.manifest.state().entry(NAME)
    assert root is not None
    assert WRITER not in root.properties, "the next writer needs not wait"
    assert (writer.rows(), len(writer.versions())) == (newest, 1)
    monkeypatch.setattr(cleanup, "_removed", original)
    rest = {one.table: one.versions for one in writer.clean_up(1)}
    assert MANIFEST in rest
    assert set(rest) <= set(whole)
    assert [one.table for one in writer.clean_up(1) if one.table != MANIFEST] == []
    assert writer.rows() == newest


def victim(root: str, call: str) -> None:
    """A process of its own, whose clean-up stops before it removes something for the n-th time."""
    namespace_commit.DATASETS_AT_ONCE = 1
    removing, calls = cleanup._removed, itertools.count(1)

    def stopping(*arguments: Any) -> Any:
        if next(calls) == int(call):
            stop()
        return removing(*arguments)

    cleanup._removed = stopping
    Writer(root).clean_up(keep_last=2)


@pytest.mark.slow
@pytest.mark.parametrize("call", [1, 2, len(HOSTILE) + 1])
def test_a_killed_run_is_finished_by_the_next(writer: Writer, call: int) -> None:
    filled(writer)
    kept = {version: rows for version, rows in all_rows(writer).items() if version in writer.versions()[-2:]}
    with Child.script(__file__, writer.root, str(call)) as child:
        child.is_ready()
        child.kill()
    assert all_rows(writer) == kept
    writer.clean_up(keep_last=2)
    assert all_rows(writer) == kept
    assert {one.table for one in writer.clean_up(keep_last=2)} <= {MANIFEST}
    writer.append("next", [(200, "US")])
    assert (200, "next", "US") in writer.rows()


def test_files_that_no_version_ever_had_go_when_they_are_old(writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    young, old = (writer.written(writer.scan(), "x", [(number, "US")])[1][0] for number in (2, 3))
    past = time.time() - 8 * 86400
    for file in old.files:
        os.utime(Path(writer.root, file), (past, past))
    writer.clean_up(1)
    assert [Path(writer.root, file).exists() for file in [*young.files, *old.files]] == [True, False]
    assert writer.ids() == [1]


@pytest.mark.parametrize("seed", range(tries(2, 30)))
def test_random_statements(writer: Writer, seed: int) -> None:
    chance = random.Random(seed)
    known: dict[int, list[Any]] = {}
    for step in range(tries(14, 40)):
        kind = chance.choice(["append", "append", "append", "delete", "overwrite", "compact", "clean"])
        rows = [(1000 * step + place, chance.choice(HOSTILE)) for place in range(chance.randint(1, 6))]
        if kind == "append":
            writer.append(f"s{step}", rows)
        elif kind == "overwrite":
            writer.overwrite(f"s{step}", rows)
        elif kind == "delete":
            writer.delete(f"id % {chance.randint(2, 5)} = 0")
        elif kind == "compact":
            writer.compact()
        else:
            keep = chance.randint(1, 6)
            before = all_rows(writer)
            writer.clean_up(keep)
            assert all_rows(writer) == {version: before[version] for version in list(before)[-keep:]}
            assert all(before[version] == rows for version, rows in known.items() if version in before)
            known = before
    newest = writer.rows()
    writer.clean_up(1)
    assert all_rows(writer) == {writer.versions()[-1]: newest}


if __name__ == "__main__":
    victim(*sys.argv[1:])
