"""The program `penstock`: its commands, its help and its exit codes."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated

import typer

from penstock.cli import examining, exploring, looking, maintaining, moving, querying, showing
from penstock.cli.commands import FAILED, INTERRUPTED
from penstock.cli.delayed_imports import put_off
from penstock.cli.outputs import prepare_outputs, written
from penstock.errors import InvalidError
from penstock.version import __version__

_HELP = (
    "Lakes at a terminal: DuckLake tables for Spark and DuckDB.\n\nLAKE is a location (ducklake:sales.ducklake, "
    "ducklake:postgres:dbname=sales), a file, or the name of a lake in penstock.toml."
)
_EPILOG = "\n\n".join(
    f"[dim]$[/] {line:<46} [dim]# {why}[/]"
    for line, why in (
        ("penstock create ducklake:sales.ducklake", "a first lake"),
        ('penstock sql sales.ducklake "CREATE TABLE ..."', "ask and change it"),
        ("penstock ls sales.ducklake", "what is in it"),
        ("penstock show sales.ducklake orders --files", "one table"),
        ("penstock doctor sales.ducklake", "what to mend"),
        ("penstock sql sales.ducklake", "a prompt"),
    )
)

app = typer.Typer(
    name="penstock",
    help=_HELP,
    epilog=_EPILOG,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
for part in (looking, showing, querying, maintaining, examining, moving, exploring):
    part.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Tell the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    # Spark hands times to Python in the process's own zone: here all times are in UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()


def run(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns the program's exit code."""
    put_off()
    if not prepare_outputs():
        return FAILED
    try:
        with written():  # help too
            code = _code(arguments)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except InvalidError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return FAILED


def _code(arguments: list[str] | None) -> int:
    try:
        app(arguments, prog_name="penstock")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
