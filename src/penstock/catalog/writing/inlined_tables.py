"""The tables that hold inlined rows: one for each shape of a lake's table, made when the shape is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.catalog.databases import Database
from penstock.catalog.inlining import create_inlined_table_sql, holds_every_value, inlinable, inlined_table_name
from penstock.catalog.objects import column_versions, columns_at
from penstock.catalog.visibility import At
from penstock.catalog.writing.numbering import Numbering, is_staged
from penstock.catalog.writing.staging import Staging
from penstock.model.columns import Column


@dataclass(frozen=True)
class InlinedTarget:
    """Where a table's next inlined rows go."""

    table_id: int
    schema_version: int
    columns: tuple[Column, ...]
    exists: bool

    @property
    def name(self) -> str:
        return inlined_table_name(self.table_id, self.schema_version)


def inlined_targets(database: Database, staging: Staging, numbering: Numbering) -> dict[int, InlinedTarget]:
    """For every table that got a new shape or has rows to inline; keys are the staged numbers."""
    targets = {
        table_id: InlinedTarget(numbering.real(table_id), numbering.schema_version, columns, False)
        for table_id, columns in staging.reshaped.items()
        if inlinable(columns, database.engine)
    }
    for table_id, batches in staging.inlined.items():
        if table_id not in targets:
            targets[table_id] = _existing(database, table_id, batches[-1].columns, numbering)
    return targets


def _existing(database: Database, table_id: int, columns: tuple[Column, ...], numbering: Numbering) -> InlinedTarget:
    if is_staged(table_id):
        return InlinedTarget(numbering.real(table_id), numbering.schema_version, columns, False)
    return _newest(database, table_id, columns)


def keeps_every_value(database: Database, staging: Staging, table_id: int, columns: tuple[Column, ...]) -> bool:
    """Whether the inlined table that a table's next rows go to can hold all values: one of ours can."""
    if database.engine != "mysql" or is_staged(table_id) or table_id in staging.reshaped:
        return True
    target = _newest(database, table_id, columns)
    return not target.exists or holds_every_value(database, target.name, columns)


def _newest(database: Database, table_id: int, columns: tuple[Column, ...]) -> InlinedTarget:
    """The newest inlined table, where it has today's shape; else one for the table's newest schema version."""
    rows = database.query(
        """SELECT v.schema_version, v.begin_snapshot, CASE WHEN i.table_id IS NULL THEN 0 ELSE 1 END
           FROM ducklake_schema_versions v
           LEFT JOIN ducklake_inlined_data_tables i
             ON i.table_id = v.table_id AND i.schema_version = v.schema_version
           WHERE v.table_id = ? ORDER BY v.schema_version DESC""",
        [table_id],
    )
    history = column_versions(database, table_id)
    newest = next(((version, begin) for version, begin, registered in rows if registered), None)
    if newest and _shape(columns_at(history, At(newest[1]))) == _shape(columns):
        return InlinedTarget(table_id, newest[0], columns, True)
    return InlinedTarget(table_id, rows[0][0], columns, False)


def _shape(columns: Iterable[Column]) -> list[tuple[object, ...]]:
    return [(column.id, column.name, column.type, *_shape(column.children)) for column in columns]


def create_tables(database: Database, targets: Iterable[InlinedTarget]) -> None:
    new = [target for target in targets if not target.exists]
    if new and not database.transactional_ddl:
        _drop_leftovers(database, new)
    for target in new:
        database.execute(create_inlined_table_sql(database, target.name, target.columns))


def _drop_leftovers(database: Database, targets: Iterable[InlinedTarget]) -> None:
    """Tables of a commit that did not come through, where creating a table cannot be rolled back."""
    registered = {name for (name,) in database.query("SELECT table_name FROM ducklake_inlined_data_tables")}
    for target in targets:
        if target.name not in registered:
            database.execute(f"DROP TABLE IF EXISTS {database.identifier(target.name)}")


def register(database: Database, targets: Iterable[InlinedTarget]) -> None:
    rows = [(target.table_id, target.name, target.schema_version) for target in targets if not target.exists]
    database.insert("ducklake_inlined_data_tables", ("table_id", "table_name", "schema_version"), rows)
