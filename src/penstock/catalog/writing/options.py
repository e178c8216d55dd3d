"""Storing options: they hold at once, for every snapshot."""

from __future__ import annotations

from penstock.catalog.databases import Database
from penstock.model.options import OptionValue


def store_option(database: Database, option: OptionValue) -> None:
    scope = None if option.scope == "global" else option.scope
    where = '"key" = ? AND "scope" IS NULL' if scope is None else '"key" = ? AND "scope" = ? AND scope_id = ?'
    place = [option.name] if scope is None else [option.name, scope, option.scope_id]
    with database.transaction():
        if database.query(f"SELECT 1 FROM ducklake_metadata WHERE {where}", place):
            database.execute(f'UPDATE ducklake_metadata SET "value" = ? WHERE {where}', [option.value, *place])
        else:
            row = (option.name, option.value, scope, option.scope_id)
            database.insert("ducklake_metadata", ("key", "value", "scope", "scope_id"), [row])
