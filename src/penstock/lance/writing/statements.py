"""Statements that change a namespace: what the tasks have written becomes part of its leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from penstock.errors import ConflictError, InvalidError
from penstock.lance.commits.column_notes import entry_noting, is_noted
from penstock.lance.commits.commit import Turn, turn
from penstock.lance.format.definition import check_transform
from penstock.lance.format.field_ids import field_count
from penstock.lance.format.leaf_columns import leaf_schema
from penstock.lance.format.leaves import Leaf, Values, entries_for, leaves_of
from penstock.lance.format.manifest import Entry, Manifest
from penstock.lance.format.store import Store
from penstock.lance.reading.leaf_scan import Scan
from penstock.lance.writing.write_job import WriteJob, WrittenLeaf, new_write_id, run
from penstock.spark.column_assignment import assigned_rows
from penstock.spark.write_job import Distribution
from penstock.storage.filesystems import delete_file

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import FragmentMetadata

_THREADS = 8


@dataclass(frozen=True)
class Gathered:
    """All that the tasks have written for one leaf."""

    object_id: str
    values: Values
    location: str
    versions: frozenset[int | None]  # of the leaf, that the tasks made fragments for
    fragments: Sequence[FragmentMetadata]
    rows: int


def write_rows(
    manifest: Manifest,
    scan: Scan,
    frame: DataFrame,
    operation: str,
    distribution: Distribution,
    replaced: frozenset[str] = frozenset(),
    alone: bool = False,
) -> int:
    """Add rows to leaves; those in `replaced` lose the rows they had. With `alone`, so does every other leaf there is.

    The namespace's new version.
    """
    rows = _assigned(scan, frame)
    versions = {leaf.object_id: _version(scan, leaf) for leaf in scan.leaves if leaf.object_id in replaced}
    job = write_job(scan, replaced, alone)
    return add_rows(manifest, scan, job, run(rows, job, distribution, scan.columns), operation, versions, alone)


def write_job(scan: Scan, replaced: Container[str] = (), alone: bool = False) -> WriteJob:
    targets = {
        leaf.object_id: replace(leaf, version=None if alone or leaf.object_id in replaced else _version(scan, leaf))
        for leaf in scan.leaves
    }
    types = {number: column.type for number, column in scan.columns_by_id.items()}
    return WriteJob(scan.store, scan.name, scan.definition, types, targets, new_write_id())


def add_rows(
    manifest: Manifest,
    scan: Scan,
    job: WriteJob,
    written: Sequence[WrittenLeaf],
    operation: str,
    replaced: Mapping[str, int | None] = {},
    alone: bool = False,
) -> int:
    """Make what a job's tasks have written part of the leaves; of those replaced, the version is given that was read.

    The namespace's new version.
    """
    gathered = _gathered(written)
    with _or_removed(manifest, scan, gathered), turn(manifest, scan.name, scan.definition, job.write_id) as mine:
        mine.pin([*(one.object_id for one in gathered), *replaced])
        for object_id, version in replaced.items():
            _check_unchanged(mine, object_id, version)
        there = {leaf.object_id: leaf for leaf in _leaves(mine)}
        gone = (set(there) if alone else set(replaced) & set(there)) - {one.object_id for one in gathered}
        changed = each(mine, gathered, lambda one: _added(mine, scan, one, alone or one.object_id in replaced))
        summary = {"rows": sum(one.rows for one in gathered), "leaves": len(gathered), "removed leaves": len(gone)}
        return mine.publish([entry for entries in changed for entry in entries], gone, operation, **summary)


def _assigned(scan: Scan, frame: DataFrame) -> DataFrame:
    """The rows with the namespace's columns; those that are not given are NULL."""
    for field in scan.definition.fields:
        for number in field.sources:
            check_transform(field.transform, scan.columns_by_id[number])
    given = {name.lower() for name in frame.columns}
    for item in scan.definition.schema:
        if not item.nullable and item.name.lower() not in given:
            raise InvalidError(
                f"namespace {scan.name}: column {item.name!r} takes no NULL, and the DataFrame does not give it"
            )
    return assigned_rows(frame, scan.columns, scan.name, by_name=True)


def _version(scan: Scan, leaf: Leaf) -> int | None:
    """The version of a leaf that fragments are made for; None where it has none yet."""
    if leaf.version is not None:
        return leaf.version or None
    dataset = scan.dataset(leaf)
    return None if dataset is None else dataset.version


def _gathered(written: Sequence[WrittenLeaf]) -> list[Gathered]:
    from lance.fragment import FragmentMetadata

    by_leaf: dict[str, list[WrittenLeaf]] = defaultdict(list)
    for one in written:
        by_leaf[one.object_id].append(one)
    return [
        Gathered(
            object_id,
            parts[0].values,
            parts[0].location,
            frozenset(part.version for part in parts),
            [FragmentMetadata.from_json(text) for part in parts for text in part.fragments],
            sum(part.rows for part in parts),
        )
        for object_id, parts in sorted(by_leaf.items())
    ]


