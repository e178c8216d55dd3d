"""Stages schemas, views, macros and tags."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.model.objects import MacroImplementation, Schema, View
from penstock.ducklake.model.snapshot_changes import quoted_name

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_-]+")


def own_path(name: str, identifier: str) -> str:
    """The directory of a new schema or table: its name where that is plain, else its uuid."""
    return f"{name if _PLAIN_PATH.fullmatch(name) else identifier}/"


def create_schema(staging: Staging, name: str) -> int:
    """Add a schema, and return its id."""
    schema_id, identifier = staging.ids.catalog_id(), str(uuid.uuid4())
    staging.add_versioned(
        "ducklake_schema",
        schema_id=schema_id,
        schema_uuid=identifier,
        schema_name=name,
        path=own_path(name, identifier),
        path_is_relative=True,
    )
    staging.log("created_schema", quoted_name(name))
    return schema_id


def drop_schema(staging: Staging, schema: Schema) -> None:
    """End the schema itself; what is in it is dropped by the caller."""
    staging.end("ducklake_schema", schema_id=schema.id)
    staging.end("ducklake_tag", object_id=schema.id)
    if is_provisional(schema.id):
        staging.unlog("created_schema", quoted_name(schema.name))
    else:
        staging.log("dropped_schema", schema.id)


def create_view(
    staging: Staging, schema: Schema, name: str, dialect: str, sql: str, column_aliases: Sequence[str]
) -> int:
    """Add a view, and return its id."""
    view_id = staging.ids.catalog_id()
    aliases = ",".join(quoted_name(alias) for alias in column_aliases)
    _add_view(staging, view_id, str(uuid.uuid4()), schema, name, (dialect, sql, aliases))
    staging.log("created_view", quoted_name(schema.name, name))
    return view_id


def rename_view(staging: Staging, view: View, schema: Schema, identifier: str, name: str) -> None:
    """Give a view another name."""
    staging.end("ducklake_view", view_id=view.id)
    staging.unlog("created_view", quoted_name(schema.name, view.name))
    _add_view(staging, view.id, identifier, schema, name, (view.dialect, view.sql, view.column_aliases))
    staging.log("created_view", quoted_name(schema.name, name))


def drop_view(staging: Staging, view: View) -> None:
    """End a view and its tags."""
    staging.end("ducklake_view", view_id=view.id)
    staging.end("ducklake_tag", object_id=view.id)
    staging.unlog("created_view", quoted_name(view.schema, view.name))
    if not is_provisional(view.id):
        staging.log("dropped_view", view.id)


def _add_view(
    staging: Staging,
    view_id: int,
    identifier: str,
    schema: Schema,
    name: str,
    definition: tuple[str, str, str | None],
) -> None:
    dialect, sql, aliases = definition
    staging.add_versioned(
        "ducklake_view",
        view_id=view_id,
        view_uuid=identifier,
        schema_id=schema.id,
        view_name=name,
        dialect=dialect,
        sql=sql,
        column_aliases=aliases or "",
    )


def create_macro(staging: Staging, schema: Schema, name: str, implementations: Sequence[MacroImplementation]) -> int:
    """Add a macro, and return its id."""
    macro_id = staging.ids.catalog_id()
    staging.add_versioned("ducklake_macro", schema_id=schema.id, macro_id=macro_id, macro_name=name)
    for impl_id, item in enumerate(implementations):
        staging.add(
            "ducklake_macro_impl",
            macro_id=macro_id,
            impl_id=impl_id,
            dialect=item.dialect,
            sql=item.sql,
            type=item.type,
        )
        for column_id, parameter in enumerate(item.parameters):
            staging.add(
                "ducklake_macro_parameters",
                macro_id=macro_id,
                impl_id=impl_id,
                column_id=column_id,
                parameter_name=parameter.name,
                parameter_type=parameter.type,
                # The extension fails on the whole lake where it finds no text here.
                default_value="NULL" if parameter.default_value is None else parameter.default_value,
                default_value_type=parameter.default_value_type or "unknown",
            )
    staging.log(f"created_{implementations[0].type}_macro", quoted_name(schema.name, name))
    return macro_id


def drop_macro(staging: Staging, macro_id: int, schema: str, name: str, kind: str) -> None:
    """End a macro."""
    staging.end("ducklake_macro", macro_id=macro_id)
    if is_provisional(macro_id):
        staging.unlog(f"created_{kind}_macro", quoted_name(schema, name))
        for table in ("ducklake_macro_impl", "ducklake_macro_parameters"):
            staging.remove(table, "macro_id", {macro_id})
    else:
        staging.log(f"dropped_{kind}_macro", macro_id)


def set_tag(staging: Staging, object_id: int, key: str, value: str | None) -> None:
    """Set a tag of a schema, table or view; None takes it away."""
    staging.end("ducklake_tag", object_id=object_id, key=key)
    staging.add_versioned("ducklake_tag", object_id=object_id, key=key, value=value)


def set_column_tag(staging: Staging, table_id: int, column_id: int, key: str, value: str | None) -> None:
    """Set a tag of a column; None takes it away."""
    staging.end("ducklake_column_tag", table_id=table_id, column_id=column_id, key=key)
    staging.add_versioned("ducklake_column_tag", table_id=table_id, column_id=column_id, key=key, value=value)
