"""Many writers of one namespace at once: every row is there in the end, once, and readers see whole writes only."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, ListNamespacesRequest
from pyspark.sql import SparkSession

import penstock
import penstock.lance
from penstock.lance.commits.namespace_commit import NamespaceCommit
from penstock.lance.writing.row_writes import commit_rows, new_write_job
from penstock.lance.writing.schema_evolution import commit_definition, rename_column
from support.lance_judges import by_pylance, check_manifest, client
from support.lance_writers import NAME, SCHEMA, Writer, data_files, journals
from support.processes import LONGEST, READY, Child
from support.small_sessions import SMALL

WRITERS, APPENDS = 4, 3
SHARED = ("US", "a/b=$%", None)
ROW = "id long, batch string, country string"


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer.create(tmp_path)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Act in threads of their own; what each returned, or the error of ours that it raised."""

    def outcome(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except penstock.PenstockError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return [job.result(LONGEST) for job in [pool.submit(outcome, act) for act in acts]]


def operations(writer: Writer) -> list[str]:
    return [change.properties["penstock.operation"] for change in writer.manifest.changes()]


def places(number: int) -> list[str | None]:
    """Leaves in common, and one that is each writer's own."""
    return [*SHARED, f"of {number}"]


def rows_of(number: int, append: int) -> list[tuple[int, str | None]]:
    """Of one append of one writer: ids that no other has, and countries."""
    first = (number * APPENDS + append) * len(places(number))
    return [(first + place, country) for place, country in enumerate(places(number))]


def test_a_leaf_that_another_makes_before_our_files_are_written(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance refuses to create files for a dataset that is there by now."""
    write, modes = lance.fragment.write_fragments, []

    def late(*given: Any, **options: Any) -> Any:
        modes.append(options["mode"])
        if len(modes) == 1:
            monkeypatch.setattr(lance.fragment, "write_fragments", write)
            writer.append("other", [(2, "US")])
        return write(*given, **options)

    monkeypatch.setattr(lance.fragment, "write_fragments", late)
    writer.append("mine", [(1, "US")])
    assert modes == ["create", "overwrite"]
    assert writer.rows() == [(1, "mine", "US"), (2, "other", "US")]
    assert operations(writer).count("append") == 2


def appender(root: str, number: int, with_spark: bool) -> None:
    """A process of its own, perhaps with a Spark of its own, which begins when told to."""
    acts: list[Callable[[], int | None]] = []
    spark = penstock.session("local[1]", **SMALL) if with_spark else None
    for i in range(APPENDS):
        rows, batch = rows_of(number, i), f"{number}.{i}"
        if spark is None:
            acts.append(partial(Writer(root).append, batch, rows))
        else:
            frame = spark.createDataFrame([(id, batch, country) for id, country in rows], ROW).coalesce(1)
            acts.append(partial(penstock.lance.open(root, NAME, spark=spark).append, frame))
    print(READY, flush=True)
    sys.stdin.readline()
    print(json.dumps([act() for act in acts]), flush=True)


class Watcher:
    """Reads the namespace before, beside and after other writers: writes that it sees in part are kept."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._began, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.torn: list[Counter[str]] = []
        self.failed: list[BaseException] = []
        self.seen: set[int] = set()

    def __enter__(self) -> Watcher:
        self._thread.start()
        assert self._began.wait(LONGEST)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(LONGEST)

    def _watch(self) -> None:
        over = False
        while not over:
            over = self._over.is_set()  # and one more time
            try:
                batches = Counter(batch for _, batch, _ in self._writer.rows())
            except BaseException as error:
                self.failed.append(error)
                return
            finally:
                self._began.set()
            self.seen.add(len(batches))
            if set(batches.values()) - {len(SHARED) + 1}:
                self.torn.append(batches)
            time.sleep(0.02)


@pytest.mark.parametrize("own", ["alone", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])])
def test_four_processes_append_at_once(writer: Writer, own: str) -> None:
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child.script(__file__, own, writer.root, str(number))) for number in range(WRITERS)
        ]
        for child in children:
            child.is_ready()
        with Watcher(writer) as watcher:
            for child in children:
                child.go()
            told = [child.told() for child in children]
    assert not watcher.failed
    assert not watcher.torn
    assert len(watcher.seen) > 2, "the reader did not read meanwhile"
    made = [version for text in told for version in json.loads(text)]
    batches = WRITERS * APPENDS
    ids = list(range(batches * len(places(0))))
    assert writer.ids() == ids
    assert operations(writer) == ["create", *["append"] * batches]
    assert sorted(made) == [change.version for change in writer.manifest.changes()][1:]
    for number, version in enumerate(sorted(made), 1):
        assert len(writer.ids(version)) == number * len(places(0))
    entries = [entry.object_id for entry in writer.manifest.state().below(NAME)]
    assert len(entries) == len(set(entries)) == len(SHARED) + WRITERS
    leaves = by_pylance(writer.root, NAME)
    assert sorted(leaves) == sorted(entries)
    assert sorted(row for table in leaves.values() for row in table["id"].to_pylist()) == ids
    assert journals(writer.root) == []


