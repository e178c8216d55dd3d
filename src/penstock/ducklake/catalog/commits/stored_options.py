"""Stores options in the catalog: they hold at once, for every snapshot."""

from __future__ import annotations

from penstock.ducklake.catalog.commits.provisional_ids import is_provisional
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.model.options import OptionValue
from penstock.errors import InvalidError


def store_option(database: Database, option: OptionValue) -> None:
    """Store the value of an option, in the place of the one that its scope has."""
    if option.scope_id is not None and is_provisional(option.scope_id):
        raise InvalidError(
            f"option {option.name} cannot be set for a {option.scope} that the running transaction makes: options hold "
            "at once, for every snapshot; set it after the transaction"
        )
    scope = None if option.scope == "global" else option.scope
    where = '"key" = ? AND "scope" IS NULL' if scope is None else '"key" = ? AND "scope" = ? AND scope_id = ?'
    place = [option.name] if scope is None else [option.name, scope, option.scope_id]
    with database.transaction():
        if database.query(f"SELECT 1 FROM ducklake_metadata WHERE {where}", place):
            database.execute(f'UPDATE ducklake_metadata SET "value" = ? WHERE {where}', [option.value, *place])
        else:
            row = (option.name, option.value, scope, option.scope_id)
            database.insert("ducklake_metadata", ("key", "value", "scope", "scope_id"), [row])
