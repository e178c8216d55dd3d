"""Defines what somebody looks at in a lake: all that looks something up takes it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.visibility import At


@dataclass(frozen=True)
class Shown:
    """What somebody looks at: a database, which of its rows, and where the lake's files are."""

    database: Database
    at: At
    data_path: str
