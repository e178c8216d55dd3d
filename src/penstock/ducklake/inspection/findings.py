"""Defines what a look at a lake's health finds, and what each check is given to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.shown import Shown
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.inspection.remedies import Remedy
from penstock.ducklake.inspection.tables import TableSummary, table_summaries
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.options import OptionValue, effective_value

Severity = Literal["problem", "advice", "fine"]
Number = int | float | str


@dataclass(frozen=True)
class Finding:
    """What one check says of the lake, or of one table.

    A `problem` is wrong or will fail, `advice` makes the lake faster or smaller, and `fine` needs nothing. `remedy` is
    a command, in which `LAKE` stands for the lake, and `verb` the same in Python; both are empty where neither mends
    it.
    """

    check: str
    severity: Severity
    schema: str | None
    table: str | None
    message: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    remedy: str = ""
    verb: str = ""


@dataclass(frozen=True)
class Examined:
    """A lake that is looked at, with what many checks need to know."""

    catalog: Catalog
    at: At
    now: datetime

    @property
    def database(self) -> Database:
        """The catalog's database."""
        return self.catalog.database

    @property
    def shown(self) -> Shown:
        """The lake at the snapshot that is looked at."""
        return Shown(self.catalog.database, self.at, self.catalog.data_path)

    @cached_property
    def tables(self) -> Sequence[TableInfo]:
        """Its tables."""
        return objects.tables(self.catalog.database, self.at, self.catalog.data_path)

    @cached_property
    def summaries(self) -> Mapping[int, TableSummary]:
        """What its tables hold, by their ids."""
        return {summary.id: summary for summary in table_summaries(self.shown)}

    @cached_property
    def options(self) -> Sequence[OptionValue]:
        """Every option that is set."""
        return self.catalog.options()

    def option(self, name: str, table: TableInfo | None = None) -> str | None:
        """The value of an option that holds for a table, or for the lake."""
        schema_id, table_id = (None, None) if table is None else (table.schema.id, table.id)
        return effective_value(name, self.options, schema_id, table_id)


def finding(
    check: str,
    severity: Severity,
    message: str,
    numbers: Mapping[str, Number] | None = None,
    *,
    table: TableInfo | None = None,
    remedy: Remedy | None = None,
) -> Finding:
    """A finding, of a table or of the lake."""
    schema, name = (table.schema.name, table.name) if table is not None else (None, None)
    command, verb = (remedy.command, remedy.verb) if remedy is not None else ("", "")
    return Finding(check, severity, schema, name, message, numbers or {}, command, verb)


def counted(number: int, thing: str) -> str:
    """`1 file`, `1,234 files`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def sized(size: float) -> str:
    """Bytes as people read them: `12.3 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
