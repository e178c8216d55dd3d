"""Runs commands of `penstock` in this process."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from penstock.cli.application import app

STARTING = "starting Spark..."


@dataclass(frozen=True)
class Answer:
    """What a command has written, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code in (0, 1), self.err
        assert self.out.endswith("\n")
        return json.loads(self.out)

    @property
    def csv(self) -> list[dict[str, str]]:
        assert self.code == 0, self.err
        assert self.out.endswith("\n")
        return list(csv.DictReader(io.StringIO(self.out)))


def penstock(*arguments: str, given: str | None = None) -> Answer:
    """Run a command; `given` is its standard input."""
    result = CliRunner().invoke(app, list(arguments), input=given, prog_name="penstock")
    return Answer(result.exit_code, result.stdout, result.stderr)


def refused(*arguments: str, code: int = 1) -> str:
    """What a command says that fails: one line, and nothing for programs."""
    answer = penstock(*arguments)
    assert (answer.code, answer.out) == (code, ""), answer
    if code == 1:
        *notes, told = answer.err.splitlines()
        assert notes in ([], [STARTING])
        assert told.startswith("penstock: ")
    return answer.err
