"""Writes what mends a lake: a command, in which `LAKE` stands for it, and a call of Python, in which `lake` does."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.snapshot_changes import quoted_name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Remedy:
    """What mends something, on the command line and in Python."""

    command: str
    verb: str


def merge(table: TableInfo) -> Remedy:
    """Merges a table's small files."""
    return Remedy(f"penstock maintain LAKE merge {_named(table)}", f"lake.merge_adjacent_files({_given(table)})")


def rewrite(table: TableInfo, threshold: float | None = None) -> Remedy:
    """Writes files anew that have lost rows: so large a part of them, or what the option says."""
    if threshold is None:
        return Remedy(f"penstock maintain LAKE rewrite {_named(table)}", f"lake.rewrite_data_files({_given(table)})")
    call = _call(
        "rewrite_data_files", table=_text(table.name), schema=_text(table.schema.name), delete_threshold=str(threshold)
    )
    return Remedy(call, f"lake.rewrite_data_files({_given(table)}, delete_threshold={threshold})")


def flush(table: TableInfo) -> Remedy:
    """Writes a table's inlined rows to files."""
    verb = f"lake.flush_inlined_data(table={table.name!r}, schema={table.schema.name!r})"
    return Remedy(f"penstock maintain LAKE flush {_named(table)}", verb)


def expire(days: int | None = None) -> Remedy:
    """Expires snapshots that are so old, or as old as the option says."""
    if days is None:
        return Remedy("penstock maintain LAKE expire", "lake.expire_snapshots()")
    verb = f"lake.expire_snapshots(older_than=timedelta(days={days}))"
    return Remedy(f"penstock maintain LAKE expire --older-than '{days} days'", verb)


def cleanup() -> Remedy:
    """Deletes scheduled files."""
    return Remedy("penstock maintain LAKE cleanup", "lake.cleanup_old_files()")


def delete_orphans() -> Remedy:
    """Deletes orphans."""
    return Remedy("penstock maintain LAKE orphans", "lake.delete_orphaned_files()")


def optimize() -> Remedy:
    """Makes the indexes."""
    return Remedy(_call("optimize_catalog"), "lake.optimize_catalog()")


def set_option(option: str, value: str, table: TableInfo | None = None) -> Remedy:
    """Sets an option."""
    if table is None:
        command = _call("set_option", option=_text(option), value=_text(value))
        return Remedy(command, f"lake.set_option({option!r}, {value!r})")
    command = _call(
        "set_option", option=_text(option), value=_text(value), table_name=_text(table.name),
        schema=_text(table.schema.name),
    )  # fmt: skip
    verb = f"lake.set_option({option!r}, {value!r}, table={table.name!r}, schema={table.schema.name!r})"
    return Remedy(command, verb)


def _given(table: TableInfo) -> str:
    return f"{table.name!r}, schema={table.schema.name!r}"


def _named(table: TableInfo) -> str:
    parts = (table.schema.name, table.name)
    name = ".".join(parts) if all(map(_PLAIN.fullmatch, parts)) else quoted_name(*parts)
    return f"--table {shlex.quote(name)}"


def _call(procedure: str, **given: str) -> str:
    values = ", ".join(f"{name} => {value}" for name, value in given.items())
    return f"penstock sql LAKE {shlex.quote(f'CALL system.{procedure}({values})')}"


def _text(text: str) -> str:
    """A string of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
