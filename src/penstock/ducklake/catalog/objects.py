"""Looks up schemas, tables, columns, views, macros, tags, partition and sort specifications, as a snapshot has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.objects import (
    ColumnVersion,
    Macro,
    MacroImplementation,
    MacroParameter,
    Schema,
    SortKey,
    TableInfo,
    View,
)
from penstock.errors import NotFoundError
from penstock.partitioning import PartitionField, PartitionSpec, parse_transform
from penstock.schema.columns import Column, find_column
from penstock.schema.types import parse_type
from penstock.storage.paths import folder, resolve


def schemas(database: Database, at: At, data_path: str) -> list[Schema]:
    """The schemas of the lake."""
    rows = database.query(
        f"""SELECT schema_id, schema_uuid, schema_name, path, path_is_relative FROM ducklake_schema
            WHERE {at.visible()} ORDER BY schema_id""",
    )
    return [Schema(r[0], str(r[1]), r[2], folder(resolve(data_path, r[3] or "", bool(r[4])))) for r in rows]


def tables(database: Database, at: At, data_path: str) -> list[TableInfo]:
    """The tables of all schemas."""
    owners = {schema.id: schema for schema in schemas(database, at, data_path)}
    rows = database.query(
        f"""SELECT table_id, table_uuid, schema_id, table_name, path, path_is_relative FROM ducklake_table
            WHERE {at.visible()} ORDER BY table_id""",
    )
    return [
        TableInfo(r[0], str(r[1]), owners[r[2]], r[3], folder(resolve(owners[r[2]].path, r[4] or "", bool(r[5]))))
        for r in rows
        if r[2] in owners
    ]


def find_table(database: Database, at: At, data_path: str, schema: str, name: str) -> TableInfo:
    """The table of this name; names compare without regard to case, as they do in DuckDB."""
    matching = [
        t for t in tables(database, at, data_path) if same_name(t.schema.name, schema) and same_name(t.name, name)
    ]
    if matching:
        return next((t for t in matching if t.name == name), matching[0])
    _refuse_view(database, at, data_path, schema, name)
    known = sorted(t.full_name for t in tables(database, at, data_path))
    raise NotFoundError(
        f"table {schema}.{name} does not exist at snapshot {at.version}; "
        + (f"there are {', '.join(known[:20])}" if known else "the lake has no tables there")
    )


def _refuse_view(database: Database, at: At, data_path: str, schema: str, name: str) -> None:
    for view in views(database, at, data_path):
        if same_name(view.schema, schema) and same_name(view.name, name):
            raise NotFoundError(
                f"{view.schema}.{view.name} is a view, not a table; its SQL is {view.sql!r}, in the dialect "
                f"{view.dialect}: query it with DuckDB, or run it with spark.sql over temporary views of its tables"
            )


def was_ever_a_table(database: Database, name: str) -> bool:
    """Whether some snapshot that is still known may show a table of this name."""
    return bool(database.value("SELECT count(*) FROM ducklake_table WHERE lower(table_name) = lower(?)", [name]))


def require_column(columns: Iterable[Column], name: str, table: str) -> Column:
    """The column of a name; a NotFoundError lists those that there are."""
    found = find_column(columns, name)
    if found is None:
        raise NotFoundError(
            f"table {table} has no column {name!r}; it has {', '.join(column.name for column in columns)}"
        )
    return found


def same_name(left: str, right: str) -> bool:
    """Whether two names mean the same thing: DuckDB does not tell case apart."""
    return left.lower() == right.lower()


def column_versions(database: Database, table_id: int) -> list[ColumnVersion]:
    """Every version of every column of a table, oldest first."""
    return [_column_version(row) for row in database.query(f"{_COLUMN_VERSIONS} = ? {_OLDEST_FIRST}", [table_id])]


def inlined_column_versions(database: Database) -> dict[int, list[ColumnVersion]]:
    """The same of all tables that may have inlined rows, by their ids."""
    inlined = "IN (SELECT table_id FROM ducklake_inlined_data_tables)"
    found: dict[int, list[ColumnVersion]] = defaultdict(list)
    for row in database.query(f"{_COLUMN_VERSIONS} {inlined} {_OLDEST_FIRST}"):
        found[row[-1]].append(_column_version(row))
    return found


_COLUMN_VERSIONS = """SELECT column_id, column_name, column_type, begin_snapshot, nulls_allowed, initial_default,
    default_value, default_value_type, default_value_dialect, parent_column, column_order, end_snapshot, table_id
    FROM ducklake_column WHERE table_id"""
_OLDEST_FIRST = "ORDER BY begin_snapshot, column_order, column_id"


def _column_version(row: Row) -> ColumnVersion:
    column = Column(row[0], row[1], parse_type(row[2]), row[3], bool(row[4]), *row[5:9])
    return ColumnVersion(column, row[9], row[10], row[11])


def columns_at(versions: Iterable[ColumnVersion], at: At) -> tuple[Column, ...]:
    """The tree of columns that a snapshot shows, from a table's column versions."""
    shown = [v for v in versions if at.shows(v.column.begin_snapshot, v.end_snapshot)]
    children: dict[int | None, list[ColumnVersion]] = defaultdict(list)
    for item in sorted(shown, key=lambda v: (v.order, v.column.id)):
        children[item.parent_id].append(item)

    def grown(item: ColumnVersion) -> Column:
        return replace(item.column, children=tuple(grown(child) for child in children[item.column.id]))

    return tuple(grown(item) for item in children[None])


