"""The commands that list what a lake has and had, by its catalog alone: ls, snapshots, history; and lakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from penstock.cli.commands import command
from penstock.cli.lakes import GREATEST_ID, AtOption, LakeArgument, LimitOption, TableArgument, opened, shown, table_of
from penstock.cli.reports import Field, Listing, Report
from penstock.cli.texts import listed, moment, number, plural, size
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.location import parse_location
from penstock.ducklake.catalog.named_lakes.configuration import Configuration, configuration
from penstock.ducklake.catalog.named_lakes.read_catalogs import ReadCatalog
from penstock.ducklake.inspection.history import snapshot_summaries, table_history
from penstock.ducklake.inspection.tables import table_summaries
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import PenstockError

SNAPSHOT = (Field("snapshot", "snapshot", number, True), Field("time", "time", moment))
MESSAGE = (Field("author", "author", null=""), Field("message", "message", null=""))
ACTIONS = Field("actions", "what it did", listed, null="")
_FEW = 20


def register(app: typer.Typer) -> None:
    """Makes these functions commands of a program."""
    command(app, "ls", "penstock ls ducklake:sales.ducklake", "penstock ls sales --at 17 --json")(ls)
    command(app, "snapshots", "penstock snapshots sales --limit 5")(snapshots)
    command(app, "history", "penstock history sales orders")(history)
    command(app, "lakes", "penstock lakes")(lakes)


def ls(lake: LakeArgument, at: AtOption = None) -> Report:
    """List schemas, tables, views and macros, with rows, files and sizes."""
    fields = (
        Field("schema", "schema"), Field("name", "name", null=""), Field("kind", "kind"),
        Field("rows", "rows", number, True, ""), Field("files", "files", number, True, ""),
        Field("bytes", "size", size, True, ""), Field("deleted_rows", "deleted", number, True, ""),
        Field("inlined_rows", "inlined", number, True, ""), Field("partitioned_by", "partitioned by", listed, null=""),
        Field("comment", "comment", null=""),
    )  # fmt: skip
    with opened(lake, at) as found:
        where = (found.catalog.database, found.at, found.catalog.data_path)
        tables = table_summaries(shown(found))
        rows: list[Sequence[Any]] = [
            (t.schema, t.name, "table", t.rows, t.file_count, t.file_bytes, t.deleted_rows, t.inlined_rows,
             t.partitioned_by or None, t.comment)
            for t in tables
        ]  # fmt: skip
        unknown = [None] * 6
        rows += [(v.schema, v.name, "view", *unknown, v.tags.get("comment")) for v in objects.views(*where)]
        rows += [(macro.schema, macro.name, "macro", *unknown, None) for macro in objects.macros(*where)]
        empty = {schema.name for schema in objects.schemas(*where)} - {row[0] for row in rows}
        rows += [(schema, None, "schema", *unknown, None) for schema in empty]
        held, files = sum(t.rows for t in tables), sum(t.file_count for t in tables)
        amounts = (plural(len(tables), "table"), plural(held, "row"), plural(files, "file"))
        total = size(sum(table.file_bytes for table in tables))
        moment_of_it = f"snapshot {found.snapshot.id} of {moment(found.snapshot.time)}"
        note = f"{', '.join(amounts)}, {total}; {moment_of_it}"
    return Listing(fields, sorted(rows, key=lambda row: (row[0], row[1] or "", row[2])), note)


def snapshots(
    lake: LakeArgument,
    limit: LimitOption = _FEW,
    before: Annotated[
        int | None, typer.Option("--before", metavar="N", min=0, max=GREATEST_ID, help="Only those before this one.")
    ] = None,
) -> Report:
    """List the newest snapshots: when, who, and what they did."""
    changes = Field("changes", "changes", people=False)
    with opened(lake) as found:
        page = snapshot_summaries(found.catalog.database, limit=limit, before=before, newest=found.snapshot.id)
    rows = [(*of(one.snapshot), list(one.actions), one.changes) for one in page.items]
    return Listing((*SNAPSHOT, *MESSAGE, ACTIONS, changes), rows, rest(page.total - page.offset - len(rows)))


def history(lake: LakeArgument, table: TableArgument, limit: LimitOption = _FEW) -> Report:
    """List what snapshots did to a table: rows and files that came and went."""
    with opened(lake) as found:
        return history_of(found, table_of(found, table), limit)


def history_of(lake: ReadCatalog, table: TableInfo, limit: int) -> Listing:
    """What snapshots did to a table, newest first, up to the one that is looked at."""
    counts = (
        Field("rows_added", "rows added", number, True), Field("rows_removed", "rows removed", number, True),
        Field("files_added", "files added", number, True), Field("files_removed", "files removed", number, True),
    )  # fmt: skip
    page = table_history(lake.catalog.database, table, limit=limit, newest=lake.snapshot.id)
    rows = [
        (*of(one.snapshot), list(one.actions), one.rows_added, one.rows_removed, one.files_added, one.files_removed)
        for one in page.items
    ]
    return Listing((*SNAPSHOT, *MESSAGE, ACTIONS, *counts), rows, rest(page.total - len(rows)))


def of(snapshot: Snapshot) -> tuple[Any, ...]:
    """What every list of snapshots says of each."""
    return snapshot.id, snapshot.time, snapshot.author, snapshot.commit_message


def rest(count: int) -> str | None:
    """A note of how many lines are not shown."""
    return f"{number(count)} more: give a greater --limit" if count > 0 else None


def lakes() -> Report:
    """List the lakes that have names in penstock.toml or the environment."""
    known = configuration()
    fields = (
        Field("name", "name"), Field("location", "location"), Field("settings", "settings", listed, null=""),
        Field("error", "error", null=""),
    )  # fmt: skip
    lines = [_named(known, name) for name in known]
    return Listing(fields, lines, None if lines else known.told)


def _named(known: Configuration, name: str) -> Sequence[Any]:
    try:
        lake = known.lake(name)
        return name, str(parse_location(lake.uri)), sorted(lake.arguments), None
    except PenstockError as error:
        return name, None, None, str(error)
