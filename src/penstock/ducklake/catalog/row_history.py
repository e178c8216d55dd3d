"""Looks up which snapshots changed a table's rows, and about how many under which row ids."""

from __future__ import annotations

from penstock.ducklake.catalog.commits.conflicts import DELETED, INSERTED
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_rows import inlined_delete_table, inlined_tables
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.snapshot_changes import done_to

# (first row id, last row id, rows)
IdSpan = tuple[int, int, int]


def changing_snapshots(database: Database, table_id: int, after: int, until: int, *, deletes: bool) -> dict[int, bool]:
    """The snapshots that there are in a span, each with whether it inserted rows, or also deleted some."""
    kinds = {*INSERTED, *(DELETED if deletes else ())}
    sql = """SELECT s.snapshot_id, c.changes_made FROM ducklake_snapshot s
             LEFT JOIN ducklake_snapshot_changes c ON c.snapshot_id = s.snapshot_id
             WHERE s.snapshot_id > ? AND s.snapshot_id <= ? ORDER BY 1"""
    rows = database.query(sql, [after, until])
    return {snapshot: bool(done_to(table_id, changes) & kinds) for snapshot, changes in rows}


def counting_snapshots(database: Database, table_id: int, until: int) -> tuple[tuple[int, int], ...]:
    """The spans of snapshots that did not delete from a table, so that their files count row ids from `row_id_start`.

    Of snapshots that were expired nobody knows it.
    """
    sql = """SELECT s.snapshot_id, c.changes_made FROM ducklake_snapshot s
             JOIN ducklake_snapshot_changes c ON c.snapshot_id = s.snapshot_id WHERE s.snapshot_id <= ? ORDER BY 1"""
    spans: list[tuple[int, int]] = []
    for snapshot, changes in database.query(sql, [until]):
        if done_to(table_id, changes) & {*DELETED}:
            continue
        first = spans.pop()[0] if spans and spans[-1][1] == snapshot - 1 else snapshot
        spans.append((first, snapshot))
    return tuple(spans)


def present_snapshots(database: Database, first: int, last: int) -> set[int]:
    """The numbers of the snapshots of a span that are not expired."""
    sql = "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id BETWEEN ? AND ?"
    return {number for (number,) in database.query(sql, [first, last])}


def shown_spans(database: Database, table_id: int, snapshot: int) -> list[IdSpan]:
    """About the rows that a snapshot shows."""
    visible = At(snapshot).visible()
    files = _file_spans(database, table_id, f"table_id = {table_id} AND {visible}")
    return files + _inlined_spans(database, table_id, visible)


def changed_spans(database: Database, table_id: int, snapshot: int, *, deletes: bool) -> list[IdSpan]:
    """About the rows that a snapshot inserted, and deleted if that is asked for."""
    own = f"table_id = {table_id} AND partial_max IS NULL AND begin_snapshot = {snapshot}"
    part = f"table_id = {table_id} AND partial_max >= {snapshot} AND begin_snapshot <= {snapshot}"
    texts = database.query("SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id = ?", [snapshot])
    counts = bool(texts) and not done_to(table_id, texts[0][0]) & {*DELETED}
    found = _file_spans(database, table_id, own, counts=counts)
    found += _file_spans(database, table_id, part, snapshot=snapshot)
    found += _inlined_spans(database, table_id, f"begin_snapshot = {snapshot}")
    if deletes:
        ended = f"end_snapshot = {snapshot}"
        found += _file_spans(database, table_id, f"table_id = {table_id} AND {ended}")
        found += _inlined_spans(database, table_id, ended)
        found += _deleted_spans(database, table_id, snapshot)
    return found


def _file_spans(
    database: Database, table_id: int, where: str, *, snapshot: int | None = None, counts: bool = True
) -> list[IdSpan]:
    """The rows of data files; of one that holds those of many snapshots, as if each had as many.

    `counts` tells whether row ids are counted from `row_id_start`, where there is one.
    """
    sql = f"""SELECT row_id_start, record_count, begin_snapshot, partial_max FROM ducklake_data_file WHERE {where}
              ORDER BY row_id_start"""
    spans: list[IdSpan] = []
    strewn = 0
    for start, count, begin, last in database.query(sql):
        rows = count if snapshot is None or last is None else -(-count // (last - begin + 1))
        if start is None or not count or not counts:
            strewn += rows
        else:
            spans.append((start, start + count - 1, rows))
    return spans + _anywhere(database, table_id, strewn)


def _inlined_spans(database: Database, table_id: int, where: str) -> list[IdSpan]:
    found = []
    for name, _ in inlined_tables(database, table_id):
        sql = f"SELECT min(row_id), max(row_id), count(*) FROM {database.identifier(name)} WHERE {where}"
        [(first, last, rows)] = database.query(sql)
        if rows:
            found.append((int(first), int(last), int(rows)))
    return found


def _deleted_spans(database: Database, table_id: int, snapshot: int) -> list[IdSpan]:
    sql = "SELECT sum(delete_count) FROM ducklake_delete_file WHERE table_id = ? AND begin_snapshot = ?"
    rows = int(database.value(sql, [table_id, snapshot]) or 0)
    inlined = inlined_delete_table(database, table_id)
    if inlined is not None:
        table = database.identifier(inlined)
        rows += int(database.value(f"SELECT count(*) FROM {table} WHERE begin_snapshot = ?", [snapshot]))
    return _anywhere(database, table_id, rows)


def _anywhere(database: Database, table_id: int, rows: int) -> list[IdSpan]:
    """Rows whose ids the catalog does not tell: any that were given."""
    if not rows:
        return []
    next_id = database.value("SELECT max(next_row_id) FROM ducklake_table_stats WHERE table_id = ?", [table_id])
    return [(0, max(int(next_id or 0), 1) - 1, rows)]
