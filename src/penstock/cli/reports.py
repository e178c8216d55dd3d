"""Shows what a command found: as a table for people, or as JSON or CSV for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.cli.machine_values import csv_field, json_text
from penstock.cli.outputs import written
from penstock.cli.texts import visible

_NOTHING = "–"
_WIDE = 10_000  # of a file or a pipe, which has no edge


@dataclass(frozen=True)
class Field:
    """A column of a listing: its name for programs and its heading for people, and how these are shown a value."""

    name: str
    heading: str
    shown: Callable[[object], str] = visible
    numeric: bool = False
    null: str = _NOTHING
    people: bool = True  # whether it is shown to them


@dataclass(frozen=True)
class Listing:
    """Lines of the same fields; `note` is for people only."""

    fields: Sequence[Field]
    rows: Iterable[Sequence[Any]]
    note: str | None = None


@dataclass(frozen=True)
class Sheet:
    """One thing with what is known of it, and the lines that belong to it. CSV has only these lines."""

    facts: Mapping[str, Any]
    shown: Mapping[str, str]  # the facts as people are shown them
    name: str  # of the lines, for programs
    listing: Listing = field(default_factory=lambda: Listing((), ()))


Report = Listing | Sheet | None


@dataclass(frozen=True)
class Style:
    """How reports are written."""

    json: bool = False
    csv: bool = False
    quiet: bool = False

    @property
    def is_for_people(self) -> bool:
        """Whether no program was asked for."""
        return not (self.json or self.csv)


def show(report: Report, style: Style) -> None:
    """Write a report to standard output."""
    if report is None:
        return
    if style.json:
        _write(_json(report))
    elif style.csv:
        _write(_csv(report.listing if isinstance(report, Sheet) else report))
    else:
        _show_people(report, style)


def note(text: str, style: Style) -> None:
    """Tell people something besides, on standard error."""
    if style.is_for_people and not style.quiet:
        print(visible(text), file=sys.stderr)


def _write(lines: Iterator[str]) -> None:
    """Lines in UTF-8, whatever the terminal's encoding is."""
    out: TextIO = sys.stdout
    out.flush()
    for line in lines:
        text = visible(line) if out.isatty() else line
        with written():
            out.buffer.write((text + "\n").encode("utf-8", "surrogatepass"))
    with written():
        out.buffer.flush()


def _json(report: Listing | Sheet) -> Iterator[str]:
    if isinstance(report, Sheet):
        lines = [_record(report.listing, row) for row in report.listing.rows]
        yield json_text({**report.facts, report.name: lines})
        return
    yield "["
    before: str | None = None
    for row in report.rows:
        if before is not None:
            yield before + ","
        before = "  " + json_text(_record(report, row))
    if before is not None:
        yield before
    yield "]"


def _record(listing: Listing, row: Sequence[Any]) -> dict[str, Any]:
    return {field.name: value for field, value in zip(listing.fields, row, strict=True)}


def _csv(listing: Listing) -> Iterator[str]:
    yield ",".join(csv_field(field.name) for field in listing.fields)
    for row in listing.rows:
        yield ",".join(map(csv_field, row)) or '""'  # readers pass over an empty line


def people_console(file: TextIO | None = None) -> Console:
    """A console that takes no text for markup, and cuts none where there is no edge."""
    console = _Console(markup=False, emoji=False, highlight=False, file=file)
    if not console.is_terminal:
        console = _Console(markup=False, emoji=False, highlight=False, file=file, width=_WIDE)
    return console


class _Console(Console):
    """Leaves it to the program what becomes of a reader that has seen enough."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print(self, *objects: Any, **options: Any) -> None:
        with written():
            super().print(*objects, **options)


def _show_people(report: Listing | Sheet, style: Style) -> None:
    console = people_console()
    if isinstance(report, Sheet):
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, value in report.shown.items():
            facts.add_row(Text(visible(name)), Text(visible(value)))
        console.print(facts)
        if not report.listing.fields:
            return
        report = report.listing
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown = [each for each in report.fields if each.people]
    for each in shown:
        table.add_column(Text(visible(each.heading)), justify="right" if each.numeric else "left", overflow="fold")
    for row in report.rows:
        pairs = zip(report.fields, row, strict=True)
        table.add_row(*(_cell(each, value) for each, value in pairs if each.people))
    console.print(table)
    if report.note and not style.quiet:
        console.print(Text(visible(report.note), style="dim"))


def _cell(field: Field, value: Any) -> Text:
    return Text(field.null, style="dim") if value is None else Text(visible(field.shown(value)))
