"""Reads a list of columns in Spark's DDL, and replaces types in it, without Spark's own parser.

A Spark Connect server parses names and types, which is the most of it; not defaults, nor types that Spark lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import InvalidError, UnsupportedError
from penstock.spark.connect.sessions import client_of
from penstock.spark.connect.sql_tokens import Token, tokens

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "REFERENCES")
_OPTIONS = ("NOT", "DEFAULT", "COMMENT", "GENERATED", *_CONSTRAINTS)
_NESTED = ("ARRAY", "MAP", "STRUCT")

Replace = Callable[[str], str | None]  # a type's name, as another one's; None for one that stays


@dataclass(frozen=True)
class ColumnText:
    """A column of a list: DDL without its default, and that."""

    ddl: str
    default: str | None


def read_columns(ddl: str, replace: Replace) -> list[ColumnText]:
    """The columns of a list, types replaced.

    Raises:
        InvalidError: It is no list of columns.
        UnsupportedError: It has constraints or generated columns.
    """
    reader = _Reader(ddl, tokens(ddl), replace)
    columns = [reader.column()]
    while reader.goes_on():
        columns.append(reader.column())
    return columns


def parse_types(spark: SparkSession, ddl: str) -> T.DataType:
    """The names and types of a list, parsed by the server by the settings of the session."""
    parsed: T.DataType = client_of(spark)._analyze(method="ddl_parse", ddl_string=ddl).parsed
    return parsed


@dataclass
class _Reader:
    """Reads columns, token by token."""

    text: str
    tokens: Sequence[Token]
    replace: Replace
    place: int = 0

    def goes_on(self) -> bool:
        """Whether there is another column, behind a comma."""
        if self.place == len(self.tokens):
            return False
        self.place += 1
        return True

    def column(self) -> ColumnText:
        """The next column."""
        if self._is_constraint():
            raise UnsupportedError(f"{self.text!r} has a constraint; of those, DuckLake has NOT NULL only")
        name = self._taken()
        if name.identifier is None:
            raise InvalidError(f"{self.text!r} is not a list of columns: {name.text!r} is no name")
        ddl, not_null, comment, default = f"{name.text} {self._type(())}", "", "", None
        while self.place < len(self.tokens) and self.tokens[self.place].text != ",":
            match self._taken().keyword:
                case "NOT" if self._next == "NULL":
                    self.place += 1
                    not_null = " NOT NULL"
                case "COMMENT" if not comment:
                    comment = f" COMMENT {self._literal()}"
                case "DEFAULT" if default is None:
                    default = self._default()
                case "GENERATED":
                    raise UnsupportedError(f"column {name.identifier} is generated; DuckLake has no such columns")
                case word if word in _CONSTRAINTS:
                    raise UnsupportedError(f"{self.text!r} has a constraint; of those, DuckLake has NOT NULL only")
                case _:
                    raise self._unexpected(self.tokens[self.place - 1])
        return ColumnText(ddl + not_null + comment, default)

    def _is_constraint(self) -> bool:
        """Whether it is no column, which may have such a name too."""
        words = [token.text.upper() for token in self.tokens[self.place : self.place + 3]]
        match words:
            case ["CHECK" | "UNIQUE", "(", *_] | ["PRIMARY" | "FOREIGN", "KEY", *_]:
                return True
            case ["CONSTRAINT", _, last]:
                return last in _CONSTRAINTS
        return False

    def _literal(self) -> str:
        """A text, which may be a raw one."""
        text = self._taken().text
        return text + self._taken().text if text.upper() == "R" else text

    @property
    def _next(self) -> str:
        return self.tokens[self.place].keyword if self.place < len(self.tokens) else ""

    def _taken(self) -> Token:
        if self.place >= len(self.tokens):
            raise InvalidError(f"{self.text!r} is not a list of columns: a name or a type is missing")
        self.place += 1
        return self.tokens[self.place - 1]

    def _unexpected(self, token: Token) -> InvalidError:
        return InvalidError(f"{self.text!r} is not a list of columns: it goes on at {token.text!r}")

    def _type(self, ends: tuple[str, ...]) -> str:
        """A type, up to one of its ends or to what is said of its column."""
        first = self._taken()
        if first.keyword in _NESTED and self.place < len(self.tokens) and self.tokens[self.place].text in ("<", "<>"):
            return f"{first.text}{self._nested(first.keyword)}"
        texts, depth = [first.text], 0
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            if not depth and (token.text in (*ends, ",") or token.keyword in _OPTIONS):
                break
            depth += (token.text == "(") - (token.text == ")")
            texts.append(self._taken().text)
        replaced = self.replace(first.text.lower()) if len(texts) == 1 and first.kind == "word" else None
        return " ".join(texts) if replaced is None else replaced

    def _nested(self, kind: str) -> str:
        if self._taken().text == "<>":
            return "<>"
        inner: list[str] = []
        while True:
            inner.append(self._field() if kind == "STRUCT" else self._type((">",)))
            token = self._taken()
            if token.text == ">":
                return f"<{', '.join(inner)}>"
            if token.text != ",":
                raise self._unexpected(token)

    def _field(self) -> str:
        name = self._taken().text
        if self.place < len(self.tokens) and self.tokens[self.place].text == ":":
            self.place += 1
        text = f"{name}: {self._type(('>',))}"
        while self._next in ("NOT", "COMMENT"):
            text += f" {self._taken().text} {self._taken().text}"
        return text

    def _default(self) -> str:
        """The text of an expression, up to what else is said of the column."""
        start, depth = self.place, 0
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            following = self.tokens[self.place + 1].text.upper() if self.place + 1 < len(self.tokens) else ""
            ends = token.keyword == "COMMENT" or (token.keyword == "NOT" and following == "NULL")
            after_is = self.place > start and self.tokens[self.place - 1].keyword == "IS"
            if not depth and ((ends and not after_is) or token.text == "," or token.keyword == "GENERATED"):
                break
            depth += (token.text == "(") - (token.text == ")")
            self.place += 1
        if self.place == start:
            raise InvalidError(f"{self.text!r} is not a list of columns: a default is missing")
        return self.text[self.tokens[start].start : self.tokens[self.place - 1].end]
