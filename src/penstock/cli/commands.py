"""Makes a function a command: it gives a report, which is shown as was asked for, and its errors are one line."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any

import typer

from penstock.cli.outputs import forget_output
from penstock.cli.reports import Report, Style, show
from penstock.cli.texts import one_line
from penstock.ducklake.catalog.location import redact
from penstock.errors import PenstockError

TRACEBACK = "PENSTOCK_TRACEBACK"
FAILED, INTERRUPTED = 1, 130
_OUTPUT = (
    ("json", Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output, and nothing else.")]),
    ("csv", Annotated[bool, typer.Option("--csv", help="For programs: CSV with a header.")]),
    ("quiet", Annotated[bool, typer.Option("--quiet", "-q", help="Only what was asked for: no notes, no progress.")]),
)
_style: ContextVar[Style] = ContextVar("style", default=Style())  # noqa: B039


def style() -> Style:
    """How the running command shows what it finds."""
    return _style.get()


def command(app: typer.Typer, name: str, *examples: str) -> Callable[[Callable[..., Report]], Callable[..., Report]]:
    """Registers a function that gives a report as a command, with the options that all have."""

    def registered(function: Callable[..., Report]) -> Callable[..., Report]:
        signature = inspect.signature(function, eval_str=True)
        only = inspect.Parameter.KEYWORD_ONLY
        own = [inspect.Parameter(one, only, default=False, annotation=kind) for one, kind in _OUTPUT]

        @wraps(function)
        def shown(*args: Any, json: bool, csv: bool, quiet: bool, **given: Any) -> None:
            if json and csv:
                raise typer.BadParameter("give --json or --csv, not both")
            _style.set(Style(json, csv, quiet))
            with errors_told():
                show(function(*args, **given), style())

        parameters = [one.replace(kind=only) for one in signature.parameters.values()]
        shown.__signature__ = signature.replace(parameters=[*parameters, *own])  # type: ignore[attr-defined]
        shown.__annotations__ = {one.name: one.annotation for one in (*parameters, *own)}
        app.command(name, epilog="\n\n".join(f"[dim]$[/] {example}" for example in examples))(shown)
        return function

    return registered


@contextmanager
def errors_told() -> Iterator[None]:
    """Tells an error in one line on standard error, and ends the program."""
    if os.environ.get(TRACEBACK):
        yield
        return
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except BrokenPipeError:  # `| head` has seen enough
        forget_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        print(f"penstock: {told(error)}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def told(error: Exception) -> str:
    """What people are told of an error: ours and those of Spark's SQL speak for themselves."""
    text = redact(str(error))
    if isinstance(error, PenstockError):
        return one_line(text)
    if _is_of_spark(error):
        return one_line(text.strip().partition("\n")[0])  # the plan and the JVM follow
    return f"{one_line(f'{type(error).__name__}: {text}')} (this should not happen; {TRACEBACK}=1 shows where it did)"


def _is_of_spark(error: Exception) -> bool:
    errors = sys.modules.get("pyspark.errors")
    return errors is not None and isinstance(error, errors.PySparkException)
