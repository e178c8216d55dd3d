"""Writers that die, stall or fail at the worst moments: what was published stays, and nothing of theirs ever shows."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest

import penstock
from penstock.lance.commits import namespace_commit, writer_lease
from penstock.lance.commits.namespace_commit import NamespaceCommit
from penstock.lance.commits.writer_lease import WRITER
from penstock.lance.writing import fragment_write_job, row_writes
from support.lance_judges import by_pylance, client
from support.lance_writers import NAME, Writer, data_files, journals, stop
from support.processes import LONGEST, Child
from support.stalled import Stalled

LEASE = 0.4
FIRST = [(1, "US"), (2, "US"), (3, "CN"), (4, None)]
DEAD = [(100, "US"), (101, "CN"), (102, "new")]


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.setattr(writer_lease, "_LEASE", LEASE)
    made = Writer.create(tmp_path)
    made.append("a", FIRST[::2])
    made.append("b", FIRST[1::2])
    return made


def stalled(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], owner: Any, name: str, call: int = 1) -> Stalled:
    """One leaf is handled after the other, so that the n-th call is always the same."""
    monkeypatch.setattr(namespace_commit, "DATASETS_AT_ONCE", 1)
    return Stalled(monkeypatch, act, owner, name, call)


def append_foreign(leaf: str, *ids: int) -> None:
    table = pa.table({"id": pa.array(ids, pa.int64()), "batch": ["foreign"] * len(ids), "country": ["US"] * len(ids)})
    lance.write_dataset(table.cast(lance.dataset(leaf).schema), leaf, mode="append")


def ids_in(leaf: str) -> list[int]:
    return sorted(lance.dataset(leaf).to_table()["id"].to_pylist())


def victim(root: str, moment: str) -> None:
    """A process of its own, whose append stops on its way."""
    namespace_commit.DATASETS_AT_ONCE = 1
    match moment:
        case "writing":
            _stop_at(fragment_write_job, "record_files", 2)
        case "written":
            _stop_at(row_writes, "begin_commit")
        case "committing":
            _stop_at(NamespaceCommit, "commit_leaf", 3)
    Writer(root).append("dead", DEAD)
    stop()


def _stop_at(owner: Any, name: str, call: int = 1) -> None:
    original, calls = getattr(owner, name), count(1)

    def stopping(*arguments: Any, **named: Any) -> Any:
        if next(calls) == call:
            stop()
        return original(*arguments, **named)

    setattr(owner, name, stopping)


@pytest.mark.parametrize("moment", ["writing", "written", "committing", "published"])
def test_a_killed_append_leaves_what_was_published_and_the_next_writer_works(writer: Writer, moment: str) -> None:
    expected, files = writer.rows(), data_files(writer.root)
    leaves = sorted(by_pylance(writer.root, NAME))
    with Child.script(__file__, writer.root, moment) as child:
        child.is_ready()
        child.kill()
    assert len(data_files(writer.root)) == len(files) + (2 if moment == "writing" else 3)
    if moment == "published":
        expected += [(number, "dead", country) for number, country in DEAD]
        leaves = sorted([*leaves, f"{NAME}$country=new"])
    else:
        assert len(journals(writer.root)) == (moment == "writing")
    root = writer.manifest.state().entry(NAME)
    assert root is not None
    assert (WRITER in root.properties) == (moment == "committing")
    assert writer.rows() == expected
    assert sorted(by_pylance(writer.root, NAME)) == leaves
    began = time.monotonic()
    writer.append("next", [(200, "US"), (201, "new")])
    assert time.monotonic() - began > LEASE or WRITER not in root.properties
    expected = sorted([*expected, (200, "next", "US"), (201, "next", "new")])
    assert writer.rows() == expected
    writer.append("later", [(300, "CN")])
    assert writer.rows() == [*expected, (300, "later", "CN")]
    seen = [tuple(row.values()) for table in by_pylance(writer.root, NAME).values() for row in table.to_pylist()]
    assert sorted(seen) == writer.rows()


STATEMENTS: dict[str, Callable[[Writer], Any]] = {
    "append": lambda writer: writer.append("x", [(100, "US"), (101, "CN"), (102, "new")]),
    "overwrite": lambda writer: writer.overwrite("x", [(100, "US"), (102, "new")]),
    "delete": lambda writer: writer.delete("id in (1, 3)"),
    "compact": lambda writer: writer.compact(),
}
RESULTS = {"append": [1, 2, 3, 4, 100, 101, 102], "overwrite": [100, 102], "delete": [2, 4], "compact": [1, 2, 3, 4]}


@pytest.mark.parametrize("then", STATEMENTS)
@pytest.mark.parametrize("dead", STATEMENTS)
def test_a_statement_after_one_that_stopped_before_it_was_published(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, dead: str, then: str
) -> None:
    expected = writer.rows()
    late = stalled(monkeypatch, lambda: STATEMENTS[dead](writer), NamespaceCommit, "publish")
    assert writer.rows() == expected
    after_compaction = dead == "compact" and then in ("delete", "compact")
    if after_compaction:  # it could have been another program's
        with pytest.raises(penstock.ConflictError, match=r"adopt\(\)"):
            STATEMENTS[then](writer)
        assert writer.rows() == expected
        writer.adopt()
    version = STATEMENTS[then](writer)
    assert (version is None) == (after_compaction and then == "compact")
    assert writer.ids() == RESULTS[then]
    assert isinstance(late.goes_on(), penstock.ConflictError)
    assert writer.ids() == RESULTS[then]
    assert writer.append("y", [(500, "US"), (501, "CN")]) == writer.manifest.state().version
    assert writer.ids() == [*RESULTS[then], 500, 501]
    assert (
        sorted(number for table in by_pylance(writer.root, NAME).values() for number in table["id"].to_pylist())
        == writer.ids()
    )


def test_what_another_program_adds_after_a_dead_append_is_kept(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = writer.leaf("US")
    late = stalled(monkeypatch, lambda: writer.append("dead", DEAD), NamespaceCommit, "publish")
    append_foreign(leaf, 50)
    assert ids_in(leaf) == [1, 2, 50, 100]
    assert writer.ids() == [1, 2, 3, 4], "it shows with the next write"
    writer.append("next", [(200, "US")])
    assert writer.ids() == [1, 2, 3, 4, 50, 200]
    assert ids_in(leaf) == [1, 2, 50, 200]
    append_foreign(leaf, 51)
    assert isinstance(late.goes_on(), penstock.ConflictError)
    writer.adopt()
    assert writer.ids() == [1, 2, 3, 4, 50, 51, 200]


def test_what_another_program_adds_after_a_failed_append_is_kept(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed one has cleaned up after itself: that must not look like something unfinished."""
    leaf, files = writer.leaf("US"), data_files(writer.root)

    def failing(*_: Any, **__: Any) -> int:
        raise OSError("the disk is full")

    for statement in ("append", "delete", "overwrite"):
        with monkeypatch.context() as patch:
            patch.setattr(NamespaceCommit, "publish", failing)
            with pytest.raises(OSError, match="the disk is full"):
                STATEMENTS[statement](writer)
        assert writer.ids() == [1, 2, 3, 4]
        assert ids_in(leaf) == [1, 2]
        assert data_files(writer.root) == files
    append_foreign(leaf, 50)
    writer.append("next", [(200, "US")])
    assert writer.ids() == [1, 2, 3, 4, 50, 200]
    append_foreign(leaf, 51)
    with monkeypatch.context() as patch:
        patch.setattr(NamespaceCommit, "publish", failing)
        with pytest.raises(OSError, match="the disk is full"):
            writer.delete("id = 1")
    assert ids_in(leaf) == [1, 2, 50, 51, 200]
    writer.append("next", [(201, "US")])
    assert writer.ids() == [1, 2, 3, 4, 50, 51, 200, 201]


