"""Finds catalogs without the indexes that many files need."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.catalog.indexes import missing_indexes
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding
from penstock.ducklake.inspection.thresholds import INDEXED_FILES

CHECK = "indexes"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice where some lack, and the lake has so many files that they matter."""
    missing = missing_indexes(lake.database)
    files = sum(summary.file_count for summary in lake.summaries.values())
    numbers = {"missing": len(missing), "files": files}
    if not lake.database.uses_indexes:
        yield finding(CHECK, "fine", f"{lake.database.product} needs none")
    elif missing and files >= INDEXED_FILES:
        message = f"the catalog lacks {len(missing)} indexes, which planning over {counted(files, 'file')} needs"
        yield finding(CHECK, "advice", message, numbers, remedy=remedies.optimize())
    elif missing:
        message = f"the catalog lacks {len(missing)} indexes; {counted(files, 'file')} are few enough to do without"
        yield finding(CHECK, "fine", message, numbers)
    else:
        yield finding(CHECK, "fine", "the catalog has all of its indexes", numbers)
