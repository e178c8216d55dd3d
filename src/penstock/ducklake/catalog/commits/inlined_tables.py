"""Makes the tables that hold inlined rows: one for each shape of a lake's table, made when the shape is."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
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

REGISTRY = "ducklake_inlined_data_tables"
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


def known_targets(database: Database, staging: Staging, history: History) -> dict[int, InlinedTarget]:
    """The inlined tables that are there already for rows of the transaction, by the tables that these are of.

    `history` gives the versions of a table's columns.
    """
    shaped = _shaped(database, staging)
    found = {
        table_id: _newest(database, table_id, batches[-1].columns, history)
        for table_id, batches in staging.inlined.items()
        if not is_provisional(table_id) and table_id not in shaped
    }
    return {table_id: target for table_id, target in found.items() if target is not None}


def changes_inlined_tables(staging: Staging, known: Mapping[int, InlinedTarget]) -> bool:
    """Whether a commit makes inlined tables, or forgets some that a flush has emptied.

    DuckDB's sessions remember which there are for as long as the lake's schema version stays.
    """
    return not staging.inlined.keys() <= known.keys() or any(rows.table == REGISTRY for rows in staging.removed)


def inlined_targets(
    database: Database, staging: Staging, committed_ids: CommittedIds, known: Mapping[int, InlinedTarget]
) -> dict[int, InlinedTarget]:
    """The targets of every table that got a new shape or has rows to inline; keys are the provisional ids."""
    inlined = {table_id: batches[-1].columns for table_id, batches in staging.inlined.items() if table_id not in known}
    new = {
        table_id: _new(database, committed_ids.real(table_id), committed_ids.schema_version, columns)
        for table_id, columns in {**inlined, **_shaped(database, staging)}.items()
    }
    return {**known, **new}


def _shaped(database: Database, staging: Staging) -> dict[int, tuple[Column, ...]]:
    """The tables that the transaction makes or changes so that their rows are inlined in a new shape."""
    return {id: columns for id, columns in staging.reshaped.items() if inlinable(columns, database.engine)}


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
    return holds_every_value(database, target.name, columns) if target else database.can_create_tables


def _newest(database: Database, table_id: int, columns: tuple[Column, ...], history: History) -> InlinedTarget | None:
    """The newest inlined table, where it has today's shape."""
    # One that was made late has a schema version of its own: the table's last one before it tells the shape.
    rows = database.query(
        """SELECT i.schema_version, i.table_name, max(v.begin_snapshot)
           FROM ducklake_inlined_data_tables i
           JOIN ducklake_schema_versions v ON v.table_id = i.table_id AND v.schema_version <= i.schema_version
           WHERE i.table_id = ? GROUP BY i.schema_version, i.table_name ORDER BY i.schema_version DESC""",
        [table_id],
    )
    if not rows:
        return None
    version, name, begin = rows[0]
    is_current = shape(columns_at(history(table_id), At(begin))) == shape(columns)
    return InlinedTarget(table_id, version, columns, name, True) if is_current else None


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
    registered = {name for (name,) in database.query(f"SELECT table_name FROM {REGISTRY}")}
    for name in sorted(database.tables("ducklake_inlined_data_") - registered):
        if name.endswith(_OURS):
            with suppress(CatalogError):  # of a user who may not drop: an empty table of no use does no harm
                database.execute(f"DROP TABLE IF EXISTS {database.identifier(name)}")


def register_tables(database: Database, targets: Iterable[InlinedTarget]) -> None:
    """List new inlined tables in `ducklake_inlined_data_tables`."""
    rows = [(target.table_id, target.name, target.schema_version) for target in targets if not target.exists]
    database.insert(REGISTRY, ("table_id", "table_name", "schema_version"), rows)
