"""Where a lake's metadata lives: the text after `ducklake:`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.errors import AttachError

_ENGINES = ("sqlite", "postgres", "mysql")
_SECRET = re.compile(r"(?i)\b(password|passwd|pwd|pw|sslpassword)(\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)")
_URL_SECRET = re.compile(r"(://[^/@:\s]*:)([^@\s]*)(@)")


@dataclass(frozen=True)
class Location:
    """A metadata database: its engine and how to reach it. Its text never shows a password."""

    engine: str
    target: str = field(repr=False)

    def __str__(self) -> str:
        prefix = "" if self.engine == "duckdb" else f"{self.engine}:"
        return f"ducklake:{prefix}{redact(self.target)}"

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"


def redact(text: str) -> str:
    """The text with the value of every password in it replaced."""
    return _URL_SECRET.sub(r"\1***\3", _SECRET.sub(r"\1\2***", text))


def secrets_in(text: str) -> tuple[str, ...]:
    """The passwords that stand in a connection text, bare and as written."""
    found = [match[3] for match in _SECRET.finditer(text)] + [match[2] for match in _URL_SECRET.finditer(text)]
    return tuple(form for value in found for form in (value, value.strip("'")) if form)


def parse_location(uri: str) -> Location:
    """`ducklake:FILE`, `ducklake:sqlite:FILE`, `ducklake:postgres:LIBPQ`, `ducklake:mysql:KEY=VALUE ...`."""
    if not uri.startswith("ducklake:"):
        raise AttachError(f"{redact(uri)!r} is not a DuckLake location; write ducklake:FILE or ducklake:sqlite:FILE")
    rest = uri.removeprefix("ducklake:")
    engine, separator, target = rest.partition(":")
    if engine == "postgresql" and target.startswith("//"):
        return Location("postgres", rest)
    if engine not in _ENGINES or not separator:
        engine, target = "duckdb", rest.removeprefix("duckdb:")
    if not target:
        raise AttachError(f"{uri!r} names no metadata database; write it after the colon")
    return Location(engine, target)