def test_writers_that_make_the_same_leaf_at_once(writer: Writer) -> None:
    scan = writer.scan()
    staged = [writer.written(scan, f"w{number}", [(number, "new"), (10 + number, None)]) for number in range(5)]
    outcomes = at_once(*(lambda one=one: writer.commit(scan, *one) for one in staged))
    assert sorted(outcomes) == [change.version for change in writer.manifest.changes()][1:]
    assert writer.ids() == [*range(5), *range(10, 15)]
    assert [entry.kind for entry in writer.manifest.state().below(NAME)] == ["table", "table"]
    assert writer.leaf("new") == str(next(Path(writer.root).glob("*=new")))


def test_writers_that_make_leaves_below_the_same_parents_at_once(tmp_path: Path) -> None:
    writer = Writer.create(tmp_path, "bucket(4, id)", "batch")
    numbers = range(12)
    acts = [lambda batch=batch: writer.append(batch, [(n, "US") for n in numbers]) for batch in "abc"]  # type: ignore[misc]
    assert all(isinstance(one, int) for one in at_once(*acts))
    check_manifest(tmp_path)
    assert writer.ids() == sorted([*numbers] * 3)


def test_a_client_that_changes_the_manifest_meanwhile(writer: Writer) -> None:
    namespaces = client(writer.root)
    namespaces.create_namespace(CreateNamespaceRequest(id=["other"]))

    def insist(act: Callable[[], object]) -> None:
        """The client gives up when it is outrun."""
        for _ in range(50):
            try:
                act()
                return
            except OSError as error:
                refused = str(error)
        raise AssertionError(refused)

    def by_the_client() -> list[str]:
        names = [f"n{number}" for number in range(12)]
        for name in names:
            insist(lambda name=name: namespaces.create_namespace(CreateNamespaceRequest(id=[name])))
            insist(lambda name=name: namespaces.declare_table(DeclareTableRequest(id=["other", name])))
        return names

    def by_us(number: int) -> list[int]:
        return [writer.append(f"{number}", [(number * 100 + i, "US"), (number * 100 + 50 + i, "CN")]) for i in range(6)]

    made, *versions = at_once(by_the_client, lambda: by_us(1), lambda: by_us(2))
    assert operations(writer) == ["create", *["append"] * 12]
    assert (
        sorted(version for ones in versions for version in ones)
        == [change.version for change in writer.manifest.changes()][1:]
    )
    assert writer.ids() == sorted(n * 100 + k + i for n in (1, 2) for k in (0, 50) for i in range(6))
    listed = namespaces.list_namespaces(ListNamespacesRequest(id=[])).namespaces
    assert sorted(listed) == sorted([NAME, "other", *made])
    entries = [entry.object_id for entry in writer.manifest.state().below("other")]
    assert sorted(entries) == sorted(f"other${name}" for name in made)


def test_a_client_that_makes_the_same_leaf_meanwhile(writer: Writer) -> None:
    """Its place is another one, where the files of ours are not."""
    scan = writer.scan()
    staged = writer.written(scan, "a", [(1, "US"), (2, "CN")])
    client(writer.root).declare_table(DeclareTableRequest(id=[NAME, "country=US"]))
    with pytest.raises(penstock.ConflictError, match=r"country=US.*run again"):
        writer.commit(scan, *staged)
    assert (writer.rows(), data_files(writer.root)) == ([], [])
    writer.append("a", [(1, "US"), (2, "CN")])
    assert writer.ids() == [1, 2]
    assert len(by_pylance(writer.root, NAME)["events$country=US"]) == 1


