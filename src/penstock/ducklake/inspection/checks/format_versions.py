"""Tells whether the catalog has the format version that is written today."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.catalog.catalog_tables import FORMAT_VERSION
from penstock.ducklake.catalog.migration import format_version
from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, finding

CHECK = "format version"


def check(lake: Examined) -> Iterator[Finding]:
    """A problem where it has an older one."""
    version = format_version(lake.database)
    if version == FORMAT_VERSION:
        yield finding(CHECK, "fine", f"DuckLake {version}", {"version": version})
    else:
        verb = f"penstock.attach({str(lake.database.location)!r}, automatic_migration=True)"
        message = f"the catalog has DuckLake {version}, and {FORMAT_VERSION} is needed"
        yield finding(CHECK, "problem", message, {"version": version}, remedy=remedies.Remedy("", verb))
