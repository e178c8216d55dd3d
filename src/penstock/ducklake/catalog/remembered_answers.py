"""Remembers answers that a large catalog is slow to give, for as long as they are true."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")
_MOST_ANSWERS = 100


@dataclass(frozen=True)
class Moment:
    """A state of the catalog: its newest snapshot.

    By its time too, so that a catalog that was put back to an older state, and has gone on, is another one.
    """

    snapshot: int
    time: datetime


@dataclass
class RememberedAnswers:
    """Answers of one state of a catalog. A newer state has none yet."""

    _moment: Moment | None = None
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def answer(
        self, question: Hashable, moment: Moment, ask: Callable[[], _Answer], is_large: Callable[[_Answer], bool]
    ) -> _Answer:
        """The answer to a question at a moment: the one that is remembered, or else a new one; large ones are kept."""
        with self._lock:
            if self._moment == moment and question in self._answers:
                known: _Answer = self._answers[question]
                return known
        found = ask()
        if is_large(found):
            with self._lock:
                if self._moment != moment or len(self._answers) >= _MOST_ANSWERS:
                    self._moment, self._answers = moment, {}
                self._answers[question] = found
        return found
