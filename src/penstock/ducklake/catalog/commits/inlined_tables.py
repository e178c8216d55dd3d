"""Makes the tables that hold inlined rows: one for each shape of a lake's table, made when the shape is."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from penstock.ducklake.catalog.commits.provisional_ids import CommittedIds, is_provisional
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.inlined_storage import (
    create_inlined_table_sql,
    holds_every_value,
    inlinable,
    inlined_table_name,
)
from penstock.ducklake.catalog.objects import column_versions, columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import ColumnVersion
from penstock.errors import CatalogError
from penstock.schema.columns import Column, shape

# At the end of names that no other program makes.
_OURS = "_penstock"


@dataclass(frozen=True)
class InlinedTarget:
    """Where a table's next inlined rows go."""

    table_id: int
    schema_version: int
    columns: tuple[Column, ...]
    name: str
    exists: bool


History = Callable[[int], Sequence[ColumnVersion]]


def inlined_targets(
    database: Database, staging: Staging, committed_ids: CommittedIds, history: History
) -> dict[int, InlinedTarget]:
    """The targets of every table that got a new shape or has rows to inline; keys are the provisional ids.

    `history` gives the versions of a table's columns.
    """
    targets = {
        table_id: _new(database, committed_ids.real(table_id), committed_ids.schema_version, columns)
        for table_id, columns in staging.reshaped.items()
        if inlinable(columns, database.engine)
    }
    for table_id, batches in staging.inlined.items():
        if table_id not in targets:
            targets[table_id] = _existing(database, table_id, batches[-1].columns, committed_ids, history)
    return targets


def _existing(
    database: Database, table_id: int, columns: tuple[Column, ...], committed_ids: CommittedIds, history: History
) -> InlinedTarget:
    if is_provisional(table_id):
        return _new(database, committed_ids.real(table_id), committed_ids.schema_version, columns)
    return _newest(database, table_id, columns, history)


def _new(database: Database, table_id: int, schema_version: int, columns: tuple[Column, ...]) -> InlinedTarget:
    name = inlined_table_name(table_id, schema_version)
    if not database.transactional_ddl:
        # Made before its commit, it may be in the way of another program that is about to make one for the same
        # numbers, or of our own next try, where the user may not drop it.
        name += f"_{secrets.token_hex(4)}{_OURS}"
    return InlinedTarget(table_id, schema_version, columns, name, False)


def can_inline_rows(database: Database, staging: Staging, table_id: int, columns: tuple[Column, ...]) -> bool:
    """Whether a table's next rows can be kept in the catalog.

    An inlined table is there that holds all values, or may be made: one of ours holds them.
    """
    if is_provisional(table_id) or table_id in staging.reshaped:
        return database.can_create_tables
    if database.engine != "mysql" and database.can_create_tables:
        return True
    target = _newest(database, table_id, columns, partial(column_versions, database))
    return holds_every_value(database, target.name, columns) if target.exists else database.can_create_tables


def _newest(database: Database, table_id: int, columns: tuple[Column, ...], history: History) -> InlinedTarget:
    """The newest inlined table, where it has today's shape; else one for the table's newest schema version."""
    rows = database.query(
        """SELECT v.schema_version, v.begin_snapshot, i.table_name
           FROM ducklake_schema_versions v
           LEFT JOIN ducklake_inlined_data_tables i
             ON i.table_id = v.table_id AND i.schema_version = v.schema_version
           WHERE v.table_id = ? ORDER BY v.schema_version DESC""",
        [table_id],
    )
    newest = next((row for row in rows if row[2] is not None), None)
    if newest and shape(columns_at(history(table_id), At(newest[1]))) == shape(columns):
        return InlinedTarget(table_id, newest[0], columns, newest[2], True)
    return _new(database, table_id, rows[0][0], columns)


def create_tables(database: Database, targets: Iterable[InlinedTarget]) -> None:
    """Make the inlined tables that do not exist."""
    new = [target for target in targets if not target.exists]
    if new and not database.transactional_ddl:
        _drop_leftovers(database)
    for target in new:
        database.execute(create_inlined_table_sql(database, target.name, target.columns))


def _drop_leftovers(database: Database) -> None:
    """Tables of our commits that did not come through, where creating a table cannot be rolled back.

    Our writers take turns, so that none of them is about to register one. Tables of other programs are left alone.
    """
    registered = {name for (name,) in database.query("SELECT table_name FROM ducklake_inlined_data_tables")}
    for name in sorted(database.tables("ducklake_inlined_data_") - registered):
        if name.endswith(_OURS):
            with suppress(CatalogError):  # of a user who may not drop: an empty table of no use does no harm
                database.execute(f"DROP TABLE IF EXISTS {database.identifier(name)}")


def register_tables(database: Database, targets: Iterable[InlinedTarget]) -> None:
    """List new inlined tables in `ducklake_inlined_data_tables`."""
    rows = [(target.table_id, target.name, target.schema_version) for target in targets if not target.exists]
    database.insert("ducklake_inlined_data_tables", ("table_id", "table_name", "schema_version"), rows)
