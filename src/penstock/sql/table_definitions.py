"""Answers CREATE, ALTER and DROP of schemas and tables, and of tables that appear together with their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.option_values import validate_option
from penstock.ducklake.model.options import OPTIONS
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.table import Table
from penstock.ducklake.writing.table_schemas import type_of
from penstock.errors import AlreadyExistsError, InvalidError, PenstockError, UnsupportedError
from penstock.sql.column_texts import column_text
from penstock.sql.described_tables import CALENDAR, COMMENT, OPTION_PREFIX, PROVIDER, SORTED_BY
from penstock.sql.evolving_tables import EvolvingTables
from penstock.sql.names import NoSuchSchemaError, dotted, one_schema
from penstock.sql.shown_objects import ShownObjects

# What Spark itself sets, and what a lake has no place for.
_IGNORED = {"owner", "provider", "external", "is_managed_location"}
_FORMATS = {PROVIDER, "parquet"}  # the latter is what `saveAsTable` says when nobody says anything
_REFUSED = {
    "location": "a lake keeps the files of its tables below its data path; leave LOCATION out",
    "collation": "DuckLake has no collations; leave DEFAULT COLLATION out",
}


@dataclass(frozen=True)
class NewTableDefinition:
    """A table to be: what `create_table` takes, and what is set once it is there."""

    schema_name: str
    name: str
    schema: T.StructType
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    comment: str | None
    tags: Mapping[str, str]
    options: Mapping[str, str]
    replaces: bool = False
    rows: DataFrame | None = None

    @property
    def full_name(self) -> str:
        """The name as `create_table` takes it."""
        return quoted_name(self.schema_name, self.name)


class TableDefinitions:
    """Questions of LakeCatalog that change schemas and tables."""

    def __init__(self, lake: DuckLake, shown: ShownObjects, evolving: EvolvingTables) -> None:
        self._lake, self._shown, self._evolving = lake, shown, evolving
        self._staged: dict[str, NewTableDefinition] = {}

    def create_schema(self, namespace: str, properties: str) -> None:
        """Make a schema."""
        given = {name: text for name, text in json.loads(properties).items() if name not in _IGNORED}
        if given:
            raise UnsupportedError(f"DuckLake's schemas have no {', '.join(given)}; leave that out")
        self._lake.create_schema(one_schema(namespace))

    def alter_schema(self, name: str) -> None:
        """Refuse: there is nothing to alter."""
        raise UnsupportedError(f"schema {name} cannot be altered: DuckLake's schemas have no properties")

    def drop_schema(self, name: str, cascade: bool) -> None:
        """Drop a schema."""
        self._lake.drop_schema(name, cascade=cascade)

    def create_table(self, namespace: str, name: str, schema: str, by: str, properties: str) -> str | None:
        """Make a table without rows."""
        self._create(self._definition(namespace, name, schema, by, properties))
        return self._shown.table(one_schema(namespace), name, None, None)

    def stage_create(self, namespace: str, name: str, schema: str, by: str, properties: str) -> str:
        """Begin a table that appears with its rows."""
        definition = self._definition(namespace, name, schema, by, properties)
        if self._shown.has_table(definition.schema_name, name):
            raise AlreadyExistsError(f"table {definition.schema_name}.{name} already exists; drop it, or replace it")
        return self._stage(definition)

    def stage_replace(self, namespace: str, name: str, schema: str, by: str, properties: str) -> str:
        """Begin a table that appears with its rows, in the place of one of its name."""
        return self._stage(replace(self._definition(namespace, name, schema, by, properties), replaces=True))

    def commit_staged(self, handle: str) -> None:
        """Make the table that was begun, with its rows, in one snapshot."""
        self._create(self._staged.pop(json.loads(handle)["staged"]))

    def abort_staged(self, handle: str) -> None:
        """Forget the table that was begun."""
        self._staged.pop(json.loads(handle)["staged"], None)

    def alter_table(self, schema: str, name: str, changes: str) -> None:
        """Do all of an ALTER TABLE, in one snapshot. Options hold at once, as everywhere, and come last."""
        table = self._table(schema, name)
        told = json.loads(changes)
        options = [change for change in told if _is_option(change)]
        for change in options:
            check_option(change["name"], change.get("value"))
        rest = [change for change in told if change not in options]
        if rest:
            with self._lake._attachment.statement():
                for change in rest:
                    _CHANGES.get(change["what"], _unknown_change)(table, change)
        for change in options:
            self._set_option(table, change["name"], change.get("value"))

    def evolve_table(self, schema: str, name: str, changes: str) -> None:
        """Do what a write WITH SCHEMA EVOLUTION needs, as part of that."""
        self._evolving.alter(schema, name, lambda: self.alter_table(schema, name, changes))

    def can_evolve(self, handle: str, change: str) -> bool:
        """Whether a write may make a change by itself: a new column, or a wider type."""
        told, found = json.loads(change), json.loads(handle)
        if told["what"] == "add column":
            return told["position"] is None
        if told["what"] != "set type":
            return False
        columns, kind = self._table(found["schema"], found["name"]).columns, T._parse_datatype_json_string(told["type"])
        try:
            schema_evolution.set_type(columns, 0, told["path"], type_of(self._lake.spark, kind))
        except PenstockError:
            return False
        return True

    def drop_table(self, schema: str, name: str) -> bool:
        """Drop a table, if there is one."""
        if not self._shown.has_table(schema, name):
            return False
        self._lake.drop_table(quoted_name(schema, name))
        return True

    def rename_table(self, schema: str, name: str, namespace: str, new_name: str) -> None:
        """Rename a table within its schema."""
        target = one_schema(namespace) if json.loads(namespace) else schema
        if not same_name(target, schema):
            raise UnsupportedError(
                f"table {schema}.{name} cannot move to schema {target}: DuckLake renames within a schema; "
                f"use CREATE TABLE {target}.{new_name} AS SELECT"
            )
        self._table(schema, name).rename(new_name)

    def keep_rows(self, token: str, rows: DataFrame) -> None:
        """Take the rows of a table that was begun."""
        self._staged[token] = replace(self._staged[token], rows=rows)

    def _table(self, schema: str, name: str) -> Table:
        return self._lake.table(quoted_name(schema, name))

    def _stage(self, definition: NewTableDefinition) -> str:
        token = uuid4().hex
        self._staged[token] = definition
        handle = {"schema": definition.schema_name, "name": definition.name, "staged": token}
        about: dict[str, Any] = {
            "schema": definition.schema.json(),
            "partitioning": [],
            "partitions": [],
            "properties": {},
            "id": None,
            "version": None,
        }
        return json.dumps({**about, "handle": json.dumps(handle)})

    def _create(self, definition: NewTableDefinition) -> None:
        with self._lake._attachment.statement():
            table = self._lake.create_table(
                definition.full_name,
                definition.schema,
                partitioned_by=definition.partitioned_by,
                sorted_by=definition.sorted_by,
                comment=definition.comment,
                replace=definition.replaces,
            )
            if definition.tags:
                table.set_tags(**definition.tags)
            if definition.rows is not None:
                table.append(definition.rows)
        for name, value in definition.options.items():
            self._set_option(table, name, value)

    def _definition(self, namespace: str, name: str, schema: str, by: str, properties: str) -> NewTableDefinition:
        schema_name = one_schema(namespace)
        if self._shown.schema(schema_name) is None:
            raise NoSuchSchemaError(f"schema {schema_name} does not exist")
        given = dict(json.loads(properties))
        _check_properties(given)
        fields, order = _partitioning(json.loads(by))
        sorted_by = given.pop(SORTED_BY, None)
        options = {key: given.pop(key) for key in list(given) if key.startswith(OPTION_PREFIX)}
        for key, value in options.items():
            check_option(key, value)
        return NewTableDefinition(
            schema_name,
            name,
            T.StructType.fromJson(json.loads(schema)),
            fields,
            tuple(split_keys(sorted_by)) if sorted_by else order,
            given.pop(COMMENT, None),
            {key: value for key, value in given.items() if key not in _IGNORED},
            options,
        )

    def _set_option(self, table: Table, name: str, value: str | None) -> None:
        option = name.removeprefix(OPTION_PREFIX)
        where = {"schema": table.schema_name, "table": quoted_name(table.name)}
        self._lake.set_option(option, OPTIONS[option].default if value is None else value, **where)


def _is_option(change: Mapping[str, Any]) -> bool:
    """Whether a change sets an option of the lake's for the table, or takes it back."""
    is_property = change["what"] in ("set property", "remove property")
    return is_property and change["name"] != SORTED_BY and change["name"].startswith(OPTION_PREFIX)


