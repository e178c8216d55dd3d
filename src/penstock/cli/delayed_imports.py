"""Puts off what takes long to import: DuckDB looks for pandas with every value that it is given, and can do without."""

from __future__ import annotations

import sys

_PANDAS = "pandas"


def put_off() -> None:
    """Let pandas be as if it were not installed, until `bring_back`; nothing where it is imported already."""
    sys.modules.setdefault(_PANDAS, None)  # type: ignore[arg-type]


def bring_back() -> None:
    """Let pandas be found again: Spark needs it."""
    if sys.modules.get(_PANDAS, ...) is None:
        del sys.modules[_PANDAS]
