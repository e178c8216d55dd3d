"""Tells whether a database's file is still the one that was opened, and no other has taken its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from weakref import WeakValueDictionary

from penstock.ducklake.catalog.location import Location
from penstock.errors import CatalogError


@dataclass(frozen=True, eq=False)
class OpenFile:
    """A file of this machine as it was when it was opened."""

    location: Location
    path: str
    identity: tuple[int, int] | None

    def check(self) -> None:
        """Raise a CatalogError where the file's name leads to another one by now, or to none."""
        if _identity(self.path) != self.identity:
            raise CatalogError(
                f"{self.location} was replaced by another file, or removed, since it was attached: what is written to "
                "the old one would be lost, so nothing was; close the lake, everywhere in this process, and attach it "
                "again"
            )


_shared: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()


def opened_file(location: Location) -> OpenFile:
    """A file that was opened just now."""
    path = os.path.abspath(location.target)
    return OpenFile(location, path, _identity(path))


def shared_file(location: Location) -> OpenFile:
    """A file that the connections of this process share, as DuckDB does it: what the first has opened."""
    return _shared.setdefault(os.path.realpath(location.target), opened_file(location))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
