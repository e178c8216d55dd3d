"""Documents whose code runs, as it stands there: each in a folder of its own, and with other words for some of its own.

What a document says that its code prints, in blocks of `text`, has been printed by then; `...` stands for anything.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from support.processes import environment

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+(?: [\w-]+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What runs; the others are pictures, or what a person does once by hand.
RUN = ("python", "sql", "console")
# DuckDB's own program, in a process of its own: beside Penstock's SQLite, another one in this process is not safe.
DUCKDB = """
import sys, duckdb, duckdb_extensions
for name in ("ducklake", "sqlite_scanner"):
    duckdb_extensions.import_extension(name)
connection = duckdb.connect()
for statement in duckdb.extract_statements(sys.stdin.read()):
    found = connection.sql(statement)
    if found is not None:
        print(found)
"""


class Document:
    """A document below the project's folder. Words of its own that others stand for, it has."""

    def __init__(self, path: str, instead: Mapping[str, str] | None = None, **names: Any) -> None:
        text = (ROOT / path).read_text()
        for word, other in (instead or {}).items():
            assert word in text, word
            text = text.replace(word, other)
        self.path, self.blocks = path, BLOCK.findall(text)
        self.printed: list[str] = []
        self.names: dict[str, Any] = names | {"print": self._print}

    def run(self, **others: Callable[[str], object]) -> None:
        """Run the blocks in their order: Python here, other languages by the functions of their names.

        What those give back counts as printed, and so does what a block of Python shows.
        """
        runners = {
            "python": self.run_python,
            "console": self.run_console,
            "sql duckdb": run_duckdb,
            "text": self.check_printed,
        } | others
        for language, code in self.blocks:
            if language in runners:
                said = runners[language](code)
                self.printed += [] if said is None else [str(said)]
            else:
                assert language.split()[0] not in RUN, f"{self.path}: nothing runs {language}"

    def run_python(self, code: str) -> None:
        with redirect_stdout(io.StringIO()) as shown:
            exec(compile(code, self.path, "exec"), self.names)
        self.printed.append(shown.getvalue())

    def run_console(self, session: str) -> str:
        """Run the lines after `$` in a shell, one by one; what stands below one is what it prints."""
        printed = []
        for command, expected in re.findall(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            ran = subprocess.run(
                ["bash", "-c", command], env=with_penstock(), capture_output=True, text=True, check=False, timeout=120
            )
            said = ran.stdout + ran.stderr
            if expected.strip():
                assert matches(expected, said), (command, expected, said)
            else:
                assert ran.returncode == 0, (command, said)
            printed.append(said)
        assert printed, "no line begins with $"
        return "".join(printed)

    def position(self, language: str) -> int:
        """Which block is the first of a language."""
        return [name for name, _ in self.blocks].index(language)

    def check_printed(self, expected: str) -> None:
        """Something that was printed is this."""
        assert any(matches(expected, text) for text in self.printed), (expected, self.printed)

    def _print(self, *what: object) -> None:
        self.printed.append(" ".join(map(str, what)))
        print(*what)


def matches(expected: str, said: str) -> bool:
    """Whether a text is as it was expected, but for blanks and what `...` stands for."""
    pattern = ".*".join(map(re.escape, " ".join(expected.split()).split("...")))
    return re.fullmatch(pattern, " ".join(said.split())) is not None


def run_duckdb(statements: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", DUCKDB], input=statements, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def with_penstock() -> dict[str, str]:
    """The environment of a shell that finds the command `penstock`, that of this project."""
    programs = Path(sys.executable).parent
    return environment() | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}
