"""Logs the commits of a lake, with the names that its tables have by then."""

from __future__ import annotations

from contextlib import suppress

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.model.snapshot_changes import SnapshotChange, parse_changes, quoted_parts
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import PenstockError
from penstock.storage.commit_log import log_commit, logs_commits

_NAMES = """SELECT t.table_id, s.schema_name, t.table_name FROM ducklake_table t JOIN ducklake_schema s
            ON s.schema_id = t.schema_id WHERE t.table_id IN ({ids}) ORDER BY t.begin_snapshot, s.begin_snapshot"""


def log_snapshot(database: Database, made: Snapshot) -> None:
    """Log a snapshot that was made, where somebody listens; only then the catalog is asked for names."""
    if logs_commits():
        tables = _tables(database, parse_changes(made.changes_made))
        log_commit(str(database.location), made.id, made.changes_made or "", tables)


def _tables(database: Database, changes: tuple[SnapshotChange, ...]) -> list[str]:
    """The names of tables that are changed, those that are gone too; none where the catalog does not answer."""
    ids = {int(change.value) for change in changes if _is_of_table(change) and change.value.isdigit()}
    made = [quoted_parts(change.value) for change in changes if change.kind == "created_table"]
    known: dict[int, tuple[str, ...]] = {}
    with suppress(PenstockError):  # it is committed, whatever happens now
        rows = database.query(_NAMES.format(ids=", ".join(map(str, ids)))) if ids else []
        known = {number: (schema, name) for number, schema, name in rows}
    return sorted({".".join(names) for names in [*known.values(), *made]})


def _is_of_table(change: SnapshotChange) -> bool:
    return "view" not in change.kind and "macro" not in change.kind and "schema" not in change.kind
