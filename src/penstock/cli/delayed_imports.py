"""Puts off what takes long to import: DuckDB looks for pandas with every value that it is given, and can do without."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PANDAS = "pandas"


class _Absent(MetaPathFinder):
    """Finds no pandas, as where it is not installed. A None among the modules would be taken for one by PyArrow."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for pandas; all others are looked for elsewhere."""
        if fullname == _PANDAS:
            raise ModuleNotFoundError(f"No module named {_PANDAS!r}", name=_PANDAS)
        return None


_absent = _Absent()


def put_off() -> None:
    """Let pandas be as if it were not installed, until `bring_back`; nothing where it is imported already."""
    if _PANDAS not in sys.modules and _absent not in sys.meta_path:
        sys.meta_path.insert(0, _absent)


def bring_back() -> None:
    """Let pandas be found again: Spark needs it."""
    if _absent in sys.meta_path:
        sys.meta_path.remove(_absent)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:  # if it has missed pandas, it takes NaN in a Series for a value, until it needs pandas itself
        arrow.table({}).to_pandas()
