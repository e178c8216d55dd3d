"""The prompt of `penstock sql`: a line for statements, with history and completion of names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.shortcuts import CompleteStyle
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from penstock.cli.commands import told
from penstock.cli.frames import frame_listing
from penstock.cli.reports import Field, Listing, Style, people_console, show
from penstock.cli.texts import number
from penstock.ducklake.inspection.names import known_names
from penstock.ducklake.inspection.tables import table_summaries
from penstock.lake import Lake

_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "USING", "HAVING", "DISTINCT",
    "INSERT INTO", "VALUES", "UPDATE", "DELETE FROM", "MERGE INTO", "CREATE TABLE", "ALTER TABLE", "DROP TABLE",
    "DESCRIBE", "SHOW TABLES", "VERSION AS OF", "TIMESTAMP AS OF", "EXPLAIN",
)  # fmt: skip
_HELP = """Statements end with ; and may take several lines. Tab completes names.
.tables            what the lake has
.dialect duckdb    the language of the SQL: spark or duckdb
.quit              as Ctrl-D does"""
_ENDS = {".quit", ".exit", "quit", "exit", "quit;", "exit;"}
Dialect = Literal["spark", "duckdb"]


@dataclass
class Asked:
    """What a prompt asks of, and how it shows the answers."""

    lake: Lake
    dialect: Dialect
    most: int | None
    style: Style = field(default_factory=Style)

    def run(self, statement: str) -> None:
        """Run a statement and show what it gives."""
        show(frame_listing(self.lake.sql(statement, dialect=self.dialect), self.most), self.style)

    def words(self) -> list[str]:
        """What can be completed: names, in quotes where SQL wants them, and the words that queries begin with."""
        quote = "`" if self.dialect == "spark" else '"'
        names = known_names(self.lake._attachment.shown())
        return [*(".".join(_quoted(part, quote) for part in name) for name in names), *_WORDS]


def from_file(asked: Asked, lines: Iterable[str]) -> None:
    """Run the statements of a file; the first error ends it."""
    for statement in statements(lines):
        asked.run(statement)


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Statements, each of which ends where a line ends with `;`."""
    text = ""
    for line in lines:
        text += line if line.endswith("\n") else line + "\n"
        if _is_whole(text):
            yield text.strip().removesuffix(";")
            text = ""
    if text.strip():
        yield text.strip()


def at_prompt(asked: Asked, session: PromptSession[str] | None = None) -> None:
    """Ask for statements until the user has had enough; an error ends none but its own."""
    asking = session or prompt_session(asked)
    console = people_console()
    while True:
        try:
            text = asking.prompt(f"{asked.dialect}> ").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        if text.lower() in _ENDS:
            return
        if not text:
            continue
        try:
            if text.startswith("."):
                _command(asked, text)
            else:
                asked.run(text.removesuffix(";"))
        except KeyboardInterrupt:
            asked.lake.spark.sparkContext.cancelAllJobs()
        except Exception as error:
            console.print(told(error), style="red")


def prompt_session(asked: Asked, **terminal: Any) -> PromptSession[str]:
    """A prompt that knows the lake's names, takes several lines, and remembers what was asked before."""
    keys = KeyBindings()

    @Condition
    def _is_done() -> bool:
        text = session.default_buffer.text
        return not text.strip() or text.lstrip().startswith(".") or text.strip().lower() in _ENDS or _is_whole(text)

    @keys.add("enter", filter=_is_done)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    session: PromptSession[str] = PromptSession(
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "." * (width - 1) + " ",
        key_bindings=keys,
        history=_history(),
        completer=WordCompleter(asked.words, ignore_case=True, sentence=False, WORD=True),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        lexer=PygmentsLexer(SqlLexer),
        **terminal,
    )
    return session


def _command(asked: Asked, text: str) -> None:
    word, _, rest = text.partition(" ")
    if word == ".tables":
        tables = table_summaries(asked.lake._attachment.shown())
        fields = (Field("table", "table"), Field("rows", "rows", number, True))
        show(Listing(fields, [(table.full_name, table.rows) for table in tables]), asked.style)
    elif word == ".dialect" and rest.strip() in ("spark", "duckdb"):
        asked.dialect = "duckdb" if rest.strip() == "duckdb" else "spark"
    else:
        people_console().print(_HELP)


def _is_whole(text: str) -> bool:
    return text.rstrip().endswith(";")


def _quoted(name: str, quote: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else quote + name.replace(quote, quote * 2) + quote


def _history() -> History:
    """What was asked before, in a file that only its user may read; in memory where there can be none."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(state, "penstock", "history")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
