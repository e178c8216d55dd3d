"""Reads single values of a configuration: their types, and the variables that stand in them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.ducklake.catalog.location import is_before_secret, remember_secret
from penstock.ducklake.model.attach_parameters import ATTACH_PARAMETERS, RETRIES, ParameterType, argument
from penstock.errors import AttachError, InvalidError

_VARIABLE = re.compile(r"\$\$\{|\$\{(\w+)\}")
_EXPECTED: dict[type, str] = {
    str: "a text in quotes",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    datetime: "a time",
}


@dataclass(frozen=True)
class Entry:
    """A value that somebody has written, and where. It may be a secret: nothing here shows it."""

    where: str
    value: object = field(repr=False)
    folder: str | None = None  # that paths are relative to; None where that is this process's own
    is_text: bool = False  # as all values of variables are

    def text(self) -> str:
        """The text, with the variables that it names."""
        return self._with_variables(self._variable)

    def location(self) -> str:
        """The text of a location. A password that comes from a variable is remembered, so that nothing shows it."""
        return self._with_variables(self._password)

    def _with_variables(self, value_of: Callable[[re.Match[str]], str]) -> str:
        if not isinstance(self.value, str):
            raise self.refused(str)
        return self.value if self.is_text else _VARIABLE.sub(value_of, self.value)

    def _password(self, match: re.Match[str]) -> str:
        value = self._variable(match)
        if match[1] is not None and is_before_secret(match.string[: match.start()]):
            remember_secret(value)
        return value

    def _variable(self, match: re.Match[str]) -> str:
        if match[1] is None:  # `$${` is how one writes `${`
            return "${"
        if match[1] not in os.environ:
            raise AttachError(f"{self.where} needs the variable {match[1]}, which the environment does not have")
        return os.environ[match[1]]

    def parameter(self, name: str) -> object:
        """The value of a parameter of `attach` that takes a plain one."""
        kind = ATTACH_PARAMETERS[name]
        value: object
        if isinstance(self.value, str) and (kind is str or self._is_from_variable()):
            try:
                value = argument(name, self.text())
            except InvalidError:
                raise self.refused(kind) from None
        else:
            value = self._typed(kind)
        if name in RETRIES and not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise AttachError(f"{self.where} takes a number from 0")
        return value

    def version(self) -> int:
        """The number of a snapshot."""
        text = self.text() if isinstance(self.value, str) and self._is_from_variable() else ""
        if text.strip().isdecimal():
            return int(text)
        number = self._typed(int)
        assert isinstance(number, int)
        return number

    def time(self) -> str | datetime:
        """The time of a snapshot."""
        if isinstance(self.value, datetime):
            return self.value
        if not isinstance(self.value, str):
            raise self.refused(datetime)
        return self.text()

    def mapped(self) -> object:
        """A value of a mapping: a text, or as it is."""
        return self.text() if isinstance(self.value, str) else self.value

    def refused(self, kind: ParameterType | type[datetime]) -> AttachError:
        """The error for a value of another type."""
        return AttachError(f"{self.where} takes {_EXPECTED[kind]}")

    def _is_from_variable(self) -> bool:
        return self.is_text or (isinstance(self.value, str) and _VARIABLE.search(self.value) is not None)

    def _typed(self, kind: ParameterType) -> object:
        allowed = (int, float) if kind is float else kind
        if not isinstance(self.value, allowed) or (isinstance(self.value, bool) and kind is not bool):
            raise self.refused(kind)
        return self.value


# What is said of one lake, or of all: by the names of parameters, and of what stands inside of them.
Section = Mapping[tuple[str, ...], Entry]


@dataclass(frozen=True)
class Layer:
    """All that one place says of lakes."""

    origin: str
    lakes: Mapping[str, Section]
    defaults: Section
    default_lake: Entry | None = None
