"""Says what is wrong or slow in a lake, and what mends it: each check with numbers and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from penstock.ducklake.catalog.location import redact
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.inspection.checks import (
    catalog_tables,
    deletes,
    file_statistics,
    format_versions,
    indexes,
    inlined_rows,
    options,
    scheduled_files,
    small_files,
    snapshots,
    stored_files,
)
from penstock.ducklake.inspection.findings import Examined, Finding, Severity, finding
from penstock.errors import PenstockError

__all__ = ["Finding", "Severity", "lake_health"]

Check = Callable[[Examined], Iterable[Finding]]
_WORST_FIRST: tuple[Severity, ...] = ("problem", "advice", "fine")
_OF_THE_CATALOG: tuple[tuple[str, Check], ...] = (
    (format_versions.CHECK, format_versions.check),
    (small_files.CHECK, small_files.check),
    (deletes.CHECK, deletes.check),
    (file_statistics.CHECK, file_statistics.check),
    (inlined_rows.CHECK, inlined_rows.check),
    (snapshots.CHECK, snapshots.check),
    (scheduled_files.CHECK, scheduled_files.check),
    (catalog_tables.CHECK, catalog_tables.check),
    (indexes.CHECK, indexes.check),
    (options.CHECK, options.check),
)
_OF_THE_STORE: tuple[tuple[str, Check], ...] = ((stored_files.CHECK, stored_files.check),)


def lake_health(catalog: Catalog, at: At, *, store: bool = True) -> list[Finding]:
    """What every check finds at a snapshot, the worst first. Without `store`, nothing is asked but the catalog.

    A check that cannot be made is a problem of its own, and the others are made nevertheless.
    """
    lake = Examined(catalog, at, datetime.now(UTC))
    checks = (*_OF_THE_CATALOG, *(_OF_THE_STORE if store else ()))
    found = [one for name, check in checks for one in _checked(lake, name, check)]
    return sorted(found, key=lambda one: _WORST_FIRST.index(one.severity))


def _checked(lake: Examined, name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check(lake)
    except Exception as error:  # one value that nobody foresaw shall not hide what the other checks find
        said = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
        yield finding(name, "problem", f"this could not be checked: {' '.join(redact(said).split())}")
