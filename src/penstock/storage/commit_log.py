"""Logs what writers commit, whatever the format, and when they try again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.texts import one_line

_commits = logging.getLogger("penstock.commit")


def logs_commits() -> bool:
    """Whether anybody listens for commits."""
    return _commits.isEnabledFor(logging.INFO)


def log_commit(catalog: str, snapshot: int, changes: str, tables: Sequence[str]) -> None:
    """Log a commit: the number that it got, what it did, and the names of the tables that it did it to."""
    fields = {"catalog": catalog, "snapshot": snapshot, "changes": changes, "tables": list(tables)}
    named = f" ({', '.join(tables)})" if tables else ""
    _commits.info("%s is at %d: %s", one_line(catalog), snapshot, one_line(f"{changes}{named}"), extra=fields)


def log_retry(catalog: str, reason: str, attempt: int, wait_ms: float) -> None:
    """Log that another writer was faster, and that the commit is tried again: the how manieth time, after how long."""
    reason = reason.removeprefix(f"{catalog}: ")
    fields = {"catalog": catalog, "reason": reason, "attempt": attempt, "wait_ms": wait_ms}
    line = "%s: attempt %d to commit follows in %.0f ms: %s"
    _commits.info(line, one_line(catalog), attempt, wait_ms, one_line(reason), extra=fields)