@pytest.mark.parametrize("dead", ["delete", "overwrite", "append"])
def test_what_cannot_be_told_apart_is_an_error_with_a_way_out(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    leaf, version = writer.leaf("US"), lance.dataset(writer.leaf("US")).version
    late = stalled(monkeypatch, lambda: STATEMENTS[dead](writer), NamespaceCommit, "publish")
    if dead == "append":
        lance.dataset(leaf).optimize.compact_files()  # the dead rows and others in one file
    else:
        append_foreign(leaf, 50)
    with pytest.raises(penstock.ConflictError, match=rf"country=US.*restore its version {version} with pylance"):
        writer.append("next", [(200, "US"), (201, "FR")])
    assert writer.ids() == [1, 2, 3, 4]
    lance.dataset(leaf, version=version).restore()
    writer.append("next", [(200, "US"), (201, "FR")])
    assert isinstance(late.goes_on(), penstock.ConflictError)
    assert writer.ids() == [1, 2, 3, 4, 200, 201]


def test_a_dead_append_to_another_programs_leaf_never_shows(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    state = writer.manifest.state()
    entry = state.entry(f"{NAME}$country=US")
    assert entry is not None
    writer.manifest.commit(state, [entry.with_properties({"lance.partitioning.read-version": None})])
    leaf = writer.leaf("US")
    append_foreign(leaf, 50)
    assert writer.ids() == [1, 2, 3, 4, 50]
    late = stalled(monkeypatch, lambda: writer.append("dead", DEAD), NamespaceCommit, "publish")
    assert writer.ids() == [1, 2, 3, 4, 50]
    writer.append("next", [(200, "US")])
    assert writer.ids() == [1, 2, 3, 4, 50, 200]
    assert isinstance(late.goes_on(), penstock.ConflictError)
    assert ids_in(leaf) == [1, 2, 50, 200]


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_slow_writer_that_commits_after_others(writer: Writer, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    late = stalled(monkeypatch, lambda: writer.append("slow", DEAD), NamespaceCommit, "commit_leaf", call)
    writer.append("next", [(200, "US"), (201, "new")])
    expected = writer.rows()
    assert isinstance(late.goes_on(), penstock.ConflictError)
    assert writer.rows() == expected
    writer.append("later", [(300, "US"), (301, "CN"), (302, "new")])
    assert writer.ids() == [1, 2, 3, 4, 200, 201, 300, 301, 302]


@pytest.mark.parametrize("statement", ["append", "delete", "compact"])
def test_a_slow_writer_that_commits_between_the_looks_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """The other has seen the leaf without its rows, and commits on top of them."""
    monkeypatch.setattr(writer_lease, "_LEASE", LEASE)
    writer = Writer.create(tmp_path)
    for number in (1, 2):
        writer.append("a", [(number, "US")])
    acts = {**STATEMENTS, "append": lambda writer: writer.append("x", [(200, "US")])}
    slow = stalled(monkeypatch, lambda: writer.append("slow", DEAD[:1]), NamespaceCommit, "commit_leaf")
    owner, name = (lance.optimize.Compaction, "commit") if statement == "compact" else (NamespaceCommit, "commit_leaf")
    other = stalled(monkeypatch, lambda: acts[statement](writer), owner, name)
    with monkeypatch.context() as patch:
        patch.setattr(NamespaceCommit, "roll_back", lambda self: None)  # it dies as soon as it has committed
        assert isinstance(slow.goes_on(), penstock.ConflictError)
    outcome = other.goes_on()
    assert isinstance(outcome, penstock.ConflictError)
    assert "came back meanwhile; run again" in str(outcome)
    assert writer.ids() == [1, 2]
    writer.append("next", [(300, "US")])
    assert writer.ids() == ids_in(writer.leaf("US")) == [1, 2, 300]


def test_a_slow_writer_that_heals_after_others(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes what others have published meanwhile for unfinished; they must not lose it."""
    leaf = writer.leaf("US")
    dead = stalled(monkeypatch, lambda: writer.append("dead", DEAD[:1]), NamespaceCommit, "publish")
    slow = stalled(monkeypatch, lambda: writer.append("slow", [(150, "US")]), NamespaceCommit, "base_dataset")
    writer.append("next", [(200, "US")])
    assert isinstance(slow.goes_on(), penstock.ConflictError)
    assert writer.ids() == [1, 2, 3, 4, 200]
    writer.append("later", [(300, "US")])
    assert writer.ids() == [1, 2, 3, 4, 200, 300]
    assert isinstance(dead.goes_on(), penstock.ConflictError)
    assert ids_in(leaf) == [1, 2, 200, 300]


def test_a_writer_that_takes_long_but_lives_is_waited_for(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    committing = NamespaceCommit.commit_leaf

    def slowly(self: NamespaceCommit, *arguments: Any, **named: Any) -> Any:
        time.sleep(LEASE)
        return committing(self, *arguments, **named)

    monkeypatch.setattr(writer_lease, "_LEASE", 3 * LEASE)  # half of what it takes, and far more than each step
    monkeypatch.setattr(NamespaceCommit, "commit_leaf", slowly)
    rows = [(100 + number, f"c{number}") for number in range(6)]
    late = stalled(monkeypatch, lambda: writer.append("slow", rows), NamespaceCommit, "for_each")
    other = threading.Thread(target=lambda: writer.append("next", [(200, "US")]))
    other.start()
    version = late.goes_on()
    other.join(LONGEST)
    assert isinstance(version, int)
    assert len(writer.ids(version)) == 10
    assert writer.ids() == [1, 2, 3, 4, *range(100, 106), 200]


def test_a_declared_leaf_shows_nothing_of_an_unfinished_write(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client(tmp_path).declare_table(DeclareTableRequest(id=[NAME, "country=new"]))
    before = writer.rows()
    late = stalled(monkeypatch, lambda: writer.append("slow", DEAD), NamespaceCommit, "publish")
    assert writer.rows() == before
    assert isinstance(late.goes_on(), int)
    assert len(writer.rows()) == len(before) + len(DEAD)


if __name__ == "__main__":
    victim(*sys.argv[1:])
