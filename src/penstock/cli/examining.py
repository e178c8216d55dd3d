"""The command `doctor`: what is wrong or slow in a lake, and the command that mends it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.commands import FAILED, command, style
from penstock.cli.lakes import LakeArgument, opened
from penstock.cli.reports import Field, Listing, Report, show
from penstock.cli.texts import plural
from penstock.ducklake.catalog.location import redact

if TYPE_CHECKING:
    from penstock.ducklake.inspection.health import Finding

_FIELDS = (
    Field("severity", ""), Field("check", "check"), Field("schema", "schema", people=False),
    Field("table", "table", null=""), Field("message", "what was found"), Field("numbers", "numbers", people=False),
    Field("remedy", "remedy", null=""), Field("verb", "in Python", people=False),
)  # fmt: skip
_PROBLEM, _FINE = "problem", "fine"


def register(app: typer.Typer) -> None:
    """Makes this function a command of a program."""
    command(app, "doctor", "penstock doctor sales", "penstock doctor sales --no-store --json")(doctor)


def doctor(
    lake: LakeArgument,
    store: Annotated[bool, typer.Option(help="Whether the store is asked which files it has.")] = True,
) -> Report:
    """Find what is wrong or slow in a lake, and the command that mends it. Exit code 1: there are problems."""
    from penstock.ducklake.inspection.health import lake_health

    with opened(lake) as found:
        if store:
            found.use_store()
        findings = lake_health(found.catalog, found.at, store=store)
    problems = sum(finding.severity == _PROBLEM for finding in findings)
    told = [finding for finding in findings if not (style().quiet and finding.severity == _FINE)]
    rows = [
        (one.severity, one.check, one.schema, one.table, one.message, dict(one.numbers),
         _remedy(one, lake), one.verb or None)
        for one in told
    ]  # fmt: skip
    show(Listing(_FIELDS, rows, plural(problems, "problem") if problems else "no problems"), style())
    if problems:
        raise typer.Exit(FAILED)
    return None


def _remedy(found: Finding, lake: str) -> str | None:
    """The command that mends something, with the lake's name in it; people get what Python has where there is none."""
    if found.remedy:
        return found.remedy.replace("LAKE", shlex.quote(redact(lake)), 1)
    return found.verb or None if style().is_for_people else None
