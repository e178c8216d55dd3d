"""How much the tests try: enough for every change by default, all that there is with `pytest --full`."""

from __future__ import annotations

_full = False


def try_everything(full: bool) -> None:
    """Before any test is imported: what `--full` says."""
    global _full
    _full = full


def is_full() -> bool:
    return _full


def tries(usual: int, full: int) -> int:
    """How many examples, steps or files a test takes."""
    return full if _full else usual
