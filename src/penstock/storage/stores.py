"""Tells which store a path is in: a bucket or container has many spellings, and each library knows some of them."""

from __future__ import annotations

import re
from typing import NamedTuple

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")
_KINDS = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "azure": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
    "http": "http",
    "https": "http",
    "file": "local",
}
# The spelling that PyArrow and Hadoop both know, where they know no other.
_PLAIN = {"s3n": "s3", "s3a": "s3", "gcs": "gs"}


class Store(NamedTuple):
    """A bucket, a container or a server."""

    kind: str  # s3, gcs, azure, hdfs, http or other
    name: str

    def __str__(self) -> str:
        return f"{self.kind}://{self.name}"


def store_of(path: str) -> Store | None:
    """The store of a path; None for one on this machine."""
    match = _URI.match(path)
    if match is None:
        return None
    kind = _KINDS.get(match[1].lower(), "other")
    if kind == "azure":
        return Store(kind, _container(match[2], path[match.end() :]))
    return None if kind == "local" else Store(kind, match[2])


def _container(authority: str, rest: str) -> str:
    """A container of Azure's in one of its spellings, `container@account.dfs.domain`; without the account, its name."""
    if "@" not in authority and "." in authority:  # DuckDB writes the account first
        authority = f"{rest.removeprefix('/').partition('/')[0]}@{authority}"
    return authority.replace(".blob.", ".dfs.", 1)


def store_kind(path: str) -> str:
    """The kind of a path's store, `local` for this machine's."""
    store = store_of(path)
    return "local" if store is None else store.kind


def plain_scheme(path: str) -> str:
    """A path with the spelling of its scheme that all libraries know, where there is one: `s3a` is `s3`."""
    match = _URI.match(path)
    if match is None or match[1].lower() not in _PLAIN:
        return path
    return _PLAIN[match[1].lower()] + path[match.end(1) :]


def split_path(path: str) -> tuple[str, str]:
    """The root of a path's store, with a slash at its end, and the rest, which begins without one."""
    match = _URI.match(path)
    assert match is not None  # or it would be on this machine
    return match[0] + "/", path[match.end() :].removeprefix("/")
