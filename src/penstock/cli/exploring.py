"""The command `explore`: a lake as a page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.commands import command
from penstock.cli.lakes import LakeArgument, uri_of
from penstock.cli.reports import Report
from penstock.cli.texts import visible
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.errors import UnsupportedError

# What of a lake's configuration the explorer takes.
_TAKEN = ("data_path", "override_data_path", "metadata_schema", "metadata_parameters", "storage_options")


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
    call = attach_call(uri_of(lake), {})
    try:
        from penstock.explorer import serve
    except ModuleNotFoundError as error:
        raise UnsupportedError(f"{error.name} is not installed: pip install 'penstock[explorer]'") from None
    given = {name: call.arguments[name] for name in _TAKEN if name in call.arguments}
    serve(call.uri, host=host, port=port, spark=spark, open_browser=browser, say=_say, **given)
    return None


def _say(text: str) -> None:
    print(visible(text), flush=True)  # whoever reads it may be a program