def check_option(name: str, value: str | None) -> None:
    """Raise an InvalidError where a property `ducklake.NAME` is no option of tables, or takes no such value."""
    option = name.removeprefix(OPTION_PREFIX)
    if option not in OPTIONS or "table" not in OPTIONS[option].scopes:
        known = ", ".join(OPTION_PREFIX + name for name, item in OPTIONS.items() if "table" in item.scopes)
        raise InvalidError(f"{name} is no option of a table; there are {SORTED_BY}, {known}")
    if value is not None:
        validate_option(option, value)
    elif OPTIONS[option].default is None:
        raise UnsupportedError(f"{name} has no default to go back to; set it to a value")


def split_keys(text: str) -> list[str]:
    """Sort keys that commas separate, outside of parentheses and quotes."""
    keys, depth, quote, start = [], 0, "", 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            keys.append(text[start:place])
            start = place + 1
    return [key.strip() for key in [*keys, text[start:]] if key.strip()]


def _check_properties(given: Mapping[str, str]) -> None:
    for name, why in _REFUSED.items():
        if name in given:
            raise UnsupportedError(why)
    provider = given.get("provider", PROVIDER)
    if provider.lower() not in _FORMATS:
        raise UnsupportedError(f"the tables of a lake are DuckLake's, not {provider}; leave USING out, or say ducklake")