def _leaves(mine: Turn) -> list[Leaf]:
    found = (mine.leaf(entry.object_id) for entry in mine.state.below(mine.name) if entry.kind == "table")
    return [leaf for leaf in found if leaf is not None]


def each(mine: Turn, items: Sequence[Any], act: Callable[[Any], Any]) -> list[Any]:
    """Act on many leaves at once, and show meanwhile that this writer lives."""
    with ThreadPoolExecutor(_THREADS) as pool:
        running = [pool.submit(act, item) for item in items]
        try:
            for one in as_completed(running):
                one.result()
                mine.beat()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [one.result() for one in running]


def _added(mine: Turn, scan: Scan, one: Gathered, anew: bool) -> list[Entry]:
    """The fragments as part of their leaf: its entry, and those of new namespaces around it."""
    from lance import LanceOperation

    leaf = mine.leaf(one.object_id)
    location = one.location
    if one.versions != {None} if leaf is None else leaf.location != location:
        raise ConflictError(f"leaf {one.object_id} was removed or made anew by another writer meanwhile; run again")
    base = mine.store.find(location) if leaf is None else mine.base(leaf)
    if leaf is None or leaf.is_empty or base is None or anew:
        done = mine.commit(location, base, LanceOperation.Overwrite(leaf_schema(scan.definition), list(one.fragments)))
    else:
        for version in one.versions:
            _check_shape(mine, scan, one, version, base)
        done = mine.commit(location, base, LanceOperation.Append(list(one.fragments)))
    return _entries(mine, scan, one, done)


def _entries(mine: Turn, scan: Scan, one: Gathered, done: LanceDataset) -> list[Entry]:
    *namespaces, leaf = entries_for(scan.name, scan.definition.fields, one.values, one.location)
    new = [entry for entry in namespaces if mine.state.entry(entry.object_id) is None]
    return [*new, mine.shown(mine.state.entry(one.object_id) or leaf, done)]


def _check_unchanged(mine: Turn, object_id: str, version: int | None) -> None:
    """Refuse to replace rows that were not read."""
    leaf = mine.leaf(object_id)
    base = None if leaf is None else mine.base(leaf)
    same = version is None if leaf is None or base is None else version and mine.unchanged(leaf, base, version)
    if not same:
        raise ConflictError(
            f"leaf {object_id} was written to by another writer meanwhile; run again, or adopt() first if that was"
            " another program"
        )


def _check_shape(mine: Turn, scan: Scan, one: Gathered, version: int | None, base: LanceDataset) -> None:
    """Refuse fragments that were made for other columns than the leaf has by now."""
    if version is not None:
        made_for = mine.store.dataset(one.location, version)
        same = made_for.schema.equals(base.schema, check_metadata=True) and made_for.max_field_id == base.max_field_id
    else:
        expected = leaf_schema(scan.definition)
        same = base.schema.equals(expected, check_metadata=True) and base.max_field_id == field_count(expected) - 1
    if not same:
        raise ConflictError(f"the columns of leaf {one.object_id} were changed by another writer meanwhile; run again")


@contextmanager
def _or_removed(manifest: Manifest, scan: Scan, gathered: Sequence[Gathered]) -> Iterator[None]:
    """Remove the files of fragments that do not become part of their leaf."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # what failed first is the news
            shown = {leaf.location: leaf for leaf in leaves_of(manifest.state(), scan.name, scan.definition.fields)}
            for one in gathered:
                _remove_unused(scan.store, one, shown.get(one.location))
        raise


def _remove_unused(store: Store, one: Gathered, leaf: Leaf | None) -> None:
    """Remove the files that neither readers of the namespace nor of the leaf alone can need."""
    newest = None if leaf is None else store.find(one.location)
    seen = store.dataset(one.location, leaf.version) if leaf is not None and leaf.version else None
    fragments = [fragment for dataset in (newest, seen) if dataset for fragment in dataset.get_fragments()]
    used = {file.path for fragment in fragments for file in fragment.metadata.files}
    for path in {file.path for fragment in one.fragments for file in fragment.files} - used:
        delete_file(store.uri(f"{one.location}/data/{path}"))


def change_definition(manifest: Manifest, scan: Scan, properties: Mapping[str, str], operation: str, what: str) -> int:
    """Change what the root says of the namespace; no leaf is touched. Of those that go by the names it is noted what
    these have meant so far."""
    with turn(manifest, scan.name, scan.definition, new_write_id()) as mine:
        root = mine.state.entry(scan.name)
        assert root is not None  # or the turn would not have begun
        tables = [(entry, mine.leaf(entry.object_id)) for entry in mine.state.below(scan.name) if entry.kind == "table"]
        others = [(entry, leaf) for entry, leaf in tables if leaf is not None and not is_noted(entry, leaf)]
        noted = each(mine, others, lambda one: entry_noting(scan.definition, mine.store, *one))
        return mine.publish([root.with_properties(properties), *noted], [], operation, column=what)
