"""The commands that ask Spark for rows: sql and changes."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli.commands import command, style
from penstock.cli.lakes import MOST, AtOption, LakeArgument, TableArgument, snapshot_or_time
from penstock.cli.reports import Report, show
from penstock.cli.sessions import attached

_MANY = 100


class Dialect(StrEnum):
    """The languages of SQL."""

    spark = "spark"
    duckdb = "duckdb"


RowsOption = Annotated[
    int | None,
    typer.Option(
        "--limit", "-n", min=0, max=MOST, metavar="N", help=f"Rows at most; 0 for all. People see {_MANY} by default."
    ),
]


def register(app: typer.Typer) -> None:
    """Makes these functions commands of a program."""
    command(
        app, "sql", 'penstock sql sales "SELECT region, sum(total) FROM orders GROUP BY region"',
        'penstock sql sales --dialect duckdb "FROM orders LIMIT 5" --json', "penstock sql sales   [dim]# a prompt[/]",
    )(sql)  # fmt: skip
    command(app, "changes", "penstock changes sales orders 3 9", "penstock changes sales orders 3 --csv")(changes)


def sql(
    lake: LakeArgument,
    statement: Annotated[
        str | None, typer.Argument(metavar="[STATEMENT]", help="One statement; a prompt without.", show_default=False)
    ] = None,
    dialect: Annotated[Dialect, typer.Option(help="The language of the SQL.")] = Dialect.spark,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse what changes the lake.")] = False,
    limit: RowsOption = None,
    at: AtOption = None,
) -> Report:
    """Run a statement on Spark, or many at a prompt; those of a file by `< FILE`."""
    most = (_MANY if style().is_for_people else 0) if limit is None else limit
    with attached(lake, at=at, read_only=read_only) as opened:
        from penstock.cli.frames import frame_listing
        from penstock.cli.prompt import Asked, at_prompt, from_file

        if statement is not None:
            show(frame_listing(opened.sql(statement, dialect=dialect.value), most or None), style())
            return None
        asked = Asked(opened, dialect.value, most or None, style())
        if sys.stdin.isatty():
            at_prompt(asked)
        else:
            from_file(asked, sys.stdin)
    return None


def changes(
    lake: LakeArgument,
    table: TableArgument,
    start: Annotated[str, typer.Argument(metavar="FROM", help="The first snapshot, by its number or a time.")],
    end: Annotated[
        str | None, typer.Argument(metavar="[TO]", help="The last one; by default the newest.", show_default=False)
    ] = None,
    limit: RowsOption = None,
) -> Report:
    """List the rows that a span of snapshots inserted, deleted and updated."""
    most = (_MANY if style().is_for_people else 0) if limit is None else limit
    first, last = snapshot_or_time(start), None if end is None else snapshot_or_time(end)
    with attached(lake, read_only=True) as opened:
        from penstock.cli.frames import frame_listing

        found = opened.table(table).changes(first, last)
        show(frame_listing(found.orderBy("snapshot_id", "rowid"), most or None), style())
    return None