def _partitioning(transforms: Sequence[Sequence[Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Spark's transforms as `create_table` takes them, and the columns that new rows are sorted by."""
    fields: list[str] = []
    order: list[str] = []
    for name, *arguments in transforms:
        columns = [dotted(argument) for argument in arguments if isinstance(argument, list)]
        numbers = [argument for argument in arguments if not isinstance(argument, list)]
        if name in ("cluster_by", "sorted"):
            order += columns
        elif len(columns) != 1:
            raise UnsupportedError(f"{name} of {len(columns)} columns is no transform of DuckLake's; give one column")
        elif name == "identity":
            fields += columns
        else:
            fields.append(f"{CALENDAR.get(name, name)}({', '.join([*map(str, numbers), *columns])})")
    return tuple(fields), tuple(order)


def _add_column(table: Table, change: Mapping[str, Any]) -> None:
    if change["position"] is not None:
        raise UnsupportedError(
            f"column {'.'.join(change['path'])} cannot be put {change['position']}: DuckLake adds columns at the end"
        )
    kind = T._parse_datatype_json_string(change["type"])
    table.add_column(column_text(change["path"], kind, change["nullable"], change["default"], change["comment"]))


def _drop_column(table: Table, change: Mapping[str, Any]) -> None:
    table.drop_column(dotted(change["path"]), if_exists=bool(change["if_exists"]))


def _rename_column(table: Table, change: Mapping[str, Any]) -> None:
    table.rename_column(dotted(change["path"]), change["name"])


def _set_type(table: Table, change: Mapping[str, Any]) -> None:
    table.set_type(dotted(change["path"]), T._parse_datatype_json_string(change["type"]))


def _set_nullable(table: Table, change: Mapping[str, Any]) -> None:
    path = dotted(change["path"])
    table.drop_not_null(path) if change["nullable"] else table.set_not_null(path)


def _set_default(table: Table, change: Mapping[str, Any]) -> None:
    path = dotted(change["path"])
    table.set_default(path, change["default"]) if change["default"] else table.drop_default(path)


def _set_column_comment(table: Table, change: Mapping[str, Any]) -> None:
    table.set_column_tags(dotted(change["path"]), comment=change["comment"] or None)


def _set_property(table: Table, change: Mapping[str, Any]) -> None:
    name, value = change["name"], change.get("value")
    if name in _REFUSED:
        raise UnsupportedError(_REFUSED[name])
    if name == SORTED_BY:
        table.set_sorted_by(*split_keys(value or ""))
    elif name not in _IGNORED:
        table.set_tags(**{name: value or None})


def _cluster_by(table: Table, change: Mapping[str, Any]) -> None:
    table.set_sorted_by(*map(dotted, change["columns"]))


def _unknown_change(table: Table, change: Mapping[str, Any]) -> None:
    raise UnsupportedError(f"table {table.name} cannot be altered so: DuckLake has no {change['what']}")


_CHANGES: dict[str, Callable[[Table, Mapping[str, Any]], None]] = {
    "add column": _add_column,
    "drop column": _drop_column,
    "rename column": _rename_column,
    "set type": _set_type,
    "set nullable": _set_nullable,
    "set default": _set_default,
    "set comment": _set_column_comment,
    "set property": _set_property,
    "remove property": _set_property,
    "cluster by": _cluster_by,
}
