"""Opens the catalogs of lakes to be read, by location or name: without Spark, and without making or changing one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, TypedDict

from penstock.ducklake.catalog.location import parse_location
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.opening import AttachOptions, Catalog, open_catalog
from penstock.ducklake.catalog.snapshots import latest_snapshot, snapshot_by_time, snapshot_by_version
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.attach_parameters import MOMENTS
from penstock.ducklake.model.snapshots import Snapshot, Version, version_number
from penstock.errors import AttachError, NotFoundError
from penstock.storage.options import StorageOptions, options_on_trial
from penstock.storage.stores import store_kind
from penstock.storage.used_stores import use_store

# A snapshot by its version, or by a time.
Moment = tuple[Version | None, str | datetime | None]


class SessionNeeds(TypedDict):
    """The stores that a Spark session has to reach, as `penstock.session` takes them."""

    s3: bool
    azure: bool


@dataclass(frozen=True)
class ReadCatalog:
    """A catalog that was opened to be read, and the snapshot of it that is looked at."""

    catalog: Catalog
    snapshot: Snapshot
    storage_options: StorageOptions = field(repr=False)

    @property
    def at(self) -> At:
        """What of the catalog's rows the snapshot shows."""
        return At(self.snapshot.id)

    @property
    def session_needs(self) -> SessionNeeds:
        """What a Spark session needs to read the catalog and the data files."""
        kinds = {store_kind(path) for path in (self.catalog.data_path, self.catalog.database.location.target)}
        return SessionNeeds(s3="s3" in kinds, azure="azure" in kinds)

    def use_store(self) -> None:
        """Use what was said of the store of the data files: whoever reads only the catalog need not reach it."""
        location, path = self.catalog.database.location, self.catalog.data_path
        elsewhere = location.is_remote and store_kind(path) != store_kind(location.target)
        use_store(path, StorageOptions() if elsewhere else self.storage_options)


@contextmanager
def read_catalog(uri: str, **given: Any) -> Iterator[ReadCatalog]:
    """The catalog of a lake, with the arguments of `attach` that matter to it; closed at the end of the block."""
    call = attach_call(uri, given)
    storage_options = StorageOptions.of(call.arguments.get("storage_options"))
    catalog = open_to_read(call.uri, attach_options(call.arguments), storage_options)
    try:
        yield ReadCatalog(catalog, snapshot_of(catalog, *moment_of(call.arguments)), storage_options)
    finally:
        catalog.database.close()


@options_on_trial()
def open_to_read(uri: str, options: AttachOptions, storage_options: StorageOptions) -> Catalog:
    """The catalog at a location, whose own store is used with what was said of it; it is neither made nor changed."""
    location = parse_location(uri)
    if location.is_remote and store_kind(location.target) == "s3":
        use_store(location.target, storage_options)
    return open_catalog(uri, replace(options, create_if_not_exists=False, read_only=True, automatic_migration=False))


def attach_options(arguments: Mapping[str, Any]) -> AttachOptions:
    """Those arguments of `attach` that are for the catalog."""
    known = {one.name for one in fields(AttachOptions)}
    return AttachOptions(**{name: value for name, value in arguments.items() if name in known})


def moment_of(arguments: Mapping[str, Any]) -> Moment:
    """Which snapshot the arguments of `attach` mean, by its version or by a time."""
    version, time = (arguments.get(name) for name in MOMENTS)
    if version is not None and time is not None:
        raise AttachError(f"give {' or '.join(MOMENTS)}, not both")
    return version, time


def snapshot_of(catalog: Catalog, version: Version | None, time: str | datetime | None) -> Snapshot:
    """The snapshot of a version or at a time; the newest where neither is given."""
    if version is not None:
        return snapshot_by_version(catalog.database, version_number(version))
    if time is not None:
        return snapshot_by_time(catalog.database, instant(time))
    return latest_snapshot(catalog.database)


def instant(time: str | datetime) -> datetime:
    """A time; one without a zone is in UTC, as in the sessions that Penstock starts."""
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise NotFoundError(f"{time!r} is not a timestamp; write it as 2026-04-10 12:00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
