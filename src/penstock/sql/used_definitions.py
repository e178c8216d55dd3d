"""Tells whether the views and macros that a query was made of are those of the snapshot that its rows are read at.

Spark takes their texts when it analyzes a query, and the rows when it runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.objects import Macro, View
from penstock.errors import InvalidError
from penstock.sql.duckdb_dialect.stand_ins import DIALECT as DUCKDB


class UsedDefinitions:
    """What is noted of the views and macros in a query, and the question whether it still holds."""

    def __init__(self, lake: DuckLake) -> None:
        self._lake = lake

    def of_view(self, view: View, version: int | None) -> str | None:
        """What to note of a view, as it is at a version where that is known; None in a transaction of this thread."""
        return self._noted("view", view, version)

    def of_macro(self, macro: Macro) -> str | None:
        """The same of a macro as it is now."""
        return self._noted("macro", macro, None)

    def check(self, noted: Iterable[str], version: int) -> None:
        """Raise InvalidError where one of these is another, or gone, at the snapshot of a version."""
        for what, schema, name, text, then in map(json.loads, noted):
            if then == version:
                continue
            shown = self._lake._attachment.shown(version)
            listed = objects.views if what == "view" else objects.macros
            found = [
                one
                for one in listed(shown.database, shown.at, shown.data_path)
                if same_name(one.schema, schema) and same_name(one.name, name)
            ]
            if not found or self._text(found[0], version) != text:
                raise InvalidError(f"{what} {schema}.{name} was changed since the query was made; make it again")

    def _noted(self, what: str, found: View | Macro, version: int | None) -> str | None:
        attachment = self._lake._attachment
        if attachment.in_transaction:
            return None
        return json.dumps([what, found.schema, found.name, self._text(found, version), version])

    def _text(self, found: View | Macro, version: int | None) -> str:
        """A text that is the same for the same definition. What is in DuckDB's dialect may be made of any macros."""
        told: list[object] = [found]
        if isinstance(found, Macro) or found.dialect.lower() == DUCKDB:
            shown = self._lake._attachment.shown(version)
            told += objects.macros(shown.database, shown.at, shown.data_path)
        return sha256(repr(told).encode()).hexdigest()
