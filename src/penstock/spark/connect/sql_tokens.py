"""Splits Spark SQL into tokens: enough to find a list's columns, or the parts of a predicate, in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | --[^\n]* | /\*(?!\+).*?\*/ )
  | (?P<name> `(?:[^`]|``)*` )
  | (?P<string> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  | (?P<number> (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[A-Za-z]{0,2}(?!\w) )
  | (?P<word> \w+ )
  | (?P<sign> <=>|<=|>=|<>|!=|==|\|\||->|. )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = ("(", "["), (")", "]")


class Token(NamedTuple):
    """A token by its kind, its text, and where that begins and ends."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word, as keywords are compared; nothing where it is none."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def identifier(self) -> str | None:
        """The name that it stands for, if it is one."""
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == "word" else None

    @property
    def plain_text(self) -> str | None:
        """What a text literal says, if it has nothing in it that a setting gives another meaning."""
        inner = self.text[1:-1]
        if self.kind != "string" or self.text[0] != "'" or "\\" in inner or "'" in inner:
            return None
        return inner


def tokens(text: str) -> list[Token]:
    """The tokens of a text, without spaces and comments."""
    found = [Token(str(match.lastgroup), match[0], *match.span()) for match in _TOKEN.finditer(text)]
    return [token for token in found if token.kind != "space"]


def path_of(found: Sequence[Token]) -> list[str] | None:
    """The names of a path, `a.b.c`; None where the tokens are none."""
    names, dots = found[::2], found[1::2]
    path = [token.identifier for token in names]
    if len(found) % 2 == 0 or any(dot.text != "." for dot in dots):
        return None
    return [name for name in path if name is not None] if None not in path else None


def parts(found: Sequence[Token], separator: str) -> list[list[Token]]:
    """The tokens between separators that stand in no brackets."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if token.text == separator and not depth:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces
