"""The commands that make lakes: create, copy-catalog, and import."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.commands import command, style
from penstock.cli.lakes import LakeArgument, complete_lake, uri_of
from penstock.cli.reports import Report, note, show
from penstock.cli.sessions import attached
from penstock.ducklake.catalog.location import redact
from penstock.errors import InvalidError


def register(app: typer.Typer) -> None:
    """Makes these functions commands of a program."""
    command(
        app, "create", "penstock create ducklake:sales.ducklake",
        "penstock create ducklake:postgres:dbname=sales --data-path s3://bucket/sales/",
    )(create)  # fmt: skip
    command(
        app, "copy-catalog", "penstock copy-catalog ducklake:sales.ducklake ducklake:postgres:dbname=sales"
    )(copy_catalog)  # fmt: skip
    importing = typer.Typer(no_args_is_help=True, help="Bring the tables of another system into a lake.")
    command(importing, "duckdb", "penstock import duckdb shop.duckdb sales")(import_duckdb)
    app.add_typer(importing, name="import")


def create(
    lake: LakeArgument,
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where data files are; by default beside a DuckDB file.")
    ] = None,
    encrypted: Annotated[bool, typer.Option("--encrypted", help="Encrypt its data files.")] = False,
) -> Report:
    """Make a lake, which is empty."""
    from penstock.ducklake.catalog.named_lakes.new_lakes import create_lake

    given = {"data_path": data_path, "encrypted": encrypted or None}
    with closing(create_lake(uri_of(lake), given).database) as database:
        location = str(database.location)
    named = shlex.quote(redact(lake))
    note(f'there is a lake at {location}; next: penstock sql {named} "CREATE TABLE orders (id BIGINT)"', style())
    return None


def copy_catalog(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The lake: as LAKE elsewhere.", autocompletion=complete_lake)
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="A location that has no lake, or a name of one.")],
    data_path: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the copy looks for data files, if they were moved.")
    ] = None,
) -> Report:
    """Copy a lake's catalog, all snapshots of it, to another database. Data files stay where they are."""
    from penstock.ducklake.catalog.catalog_copy import copy_catalog

    made = copy_catalog(uri_of(source), uri_of(target), data_path=data_path)
    note(f"copied up to snapshot {made.id}; let only one of the two be written to from now on", style())
    return None


def import_duckdb(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of DuckDB's.", show_default=False)],
    lake: LakeArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do nothing but tell what would be brought.")] = False,
) -> Report:
    """Bring schemas, tables, views and macros of a DuckDB file into a lake, and tell what was changed or left."""
    if not file.is_file():
        raise InvalidError(f"there is no file {str(file)!r}")
    with attached(lake) as opened:
        from penstock.cli.frames import frame_listing

        report = opened.import_duckdb(str(file), dry_run=dry_run)
        if not (style().quiet and style().is_for_people):
            show(frame_listing(report), style())
    return None