def test_a_client_that_makes_the_same_leaf_at_the_last_moment(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = writer.scan()
    staged = writer.written(scan, "a", [(1, "US"), (2, "CN")])
    publish = NamespaceCommit.publish

    def late(self: NamespaceCommit, *arguments: Any, **summary: object) -> int:
        client(writer.root).declare_table(DeclareTableRequest(id=[NAME, "country=US"]))
        return publish(self, *arguments, **summary)

    monkeypatch.setattr(NamespaceCommit, "publish", late)
    with pytest.raises(penstock.ConflictError, match=r"country=US was changed by another program.*run again"):
        writer.commit(scan, *staged)
    monkeypatch.undo()
    assert (writer.rows(), data_files(writer.root)) == ([], [])
    writer.append("a", [(1, "US"), (2, "CN")])
    assert writer.ids() == [1, 2]


def test_a_definition_that_changes_meanwhile(writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    files, scan = data_files(writer.root), writer.scan()
    append = writer.written(scan, "b", [(2, "US"), (3, "new")])
    delete = writer.marked(scan, "id = 1")
    renamed = rename_column(scan.definition, "batch", "lot")
    commit_definition(writer.manifest, scan, renamed, "rename column", "batch")
    version = writer.manifest.state().version
    with pytest.raises(penstock.ConflictError, match="changed by another writer meanwhile"):
        writer.commit(scan, *append)
    with pytest.raises(penstock.ConflictError, match="changed by another writer meanwhile"):
        writer.remove(scan, delete)
    assert writer.manifest.state().version == version
    assert data_files(writer.root) == files
    assert (writer.ids(), journals(writer.root)) == ([1], [])


def test_delete_and_append_at_once(writer: Writer) -> None:
    writer.append("a", [(1, "US"), (2, "US"), (3, "CN")])
    scan = writer.scan()
    append, delete = writer.written(scan, "b", [(4, "US"), (5, "FR")]), writer.marked(scan, "id in (1, 3)")
    outcomes = at_once(lambda: writer.commit(scan, *append), lambda: writer.remove(scan, delete))
    assert all(isinstance(outcome, int) for outcome in outcomes), outcomes
    assert writer.ids() == [2, 4, 5]
    for version in outcomes:
        assert len(writer.ids(version)) == (3 if version == max(outcomes) else 1 if version == outcomes[1] else 5)


def test_the_same_rows_deleted_twice_at_once(writer: Writer) -> None:
    writer.append("a", [(1, "US"), (2, "US"), (3, "CN")])
    scan = writer.scan()
    twice = [writer.marked(scan, "id = 1"), writer.marked(scan, "id <= 2")]
    outcomes = at_once(*(lambda one=one: writer.remove(scan, one) for one in twice))
    [lost] = [outcome for outcome in outcomes if not isinstance(outcome, int)]
    assert isinstance(lost, penstock.ConflictError)
    assert writer.ids() == ([2, 3] if outcomes[1] is lost else [3])
    assert writer.delete("id <= 2") is not None if outcomes[1] is lost else writer.delete("id = 1") is None
    assert writer.ids() in ([3], [2, 3])


@pytest.mark.parametrize("first", ["append", "compact"])
def test_compaction_beside_appends_and_deletes(writer: Writer, first: str) -> None:
    for i in range(4):
        writer.append(f"{i}", [(i, "US"), (10 + i, None)])
    scan = writer.scan()
    append, rewritten = writer.written(scan, "b", [(4, "US"), (5, "FR")]), writer.rewritten(scan)
    delete = writer.marked(scan, "id = 2")
    acts = [lambda: writer.commit(scan, *append), lambda: writer.show(scan, rewritten)]
    for act in acts if first == "append" else reversed(acts):
        act()
    expected = [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]
    assert writer.ids() == expected
    with pytest.raises(penstock.ConflictError, match="run again"):
        writer.remove(scan, delete)
    assert writer.ids() == expected
    writer.delete("id = 2")
    assert writer.ids() == [0, 1, 3, 4, 5, 10, 11, 12, 13]
    assert len(lance.dataset(writer.leaf("US")).get_fragments()) == 2


def test_rows_appended_while_a_leaf_is_replaced_are_not_lost(writer: Writer) -> None:
    writer.append("a", [(1, "US"), (2, "CN")])
    scan = writer.scan()
    replaced = {leaf.object_id: leaf.version for leaf in scan.leaves if leaf.object_id.endswith("US")}
    job = new_write_job(scan, replaced)
    staged = writer.written(scan, "aligned", [(1, "US")], job)
    writer.append("b", [(3, "US")])
    with pytest.raises(penstock.ConflictError, match=r"country=US was written to by another writer.*run again"):
        commit_rows(writer.manifest, scan, *staged, "align", replaced)
    assert writer.rows() == [(1, "a", "US"), (2, "a", "CN"), (3, "b", "US")]


def foreign_leaf(writer: Writer, ids: list[int], schema: pa.Schema = SCHEMA) -> str:
    """A leaf that the client and plain pylance made, which is read as it is."""
    table = pa.table([ids, ["foreign"] * len(ids), ["XX"] * len(ids)], schema.names).cast(schema)
    lance.write_dataset(table, namespace_client=client(writer.root), table_id=[NAME, "country=XX"], mode="create")
    return writer.leaf("XX")


def test_a_foreign_leaf_shows_nothing_before_the_rest(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = foreign_leaf(writer, [1])
    seen = []
    publish = NamespaceCommit.publish

    def watched(self: NamespaceCommit, *arguments: Any, **summary: object) -> int:
        seen.append(writer.ids())
        return publish(self, *arguments, **summary)

    def failing(self: NamespaceCommit, *arguments: Any, **summary: object) -> int:
        watched_ids = writer.ids()
        raise penstock.ConflictError(f"{watched_ids}")

    monkeypatch.setattr(NamespaceCommit, "publish", failing)
    with pytest.raises(penstock.ConflictError, match=r"\[1\]"):
        writer.append("a", [(2, "XX"), (3, "US")])
    assert (writer.ids(), len(data_files(writer.root))) == ([1], 1)
    monkeypatch.setattr(NamespaceCommit, "publish", watched)
    lance.write_dataset(lance.dataset(leaf).to_table(filter="id = 1"), leaf, mode="append")
    assert writer.ids() == [1, 1], "it is another program's still"
    writer.append("a", [(2, "XX"), (3, "US")])
    assert (seen, writer.ids()) == ([[1, 1]], [1, 1, 2, 3])
    assert sorted(lance.dataset(leaf).to_table()["id"].to_pylist()) == [1, 1, 2]


def test_a_leaf_that_another_program_overwrites_meanwhile(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append("a", [(1, "US"), (2, "CN")])
    leaf = writer.leaf("US")
    base = NamespaceCommit.base_dataset

    def outrun(self: NamespaceCommit, one: Any) -> Any:
        found = base(self, one)
        if one.object_id.endswith("US"):
            table = pa.table({"id": pa.array([9], pa.int64()), "batch": ["foreign"], "country": ["US"]})
            lance.write_dataset(table, leaf, mode="overwrite")
        return found

    monkeypatch.setattr(NamespaceCommit, "base_dataset", outrun)
    with pytest.raises(penstock.ConflictError, match="run again"):
        writer.append("b", [(3, "US"), (4, "CN")])
    monkeypatch.undo()
    assert writer.ids() == [1, 2]
    assert lance.dataset(leaf).to_table()["id"].to_pylist() == [9]


@pytest.mark.slow
def test_values_that_cannot_be_written_leave_nothing(spark: SparkSession, writer: Writer) -> None:
    writer.append("a", [(1, "US")])
    narrow = pa.schema([("id", pa.int32()), ("batch", pa.string()), ("country", pa.string())])
    foreign_leaf(writer, [2], narrow)
    files, version, rows = data_files(writer.root), writer.manifest.state().version, writer.rows()
    places = ("US", "XX", "new")
    bad: dict[str, list[int | None]] = {"id.* NULL": [3, 4, 5, 6, 7, None], "country=XX": [3, 2**40, 5, 6, 7, 8]}
    namespace = penstock.lance.open(writer.root, NAME, spark=spark)
    for message, ids in bad.items():
        given = [(number, "b", places[place % 3]) for place, number in enumerate(ids)]
        frame = spark.createDataFrame(spark.sparkContext.parallelize(given, 3), "id long, batch string, country string")
        with pytest.raises(penstock.InvalidError, match=message):
            namespace.append(frame, distribution="none")
        assert (data_files(writer.root), journals(writer.root)) == (files, [])
        assert (writer.manifest.state().version, writer.rows()) == (version, rows)


if __name__ == "__main__":
    appender(sys.argv[2], int(sys.argv[3]), with_spark=sys.argv[1] == "spark")
