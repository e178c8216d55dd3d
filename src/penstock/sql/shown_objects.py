"""Answers what a lake has: schemas, tables and their descriptions, at its current snapshot or an older one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.catalog.remembered_answers import Moment, RememberedAnswers
from penstock.ducklake.model.objects import Schema, TableInfo
from penstock.ducklake.readable_table import Nanoseconds
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError, NotFoundError
from penstock.sql.described_tables import NANOSECONDS, described, is_lasting
from penstock.sql.evolving_tables import EvolvingTables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_looks = count()  # a transaction's tables may differ each time that they are looked at


class ShownObjects:
    """Questions of LakeCatalog that change nothing. `nanoseconds` are as for `Table.read`."""

    def __init__(
        self, attachment: Attachment, evolving: EvolvingTables, nanoseconds: Nanoseconds | None = None
    ) -> None:
        self._attachment, self._evolving, self._nanoseconds = attachment, evolving, nanoseconds
        self._descriptions = RememberedAnswers()

    def schemas(self) -> str:
        """The names of all schemas."""
        return json.dumps([schema.name for schema in self._schemas()])

    def schema(self, name: str) -> str | None:
        """What is known of a schema, or None."""
        found = next((schema for schema in self._schemas() if same_name(schema.name, name)), None)
        return None if found is None else json.dumps({"location": found.path})

    def tables(self, schema: str) -> str:
        """The names of a schema's tables."""
        shown = self._attachment.shown()
        found = objects.tables(shown.database, shown.at, shown.data_path)
        return json.dumps(sorted(table.name for table in found if same_name(table.schema.name, schema)))

    def has_table(self, schema: str, name: str) -> bool:
        """Whether there is a table of a name."""
        shown = self._attachment.shown()
        return find_info(shown, schema, name) is not None

    def table(self, schema: str, name: str, version: str | None, micros: int | None) -> str | None:
        """The description of a table, now or at a version or a time; None where there is none."""
        at = self._version(version, micros)
        if at is not None:
            return self._described(schema, name, self._attachment.shown(at), at, {})
        return self.newest_table(schema, name, self._attachment.newest_moment())

    def newest_table(self, schema: str, name: str, moment: Moment | None) -> str | None:
        """The same of a table now, when the catalog is at a moment: Spark asks for each table of a query twice.

        Options change without a snapshot.
        """
        with self._evolving.looked_at(schema, name) as more:
            if more or moment is None:
                return self._described(schema, name, self._attachment.shown(), None, more)
            question = schema, name, *self._attachment.catalog.options()

            def describe() -> str | None:
                return self._described(schema, name, self._attachment.shown(moment.snapshot), None, {})

            return self._descriptions.answer(question, moment, describe, is_lasting)

    def _described(self, schema: str, name: str, shown: Shown, at: int | None, more: Mapping[str, str]) -> str | None:
        info = find_info(shown, schema, name)
        if info is None:
            return None
        looked = str(shown.at.version) if shown.database is self._attachment.catalog.database else self._look()
        handle: dict[str, Any] = {"schema": info.schema.name, "name": info.name, "at": at, "seen": looked, **more}
        if self._nanoseconds is not None:
            handle[NANOSECONDS] = self._nanoseconds
        return described(self._attachment, shown, info, handle, looked)

    def _look(self) -> str:
        return f"in a transaction, {next(_looks)}"

    def _version(self, version: str | None, micros: int | None) -> int | None:
        if version is not None:
            if not version.strip().isdecimal():
                raise InvalidError(f"{version!r} is no snapshot's number; those are whole, such as VERSION AS OF 3")
            return int(version)
        if micros is None:
            return None
        return self._attachment.snapshot_at(timestamp=moment_of(micros)).id

    def _schemas(self) -> list[Schema]:
        shown = self._attachment.shown()
        return objects.schemas(shown.database, shown.at, shown.data_path)


def find_info(shown: Shown, schema: str, name: str) -> TableInfo | None:
    """The table of a name, or None: Spark has its own words for what is not there."""
    try:
        return objects.find_table(shown.database, shown.at, shown.data_path, schema, name)
    except NotFoundError:
        return None


def moment_of(micros: int) -> datetime:
    """A time as Spark's JVM counts it. Spark has more years than Python, and than snapshots have."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise InvalidError("the time that is given is outside the years 1 to 9999") from None
