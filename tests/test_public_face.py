"""The public face is documented: every function says what it takes and gives back, in Google's style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
import penstock.delta
import penstock.lance

MODULES = (penstock, penstock.lance, penstock.delta)
SECTION = re.compile(r"^(\s*)(Args|Returns|Yields|Raises):$", re.MULTILINE)
ARGUMENT = re.compile(r"^\s+(\**\w+): ", re.MULTILINE)


def public(name: str) -> bool:
    return not name.startswith("_")


def functions() -> Iterator[Any]:
    """What users call: functions of the modules, methods and properties of their classes."""
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield pytest.param(found, id=f"{module.__name__}.{name}")
            elif inspect.isclass(found) and not issubclass(found, Exception):
                for member, value in inspect.getmembers(found):
                    if public(member) and (inspect.isfunction(value) or isinstance(value, property)):
                        yield pytest.param(value, id=f"{module.__name__}.{name}.{member}")


def sections(text: str) -> dict[str, str]:
    parts = SECTION.split(text)
    return {parts[i + 1]: parts[i + 2] for i in range(1, len(parts), 3)}


@pytest.mark.parametrize("function", list(functions()))
def test_what_users_call_is_documented(function: Any) -> None:
    text = inspect.getdoc(function)
    assert text, "there is no docstring"
    assert len(text.splitlines()[0]) <= 120
    if isinstance(function, property):
        return
    told = sections(text)
    signature = inspect.signature(inspect.unwrap(function))
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = [stars.get(one.kind, "") + name for name, one in signature.parameters.items() if name != "self"]
    assert [name for name in ARGUMENT.findall(told.get("Args", "")) if name in given] == given
    if signature.return_annotation not in ("None", None):
        assert "Returns" in told or "Yields" in told


def test_errors_and_classes_are_documented() -> None:
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                assert inspect.getdoc(found), name
