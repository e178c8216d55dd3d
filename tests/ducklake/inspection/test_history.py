"""What snapshots did, beside the extension's snapshots() and table_changes()."""

from __future__ import annotations

import pytest

from penstock.ducklake.inspection.history import snapshot_summaries, table_history
from support.catalogs import Catalog
from support.inspection import opened, shown, table
from support.reference import Reference, identifier

CHANGES = (
    "CREATE TABLE t (i BIGINT, s VARCHAR)",
    "INSERT INTO t SELECT i, 'x' FROM range(100) r(i)",
    "INSERT INTO t VALUES (1000, 'kept'), (1001, 'kept')",
    "DELETE FROM t WHERE i IN (1, 2, 1000)",  # in the catalog
    "DELETE FROM t WHERE i BETWEEN 10 AND 60",  # by a delete file
    "INSERT INTO t SELECT i, 'y' FROM range(200, 250) r(i)",
    "UPDATE t SET s = 'changed' WHERE i BETWEEN 210 AND 240",
    "CREATE TABLE other AS FROM range(20)",
    "DELETE FROM t WHERE i BETWEEN 200 AND 204",
    "DELETE FROM t WHERE i >= 200 AND i < 300 AND s = 'y'",  # the rest of a file
    "ALTER TABLE t RENAME TO u",
    "INSERT INTO u SELECT i, 'z' FROM range(500, 530) r(i)",
    "INSERT INTO u SELECT i, 'z' FROM range(600, 640) r(i)",
)


def changed(reference: Reference, name: str, snapshot: int) -> tuple[int, int]:
    """The rows that a snapshot added and removed, by the extension's change feed."""
    [row] = reference.rows(
        f"""SELECT count(*) FILTER (change_type IN ('insert', 'update_postimage')),
                   count(*) FILTER (change_type IN ('delete', 'update_preimage'))
            FROM ducklake_table_changes('lk', 'main', '{name}', {snapshot}, {snapshot})"""
    )
    return (row[0], row[1])


def test_snapshots_and_their_changes(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute(*CHANGES)
        told = reference.records("FROM ducklake_snapshots('lk') ORDER BY snapshot_id DESC")
        feed = {
            row["snapshot_id"]: changed(reference, "t" if row["snapshot_id"] < 11 else "u", row["snapshot_id"])
            for row in told[:-1]
        }
    with opened(catalog) as lake:
        page = snapshot_summaries(lake.database)
        assert page.total == len(told) == len(page.items)
        assert [(item.snapshot.id, item.changes) for item in page.items] == [
            (row["snapshot_id"], row["changes"]) for row in told
        ]
        said = {item.snapshot.id: item.actions for item in page.items}
        assert said[1] == ("created table main.t",)
        assert said[8] == ("created table main.other", "inserted into main.other")
        assert said[10] == ("deleted from main.t",)
        assert said[11] == ("renamed a table to main.u",)
        assert said[12] == ("inserted into main.u",)

        info = table(shown(lake), "u")
        touching = [item.snapshot.id for item in page.items if info.id in item.tables]
        assert touching == [13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1]
        history = table_history(lake.database, info)
        assert [item.snapshot.id for item in history.items] == touching
        assert all(item.actions for item in history.items)
        for item in history.items:
            added, removed = feed[item.snapshot.id]
            assert item.rows_added == added, item
            assert item.rows_removed in (removed, None), item
        # Where a file lost rows more than once, one delete file tells it all.
        assert {item.snapshot.id for item in history.items if item.rows_removed is None} == {7, 9, 10}
        assert {item.snapshot.id: (item.files_added, item.files_removed) for item in history.items}[6] == (1, 0)

        some = snapshot_summaries(lake.database, limit=4, before=12, table=info)
        assert ([item.snapshot.id for item in some.items], some.total, some.offset) == ([11, 10, 9, 7], 12, 2)
        last = snapshot_summaries(lake.database, limit=4, before=2)
        assert ([item.snapshot.id for item in last.items], last.total, last.offset) == ([1, 0], 14, 12)

        # To those who look at the lake as it was, the snapshots after that are none.
        then = snapshot_summaries(lake.database, limit=2, newest=5)
        assert ([item.snapshot.id for item in then.items], then.total, then.offset) == ([5, 4], 6, 0)
        more = snapshot_summaries(lake.database, before=4, newest=5)
        assert ([item.snapshot.id for item in more.items], more.total, more.offset) == ([3, 2, 1, 0], 6, 2)
        changes = table_history(lake.database, info, newest=5, limit=2, before=5)
        assert ([item.snapshot.id for item in changes.items], changes.total, changes.offset) == ([4, 3], 5, 1)


@pytest.mark.parametrize(
    "verb", ["CALL ducklake_merge_adjacent_files('lk')", "CALL ducklake_flush_inlined_data('lk')", "CHECKPOINT"]
)
def test_maintenance_neither_adds_nor_removes_rows(file_catalog: Catalog, verb: str) -> None:
    with file_catalog.build() as reference:
        reference.execute(*CHANGES, verb)
        newest = reference.value("SELECT max(snapshot_id) FROM ducklake_snapshots('lk')")
        feed = {version: changed(reference, "u", version) for version in range(11, newest + 1)}
    with opened(file_catalog) as lake:
        history = table_history(lake.database, table(shown(lake), "u")).items
        for item in history:
            added, removed = feed.get(item.snapshot.id, (item.rows_added, item.rows_removed))
            assert item.rows_added in (added, None), item
            assert item.rows_removed in (removed, None), item
        assert (history[0].rows_added, history[0].rows_removed) == (0, 0)


def test_names_that_look_like_changes(file_catalog: Catalog) -> None:
    hostile = 'a:2,deleted_from_table:2,"b'
    with file_catalog.build() as reference:
        reference.execute(
            f"CREATE SCHEMA {identifier(hostile)}",
            "CREATE TABLE t AS FROM range(3)",
            f"CREATE TABLE {identifier(hostile)}.{identifier(hostile)} (i INTEGER)",
            "DROP TABLE t",
            f"DROP TABLE {identifier(hostile)}.{identifier(hostile)}",
        )
    with opened(file_catalog) as lake:
        info = table(shown(lake, 2), "t")
        assert info.id == 2
        assert [item.snapshot.id for item in table_history(lake.database, info).items] == [4, 2]
        newest = snapshot_summaries(lake.database, limit=3).items
        assert [item.actions for item in newest] == [
            (f"dropped table {hostile}.{hostile}",),
            ("dropped table main.t",),
            (f"created table {hostile}.{hostile}",),
        ]
