"""The command `explore`: a lake as a page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.commands import command, style
from penstock.cli.delayed_imports import bring_back
from penstock.cli.lakes import LakeArgument, uri_of
from penstock.cli.reports import Report, note
from penstock.cli.texts import visible
from penstock.errors import UnsupportedError


def register(app: typer.Typer) -> None:
    """Makes this function a command of a program."""
    command(app, "explore", "penstock explore sales", "penstock explore sales --port 8080 --no-browser")(explore)


def explore(
    lake: LakeArgument,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 0,
    spark: Annotated[bool, typer.Option("--spark", help="Read rows with Spark, not with DuckDB.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> Report:
    """Show a lake in the browser, read-only, until Ctrl-C."""
    try:
        from penstock.explorer import serve
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"{error.name} is not installed: pip install 'penstock[explorer]'") from None
    if spark:
        note("starting Spark...", style())
        bring_back()
    serve(uri_of(lake), host=host, port=port, spark=spark, open_browser=browser, say=_say)
    return None


def _say(text: str) -> None:
    print(visible(text), flush=True)  # whoever reads it may be a program
