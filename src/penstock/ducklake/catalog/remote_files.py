"""Looks at catalogs that are files elsewhere: behind http and https, or on S3."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from penstock.ducklake.catalog.location import Location
from penstock.errors import AttachError
from penstock.storage.filesystems import open_file
from penstock.storage.stores import store_kind
from penstock.storage.web_files import download_url, first_bytes

_FIRST_BYTES = 16
_SQLITE = b"SQLite format 3\x00"
_DUCKDB, _DUCKDB_AT = b"DUCK", 8
_NAME = "catalog"


def recognised(location: Location) -> Location:
    """The location with the engine that the file's first bytes tell, whatever its user took it for.

    Raises AttachError where there is no such file, or it is no database.
    """
    content = _first_bytes(location)
    if content == _SQLITE:
        return replace(location, engine="sqlite")
    if content[_DUCKDB_AT:].startswith(_DUCKDB):
        return replace(location, engine="duckdb")
    kind = "a web page" if content.lstrip()[:1] == b"<" else "something else"
    raise AttachError(f"{location} is not a DuckLake: it is {kind}, and no file of DuckDB or SQLite; check the address")


def _first_bytes(location: Location) -> bytes:
    try:
        if _is_web(location):
            return first_bytes(location.target, _FIRST_BYTES)
        with open_file(location.target) as file:
            return bytes(file.read(_FIRST_BYTES))
    except FileNotFoundError:
        raise AttachError(
            f"no DuckLake at {location}: there is no such file; check the address. A lake cannot be created there: "
            "create it elsewhere, and copy its files"
        ) from None
    except OSError as error:
        raise AttachError(f"{location} cannot be attached: {error}") from None


def local_copy(location: Location) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A copy of the file on this machine, and the folder that it is in, which goes when it is let go of."""
    folder = tempfile.TemporaryDirectory(prefix="penstock-")
    copy = Path(folder.name, _NAME)
    try:
        with copy.open("wb") as target:
            if _is_web(location):
                download_url(location.target, target)
            else:
                with open_file(location.target) as source:
                    shutil.copyfileobj(source, target)
    except OSError as error:
        folder.cleanup()
        raise AttachError(f"{location} cannot be attached: {error}") from None
    return folder, copy


def _is_web(location: Location) -> bool:
    return store_kind(location.target) == "http"
