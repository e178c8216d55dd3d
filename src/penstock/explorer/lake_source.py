"""The lake that the explorer shows: opened for a request, and let go of after it where others want its file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.ducklake.catalog.location import Location, parse_location, secrets_in
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.named_lakes.read_catalogs import (
    Moment,
    ReadCatalog,
    attach_options,
    moment_of,
    open_to_read,
    snapshot_of,
)
from penstock.ducklake.catalog.opening import AttachOptions, Catalog
from penstock.ducklake.catalog.snapshots import snapshot_by_version
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError, NotFoundError
from penstock.storage.options import StorageOptions

_HIDDEN = "***"
_SECRET_PARAMETERS = ("password", "passwd", "secret", "token", "key", "sas")


@dataclass(frozen=True)
class View(ReadCatalog):
    """The lake as one request sees it: its open catalog, the snapshot that is looked at, and the newest one.

    Of a lake that is shown `as_it_was`, the newest is the one that it was asked for by, and no later one is shown.
    """

    newest: Snapshot
    as_it_was: bool

    @property
    def shown(self) -> Shown:
        """What is looked at, as the catalog's own functions take it."""
        return Shown(self.catalog.database, self.at, self.catalog.data_path)

    @property
    def version(self) -> int | None:
        """The number of the snapshot, where it is not the newest."""
        return None if self.snapshot.id == self.newest.id else self.snapshot.id

    @property
    def attached_version(self) -> int | None:
        """The number of the snapshot that queries attach; None where they attach the lake as it is now."""
        return self.snapshot.id if self.as_it_was else self.version

    def check_shown(self, version: int) -> None:
        """Raise InvalidError for a snapshot that is newer than all that are shown."""
        if version > self.newest.id:
            raise InvalidError(f"there is no snapshot {version} here; the newest is {self.newest.id}")


@dataclass
class LakeSource:
    """A lake by its location. It is open only while a request asks it: a DuckDB file is free for writers otherwise."""

    uri: str = field(repr=False)
    options: AttachOptions = field(default_factory=AttachOptions)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    moment: Moment = (None, None)  # the snapshot that it is shown as of, if not the newest
    _kept: Catalog | None = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.location: Location = parse_location(self.uri)
        self.options = replace(self.options, read_only=True, create_if_not_exists=False, automatic_migration=False)

    @classmethod
    def of(cls, lake: str, given: Mapping[str, Any]) -> LakeSource:
        """The lake of a location or a name, with arguments of `attach`: those given, and what is said of that lake."""
        call = attach_call(lake, given)
        said = call.arguments
        return cls(call.uri, attach_options(said), said.get("storage_options") or {}, moment_of(said))

    def __str__(self) -> str:
        return str(self.location)

    @contextmanager
    def opened(self, version: int | None = None) -> Iterator[View]:
        """The lake at a snapshot, by default the newest that is shown, in one state of its catalog."""
        as_it_was = self.moment != (None, None)
        with self._catalog() as catalog, catalog.database.consistent():
            newest = snapshot_of(catalog, *self.moment)
            if as_it_was and version is not None and version > newest.id:
                raise NotFoundError(f"the lake is shown as it was at snapshot {newest.id}: there is no {version} yet")
            snapshot = newest if version is None else snapshot_by_version(catalog.database, version)
            yield View(catalog, snapshot, StorageOptions.of(self.storage_options), newest, as_it_was)

    @contextmanager
    def _catalog(self) -> Iterator[Catalog]:
        if self.location.is_remote:  # nobody writes it, and some of it may have been copied to this machine
            with self._lock:
                self._kept = self._kept or self._open()
            yield self._kept
            return
        catalog = self._open()
        try:
            yield catalog
        finally:
            catalog.database.close()

    def _open(self) -> Catalog:
        return open_to_read(self.uri, self.options, StorageOptions.of(self.storage_options))

    def close(self) -> None:
        """Let go of what is still open."""
        with self._lock:
            if self._kept is not None:
                self._kept.database.close()
            self._kept = None

    def without_secrets(self, text: str) -> str:
        """A text, such as an error of DuckDB's, without the passwords that this lake is reached by."""
        given = (*self.storage_options.items(), *self.options.metadata_parameters.items())
        secrets = [*secrets_in(self.uri), *(value for name, value in given if _is_secret(name))]
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN) if len(secret) > 3 else text
        return self.location.without_token(text)


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_PARAMETERS)