def tags(database: Database, at: At, object_id: int) -> dict[str, str | None]:
    """A schema's, table's or view's tags; a comment is the tag `comment`."""
    sql = f"SELECT key, value FROM ducklake_tag WHERE object_id = ? AND {at.visible()}"
    return _tags(database, sql, [object_id])


def column_tags(database: Database, at: At, table_id: int, column_id: int) -> dict[str, str | None]:
    """A column's tags; a comment is the tag `comment`."""
    sql = f"SELECT key, value FROM ducklake_column_tag WHERE table_id = ? AND column_id = ? AND {at.visible()}"
    return _tags(database, sql, [table_id, column_id])


def column_comments(database: Database, at: At, table_id: int) -> dict[int, str]:
    """The comments of a table's columns and fields, by their ids."""
    sql = f"""SELECT column_id, "value" FROM ducklake_column_tag
              WHERE table_id = ? AND "key" = 'comment' AND {at.visible()}"""
    return {column_id: value for column_id, value in database.query(sql, [table_id]) if value is not None}


def _tags(database: Database, sql: str, parameters: list[int]) -> dict[str, str | None]:
    quoted = sql.replace("SELECT key, value", 'SELECT "key", "value"')
    return {key: value for key, value in database.query(quoted, parameters) if value is not None}


def partition_specs(database: Database, table_id: int) -> list[PartitionSpec]:
    """Every partition specification the table ever had; old files keep theirs."""
    rows = database.query(
        """SELECT partition_id, partition_key_index, column_id, "transform" FROM ducklake_partition_column
           WHERE table_id = ? ORDER BY partition_id, partition_key_index""",
        [table_id],
    )
    fields: dict[int, list[PartitionField]] = defaultdict(list)
    for partition_id, index, column_id, transform in rows:
        fields[partition_id].append(PartitionField(index, column_id, parse_transform(transform)))
    return [PartitionSpec(partition_id, tuple(items)) for partition_id, items in fields.items()]


def current_partition_id(database: Database, at: At, table_id: int) -> int | None:
    """The id of the specification that new rows are partitioned by, or None."""
    sql = f"SELECT max(partition_id) FROM ducklake_partition_info WHERE table_id = ? AND {at.visible()}"
    found: int | None = database.value(sql, [table_id])
    return found


def current_partition_spec(database: Database, at: At, table_id: int) -> PartitionSpec | None:
    """How new rows are partitioned; a specification without fields is that of a table that no longer is."""
    current = current_partition_id(database, at, table_id)
    if current is None:
        return None
    return next((spec for spec in partition_specs(database, table_id) if spec.partition_id == current), None)


def sort_order(database: Database, at: At, table_id: int) -> tuple[SortKey, ...]:
    """The keys that new rows are sorted by."""
    rows = database.query(
        f"""SELECT e.expression, e.dialect, e.sort_direction, e.null_order
            FROM ducklake_sort_info i
            JOIN ducklake_sort_expression e ON e.sort_id = i.sort_id AND e.table_id = i.table_id
            WHERE i.table_id = ? AND {at.visible("i")} ORDER BY e.sort_key_index""",
        [table_id],
    )
    return tuple(SortKey(*row) for row in rows)


def views(database: Database, at: At, data_path: str) -> list[View]:
    """The views of all schemas."""
    names = {schema.id: schema.name for schema in schemas(database, at, data_path)}
    rows = database.query(
        f"""SELECT view_id, schema_id, view_name, dialect, "sql", column_aliases FROM ducklake_view
            WHERE {at.visible()} ORDER BY view_id""",
    )
    return [View(r[0], names[r[1]], r[2], r[3], r[4], r[5], tags(database, at, r[0])) for r in rows if r[1] in names]


def macros(database: Database, at: At, data_path: str) -> list[Macro]:
    """The macros of all schemas."""
    names = {schema.id: schema.name for schema in schemas(database, at, data_path)}
    found = database.query(
        f"SELECT macro_id, schema_id, macro_name FROM ducklake_macro WHERE {at.visible()} ORDER BY macro_id",
    )
    return [Macro(r[0], names[r[1]], r[2], _implementations(database, r[0])) for r in found if r[1] in names]


def _implementations(database: Database, macro_id: int) -> tuple[MacroImplementation, ...]:
    parameters: dict[int, list[MacroParameter]] = defaultdict(list)
    for impl_id, *values in database.query(
        """SELECT impl_id, parameter_name, parameter_type, default_value, default_value_type
           FROM ducklake_macro_parameters WHERE macro_id = ? ORDER BY impl_id, column_id""",
        [macro_id],
    ):
        parameters[impl_id].append(MacroParameter(*values))
    rows = database.query(
        'SELECT impl_id, dialect, "sql", "type" FROM ducklake_macro_impl WHERE macro_id = ? ORDER BY impl_id',
        [macro_id],
    )
    return tuple(MacroImplementation(r[1], r[2], r[3], tuple(parameters[r[0]])) for r in rows)
