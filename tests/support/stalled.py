"""Writers that wait at the worst moment until others have done what they want."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

_LONGEST = 120.0  # seconds


class Stalled:
    """A writer that stops when it calls a function for the n-th time, and goes on when it is told to."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any], owner: Any, name: str, call: int = 1
    ) -> None:
        self._reached, self._go = threading.Event(), threading.Event()
        self._outcome: list[Any] = []
        original, calls = getattr(owner, name), count(1)

        def stalling(*arguments: Any, **named: Any) -> Any:
            if next(calls) == call:
                self._reached.set()
                assert self._go.wait(_LONGEST)
            return original(*arguments, **named)

        def outcome() -> None:
            try:
                self._outcome.append(act())
            except Exception as error:
                self._outcome.append(error)
            self._reached.set()

        monkeypatch.setattr(owner, name, stalling)
        self._thread = threading.Thread(target=outcome, daemon=True)
        self._thread.start()
        assert self._reached.wait(_LONGEST)
        assert not self._outcome, str(self._outcome)

    def goes_on(self) -> Any:
        """What it returns in the end, or raises."""
        self._go.set()
        self._thread.join(_LONGEST)
        [outcome] = self._outcome
        return outcome
