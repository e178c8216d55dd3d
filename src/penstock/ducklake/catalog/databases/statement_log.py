"""Logs the statements that a catalog's database is asked, with the fields of DuckDB's log `DuckLakeMetadata`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from penstock.ducklake.catalog.location import Location, redact
from penstock.texts import one_line

_log = logging.getLogger("penstock.catalog")
_NOT_LOGGED: AbstractContextManager[None] = nullcontext()


def logged(location: Location, sql: str) -> AbstractContextManager[None]:
    """Log the statement that runs inside, where somebody listens; without the values of its parameters."""
    return _logged(location, sql) if _log.isEnabledFor(logging.DEBUG) else _NOT_LOGGED


def logged_insertion(location: Location, table: str, columns: Sequence[str]) -> AbstractContextManager[None]:
    """Log that rows of quoted columns go into a quoted table, by whatever way that the database has for it."""
    if not _log.isEnabledFor(logging.DEBUG):
        return _NOT_LOGGED
    return _logged(location, f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})")


@contextmanager
def _logged(location: Location, sql: str) -> Iterator[None]:
    began = time.perf_counter()
    outcome = "failed after"
    try:
        yield
        outcome = "took"
    finally:
        catalog, query, elapsed = str(location), redact(sql), (time.perf_counter() - began) * 1000
        fields = {"catalog": catalog, "query": query, "elapsed_ms": round(elapsed, 3)}
        _log.debug("%s %s %.1f ms: %s", one_line(catalog), outcome, elapsed, one_line(query), extra=fields)
