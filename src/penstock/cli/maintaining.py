"""The command `maintain`: what keeps a lake small and quick, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.commands import command, style
from penstock.cli.lakes import MOST, LakeArgument, complete_table
from penstock.cli.reports import Field, Listing, Report
from penstock.cli.sessions import attached
from penstock.cli.texts import moment, number
from penstock.ducklake.model.names import parse_table_name
from penstock.errors import InvalidError

if TYPE_CHECKING:
    from penstock.lake import Lake


class Work(StrEnum):
    """The verbs of maintenance."""

    flush = "flush"
    merge = "merge"
    rewrite = "rewrite"
    expire = "expire"
    cleanup = "cleanup"
    orphans = "orphans"
    checkpoint = "checkpoint"


_OF_TABLES = (Work.flush, Work.merge, Work.rewrite)
_BY_AGE = (Work.expire, Work.cleanup, Work.orphans)
_OF_FILES = (Work.cleanup, Work.orphans)
_WORK = (
    "flush: write rows that the catalog keeps to files. merge: small files into large ones. rewrite: files with many "
    "deletes. expire: forget old snapshots. cleanup: delete files that nothing needs. orphans: delete files of writers "
    "that crashed. checkpoint: all of it."
)
_WITHOUT_UNIT = re.compile(r"\s*[+-]?[\d.,_]+\s*")
_TABLE, _FILES = Field("table", "table"), Field("files", "files", number, True)
_DONE: Mapping[Work, tuple[Field, ...]] = {
    Work.flush: (_TABLE, Field("rows", "rows", number, True)),
    Work.merge: (_TABLE, _FILES, Field("made", "made", number, True)),
    Work.rewrite: (_TABLE, _FILES, Field("made", "made", number, True)),
    Work.expire: (Field("snapshot", "snapshot", number, True), Field("time", "time", moment)),
    Work.cleanup: (Field("path", "path"),),
    Work.orphans: (Field("path", "path"),),
    Work.checkpoint: (Field("step", "step"), Field("things", "things"), Field("count", "count", number, True)),
}


def register(app: typer.Typer) -> None:
    """Makes this function a command of a program."""
    command(
        app, "maintain", "penstock maintain sales --dry-run", "penstock maintain sales merge --table eu.orders",
        "penstock maintain sales expire --older-than '30 days'",
    )(maintain)  # fmt: skip


def maintain(
    lake: LakeArgument,
    work: Annotated[Work, typer.Argument(metavar="[WORK]", help=_WORK)] = Work.checkpoint,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do nothing but tell what would be done.")] = False,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Flush, merge, rewrite: this one.", autocompletion=complete_table),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Expire, cleanup, orphans: '7 days', or a time; else as options say."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Cleanup, orphans: however young they are.")] = False,
    keep_last: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=MOST, help="Expire: all but so many of the newest.")
    ] = None,
) -> Report:
    """Maintain a lake: with one kind of work, or all of it (checkpoint)."""
    _refuse("--table", table, work, _OF_TABLES)
    _refuse("--older-than", older_than, work, _BY_AGE)
    _refuse("--all", everything or None, work, _OF_FILES)
    _refuse("--keep-last", keep_last, work, (Work.expire,))
    given = _ages(older_than, everything, keep_last)
    with attached(lake) as opened:
        schema, name = (None, None) if table is None else parse_table_name(table)
        if work in _OF_TABLES:
            rows = _tables(opened, work, name, schema, dry_run)
        elif work is Work.checkpoint:
            rows = _planned_checkpoint(opened) if dry_run else [tuple(row) for row in opened.checkpoint().collect()]
        else:
            rows = _old(opened, work, {**given, "dry_run": dry_run})
    if style().quiet and style().is_for_people:
        return None
    note = "nothing was done: it is a dry run" if dry_run else None if rows else "there was nothing to do"
    return Listing(_DONE[work], rows, note)


def _refuse(option: str, value: object, work: Work, takes: tuple[Work, ...]) -> None:
    if value is not None and work not in takes:
        raise typer.BadParameter(f"{option} is for {', '.join(takes)}, not for {work}")


def _tables(lake: Lake, work: Work, name: str | None, schema: str | None, dry_run: bool) -> list[tuple[Any, ...]]:
    from penstock.ducklake.maintenance import planned_work

    plans: Mapping[Work, Callable[..., Iterable[Sequence[Any]]]] = {
        Work.flush: planned_work.planned_flush,
        Work.merge: planned_work.planned_merges,
        Work.rewrite: planned_work.planned_rewrites,
    }
    if dry_run:
        lines = plans[work](lake._attachment, name, schema)
    elif work is Work.flush:
        lines = lake.flush_inlined_data(table=name, schema=schema).collect()
    else:
        do = lake.merge_adjacent_files if work is Work.merge else lake.rewrite_data_files
        lines = do(name, schema=schema).collect()
    return [(f"{line[0]}.{line[1]}", *line[2:]) for line in lines]


def _old(lake: Lake, work: Work, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if work is Work.expire:
        return [(row[0], row[1].replace(tzinfo=UTC)) for row in lake.expire_snapshots(**given).collect()]
    do = lake.cleanup_old_files if work is Work.cleanup else lake.delete_orphaned_files
    return [tuple(row) for row in do(**given).collect()]


def _planned_checkpoint(lake: Lake) -> list[tuple[Any, ...]]:
    """The steps of a checkpoint with what each finds now: one step may make work for another."""
    flushed = _tables(lake, Work.flush, None, None, dry_run=True)
    rewritten, merged = (_tables(lake, work, None, None, dry_run=True) for work in (Work.rewrite, Work.merge))
    old = {work: len(_old(lake, work, {"dry_run": True})) for work in _BY_AGE}
    return [
        ("flush_inlined_data", "rows", sum(line[1] for line in flushed)),
        ("expire_snapshots", "snapshots", old[Work.expire]),
        ("rewrite_data_files", "files", sum(line[1] for line in rewritten)),
        ("merge_adjacent_files", "files", sum(line[1] for line in merged)),
        ("cleanup_old_files", "files", old[Work.cleanup]),
        ("delete_orphaned_files", "files", old[Work.orphans]),
    ]


def _ages(older_than: str | None, everything: bool, keep_last: int | None) -> dict[str, Any]:
    given: dict[str, Any] = {"older_than": None if older_than is None else _moment(older_than)}
    given |= {"cleanup_all": True} if everything else {}
    return {name: value for name, value in {**given, "keep_last": keep_last}.items() if value is not None}


def _moment(text: str) -> datetime:
    """A time, or the moment that is so long ago. What is to come is refused: all that is new would be old."""
    from penstock.ducklake.catalog.ages import before_now

    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        if _WITHOUT_UNIT.fullmatch(text):
            raise typer.BadParameter(f"{text!r} has no unit: write '{text.strip()} days', or a time") from None
        try:
            return before_now(text)
        except InvalidError as error:
            raise typer.BadParameter(f"{text!r} {error}; or a time, 2026-04-10") from None
    moment = time if time.tzinfo else time.replace(tzinfo=UTC)
    if moment > datetime.now(UTC):
        raise typer.BadParameter(f"{text!r} is yet to come; for all but what is needed write '0 days'")
    return moment
