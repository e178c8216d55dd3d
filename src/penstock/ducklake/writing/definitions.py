"""Creates, renames, tags and drops the lake's entries: schemas, tables, views and macros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits import staged_schemas as staged_schemas
from penstock.ducklake.catalog.commits import staged_tables as staged_tables
from penstock.ducklake.model.column_defaults import DIALECT
from penstock.ducklake.model.names import DEFAULT_SCHEMA, parse_table_name
from penstock.ducklake.model.objects import Macro, MacroImplementation, Schema, SortKey, TableInfo, View
from penstock.ducklake.model.schema_evolution import column_rows
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.duckdb_macros import check_macro, check_query
from penstock.ducklake.writing.table_schemas import NewTable
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError
from penstock.partitioning import partition_fields


def create_schema(transaction: Transaction, name: str, *, if_not_exists: bool) -> None:
    """Stage a new schema."""
    _require_name(name, "schema")
    existing = _schema_or_none(transaction, name)
    if existing is None:
        staged_schemas.create_schema(transaction.staging, name)
    elif not if_not_exists:
        raise AlreadyExistsError(
            f"schema {existing.name} already exists; choose another name, or pass if_not_exists=True"
        )


def drop_schema(transaction: Transaction, name: str, *, if_exists: bool, cascade: bool) -> None:
    """Stage the end of a schema and, with `cascade`, of what is in it."""
    schema = _schema_or_none(transaction, name)
    if schema is None:
        if if_exists:
            return
        raise NotFoundError(f"schema {name} does not exist; there are {', '.join(_schema_names(transaction))}")
    if schema.name == DEFAULT_SCHEMA:
        raise InvalidError(f"schema {DEFAULT_SCHEMA} is part of every lake and cannot be dropped")
    tables = [table for table in _tables(transaction) if table.schema.id == schema.id]
    views = [view for view in _views(transaction) if view.schema == schema.name]
    macros = [macro for macro in _macros(transaction) if macro.schema == schema.name]
    if (tables or views or macros) and not cascade:
        names = [*(t.name for t in tables), *(v.name for v in views), *(m.name for m in macros)]
        entries = ", ".join(names)
        raise InvalidError(f"schema {schema.name} holds {entries}; drop them first, or pass cascade=True")
    staging = transaction.staging
    staged_schemas.drop_schema(staging, schema)
    for table in tables:
        staged_tables.drop_table(staging, table)
    for view in views:
        staged_schemas.drop_view(staging, view)
    for macro in macros:
        _drop_macro(transaction, macro)


def create_table(
    transaction: Transaction,
    name: str,
    definition: NewTable,
    *,
    partitioned_by: Sequence[str] = (),
    sorted_by: Sequence[SortKey] = (),
    comment: str | None = None,
    inlines: bool = True,
) -> TableInfo:
    """Stage a new table; the name must be free."""
    schema_name, table_name = parse_table_name(name)
    _require_name(table_name, "table")
    schema = _schema(transaction, schema_name)
    _require_free(transaction, schema, table_name)
    fields = partition_fields(partitioned_by, definition.columns)
    staging = transaction.staging
    table = add_table(transaction, schema, table_name, definition, comment=comment, inlines=inlines)
    if fields:
        staged_tables.set_partitioning(staging, table.id, fields)
    if sorted_by:
        staged_tables.set_sort_order(staging, table.id, sorted_by)
    return table


def add_table(
    transaction: Transaction, schema: Schema, name: str, definition: NewTable, *, comment: str | None, inlines: bool
) -> TableInfo:
    """Stage a new table under a name that is known to be free."""
    staging = transaction.staging
    table = staged_tables.create_table(staging, schema, name, column_rows(definition.columns))
    if inlines and transaction.catalog.database.can_create_tables:
        staging.reshaped[table.id] = definition.columns
    if comment is not None:
        staged_schemas.set_tag(staging, table.id, "comment", comment)
    for column_id, text in definition.comments.items():
        staged_schemas.set_column_tag(staging, table.id, column_id, "comment", text)
    return table


def find_table_or_none(transaction: Transaction, name: str) -> TableInfo | None:
    """The table of a name, or None."""
    schema_name, table_name = parse_table_name(name)
    shown = transaction.shown()
    try:
        return objects.find_table(shown.database, shown.at, shown.data_path, schema_name, table_name)
    except NotFoundError:
        return None


def drop_table(transaction: Transaction, name: str, *, if_exists: bool) -> None:
    """Stage the end of a table."""
    table = find_table_or_none(transaction, name)
    if table is not None:
        staged_tables.drop_table(transaction.staging, table)
    elif find_view_or_none(transaction, name) is not None:
        raise InvalidError(f"{name} is a view and no table; use lake.drop_view")
    elif not if_exists:
        _missing(transaction, name)


def rename_table(transaction: Transaction, table: TableInfo, name: str) -> None:
    """Stage another name of a table; the name must be free."""
    _require_name(name, "table")
    if name.lower() != table.name.lower():
        _require_free(transaction, table.schema, name)
    shown = transaction.shown()
    sql = f"SELECT path, path_is_relative FROM ducklake_table WHERE table_id = ? AND {shown.at.visible()}"
    [(path, is_relative)] = shown.database.query(sql, [table.id])
    staged_tables.rename_table(transaction.staging, table, (path, bool(is_relative)), name)


def create_view(
    transaction: Transaction,
    name: str,
    sql: str,
    *,
    dialect: str,
    column_aliases: Sequence[str],
    if_not_exists: bool,
    replace: bool,
) -> None:
    """Stage a new view."""
    schema_name, view_name = parse_table_name(name)
    _require_name(view_name, "view")
    if dialect == DIALECT:
        check_query(sql, f"view {name}")
    schema = _schema(transaction, schema_name)
    existing = find_view_or_none(transaction, name)
    if existing is not None and if_not_exists:
        return
    if existing is not None and replace:
        staged_schemas.drop_view(transaction.staging, existing)
    else:
        _require_free(transaction, schema, view_name)
    staged_schemas.create_view(transaction.staging, schema, view_name, dialect, sql, column_aliases)


def find_view_or_none(transaction: Transaction, name: str) -> View | None:
    """The view of a name, or None."""
    schema, view = (part.lower() for part in parse_table_name(name))
    return next((v for v in _views(transaction) if (v.schema.lower(), v.name.lower()) == (schema, view)), None)


def drop_view(transaction: Transaction, name: str, *, if_exists: bool) -> None:
    """Stage the end of a view."""
    view = find_view_or_none(transaction, name)
    if view is not None:
        staged_schemas.drop_view(transaction.staging, view)
    elif find_table_or_none(transaction, name) is not None:
        raise InvalidError(f"{name} is a table and no view; use lake.drop_table")
    elif not if_exists:
        _missing_view(transaction, name)


def rename_view(transaction: Transaction, name: str, new_name: str) -> None:
    """Stage another name of a view; the name must be free."""
    view = find_view_or_none(transaction, name) or _missing_view(transaction, name)
    schema = _schema(transaction, view.schema)
    _require_name(new_name, "view")
    if new_name.lower() != view.name.lower():
        _require_free(transaction, schema, new_name)
    shown = transaction.shown()
    sql = f"SELECT view_uuid FROM ducklake_view WHERE view_id = ? AND {shown.at.visible()}"
    identifier = str(shown.database.value(sql, [view.id]))
    staged_schemas.rename_view(transaction.staging, view, schema, identifier, new_name)


def create_macro(
    transaction: Transaction, name: str, implementations: Sequence[MacroImplementation], *, replace: bool
) -> None:
    """Stage a new macro."""
    schema_name, macro_name = parse_table_name(name)
    _require_name(macro_name, "macro")
    check_macro(name, implementations)
    schema = _schema(transaction, schema_name)
    for existing in find_macros(transaction, name, implementations[0].type):
        if not replace:
            raise AlreadyExistsError(f"macro {name} already exists; choose another name, or pass replace=True")
        _drop_macro(transaction, existing)
    staged_schemas.create_macro(transaction.staging, schema, macro_name, implementations)


def find_macros(transaction: Transaction, name: str, kind: str | None) -> list[Macro]:
    """The macros of a name: one of each kind at most, or the one of a kind."""
    schema, macro = (part.lower() for part in parse_table_name(name))
    named = [m for m in _macros(transaction) if (m.schema.lower(), m.name.lower()) == (schema, macro)]
    return [found for found in named if kind in (None, _kind(found))]


def drop_macro(transaction: Transaction, name: str, *, kind: str | None, if_exists: bool) -> None:
    """Stage the end of a macro."""
    found = find_macros(transaction, name, kind)
    if len(found) > 1:
        raise InvalidError(f'there are two macros {name}; say which with kind="scalar" or kind="table"')
    if found:
        _drop_macro(transaction, found[0])
    elif not if_exists:
        known = ", ".join(f"{m.schema}.{m.name}" for m in _macros(transaction)) or "none"
        raise NotFoundError(f"macro {name} does not exist; there are {known}")


def set_table_tags(transaction: Transaction, table: TableInfo, tags: Mapping[str, str | None]) -> None:
    """Stage tags of a table; None takes one away."""
    for key, value in tags.items():
        staged_schemas.set_tag(transaction.staging, table.id, key, value)
    transaction.staging.log("altered_table", table.id)


def set_column_tags(transaction: Transaction, table: TableInfo, column_id: int, tags: Mapping[str, str | None]) -> None:
    """Stage tags of a column; None takes one away."""
    for key, value in tags.items():
        staged_schemas.set_column_tag(transaction.staging, table.id, column_id, key, value)
    transaction.staging.log("altered_table", table.id)


def set_view_tags(transaction: Transaction, name: str, tags: Mapping[str, str | None]) -> None:
    """Stage tags of a view; None takes one away."""
    view = find_view_or_none(transaction, name) or _missing_view(transaction, name)
    for key, value in tags.items():
        staged_schemas.set_tag(transaction.staging, view.id, key, value)
    transaction.staging.log("altered_view", view.id)


def _drop_macro(transaction: Transaction, macro: Macro) -> None:
    staged_schemas.drop_macro(transaction.staging, macro.id, macro.schema, macro.name, _kind(macro))


def _kind(macro: Macro) -> str:
    return macro.implementations[0].type


def _require_free(transaction: Transaction, schema: Schema, name: str) -> None:
    """Tables and views share their names."""
    tables = {t.name.lower(): "table" for t in _tables(transaction) if t.schema.id == schema.id}
    views = {v.name.lower(): "view" for v in _views(transaction) if v.schema == schema.name}
    taken = {**views, **tables}.get(name.lower())
    if taken:
        raise AlreadyExistsError(f"{taken} {schema.name}.{name} already exists; drop it first, or choose another name")


def _require_name(name: str, kind: str) -> None:
    if not name or "\0" in name:
        raise InvalidError(f"{name!r} cannot be the name of a {kind}; give it at least one character, and no NUL")


def _schema(transaction: Transaction, name: str) -> Schema:
    found = _schema_or_none(transaction, name)
    if found is None:
        known = ", ".join(_schema_names(transaction))
        raise NotFoundError(
            f"schema {name} does not exist; create it with lake.create_schema({name!r}), or use {known}"
        )
    return found


def _schema_or_none(transaction: Transaction, name: str) -> Schema | None:
    shown = transaction.shown()
    schemas = objects.schemas(shown.database, shown.at, shown.data_path)
    return next((schema for schema in schemas if schema.name.lower() == name.lower()), None)


def _schema_names(transaction: Transaction) -> list[str]:
    shown = transaction.shown()
    return [schema.name for schema in objects.schemas(shown.database, shown.at, shown.data_path)]


def _tables(transaction: Transaction) -> list[TableInfo]:
    shown = transaction.shown()
    return objects.tables(shown.database, shown.at, shown.data_path)


def _views(transaction: Transaction) -> list[View]:
    shown = transaction.shown()
    return objects.views(shown.database, shown.at, shown.data_path)


def _macros(transaction: Transaction) -> list[Macro]:
    shown = transaction.shown()
    return objects.macros(shown.database, shown.at, shown.data_path)


def _missing(transaction: Transaction, name: str) -> None:
    known = ", ".join(sorted(table.full_name for table in _tables(transaction))[:20]) or "none"
    raise NotFoundError(f"table {name} does not exist; there are {known}")


def _missing_view(transaction: Transaction, name: str) -> View:
    known = ", ".join(f"{view.schema}.{view.name}" for view in _views(transaction)) or "none"
    raise NotFoundError(f"view {name} does not exist; there are {known}")
