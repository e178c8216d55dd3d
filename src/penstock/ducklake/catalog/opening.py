"""Opens a lake's catalog, or says why it may not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from penstock.ducklake.catalog.catalog_tables import FORMAT_VERSION, TABLES
from penstock.ducklake.catalog.creation import create_file, create_lake, has_lake
from penstock.ducklake.catalog.databases import ConnectOptions, Database, connect
from penstock.ducklake.catalog.location import Location, parse_location, refuse_secrets
from penstock.ducklake.catalog.migration import format_version, migrate
from penstock.ducklake.catalog.remote_files import recognised
from penstock.ducklake.model.options import OptionValue
from penstock.errors import AttachError, CatalogError
from penstock.storage.paths import absolute, folder, is_local

_FILES = ("duckdb", "sqlite")


@dataclass(frozen=True)
class AttachOptions:
    """DuckLake's ATTACH parameters."""

    data_path: str | None = None
    create_if_not_exists: bool = True
    read_only: bool = False
    encrypted: bool | None = None
    metadata_schema: str | None = None
    metadata_parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    automatic_migration: bool = False
    override_data_path: bool = False


@dataclass(frozen=True)
class Catalog:
    """An open catalog and where its data files are."""

    database: Database
    data_path: str
    data_path_as_given: str

    @property
    def is_relative(self) -> bool:
        """Whether the data path is relative to the folder that a program is started in."""
        given = self.data_path_as_given
        return is_local(given) and not os.path.isabs(given) and self.data_path != given

    def is_elsewhere(self) -> bool:
        """Whether files are in a folder that is relative to where a program is started, and not there from here."""
        if not self.is_relative or os.path.isdir(self.data_path):
            return False
        return bool(self.database.query("SELECT 1 FROM ducklake_data_file WHERE path_is_relative LIMIT 1"))

    def options(self) -> list[OptionValue]:
        """Every option that was set, at every scope."""
        rows = self.database.query('SELECT "key", "value", "scope", scope_id FROM ducklake_metadata ORDER BY 1, 3, 4')
        return [OptionValue(key, value, scope or "global", scope_id) for key, value, scope, scope_id in rows]


def open_catalog(uri: str, options: AttachOptions) -> Catalog:
    """The catalog at a location, created or migrated if that was allowed, and checked: a DuckLake of this version.

    Its data path is not looked at: a lake may have no file in it, or none that is asked for.
    """
    location = parse_location(uri)
    refuse_secrets(options.data_path or "")
    if location.is_remote:
        location, options = recognised(location), replace(options, read_only=True)
    new_data_path = _new_data_path(location, options)
    how = ConnectOptions(
        options.read_only, options.metadata_schema, options.metadata_parameters, create=new_data_path is not None
    )
    encrypted = bool(options.encrypted)
    if location.engine in _FILES and not location.is_remote and not os.path.exists(location.target):
        if new_data_path is not None:
            create_file(location, how, partial(create_lake, data_path=new_data_path, encrypted=encrypted))
        elif _may_create(options):
            raise AttachError(_no_data_path(location))
    database = connect(location, how)
    try:
        database.check_file()
        if not has_lake(database):
            if new_data_path is None:
                raise AttachError(_no_lake(location, options))
            create_lake(database, new_data_path, encrypted)
        _check_version(database, options)
        _check_encryption(database, options)
        return _located(database, options)
    except CatalogError as error:
        database.close()
        raise AttachError(f"the lake cannot be attached: {error}") from error.__cause__
    except BaseException:
        database.close()
        raise


def _may_create(options: AttachOptions) -> bool:
    return options.create_if_not_exists and not options.read_only


def _new_data_path(location: Location, options: AttachOptions) -> str | None:
    """Where the files of a new lake go, or None if none may be made."""
    if not _may_create(options):
        return None
    if options.data_path:
        return options.data_path.rstrip("/") + "/"
    return os.path.abspath(location.target) + ".files/" if location.engine == "duckdb" else None


def _no_lake(location: Location, options: AttachOptions) -> str:
    if _may_create(options):
        return _no_data_path(location)
    where = f" in schema {options.metadata_schema!r}" if options.metadata_schema else ""
    way = "" if location.is_remote else ", or attach with create_if_not_exists=True and without read_only to create one"
    return (
        f"{location} is not a DuckLake: it has no table ducklake_metadata{where}; check the location and "
        f"metadata_schema{way}"
    )


def _no_data_path(location: Location) -> str:
    return f"there is no DuckLake at {location}; to create one, give data_path, where its files will be"


def _check_version(database: Database, options: AttachOptions) -> None:
    version = format_version(database)
    location = database.location
    if version != FORMAT_VERSION:
        if _number(version) > _number(FORMAT_VERSION):
            raise AttachError(f"{location} has format version {version}, newer than {FORMAT_VERSION}; upgrade Penstock")
        if not options.automatic_migration or options.read_only:
            raise AttachError(
                f"{location} has format version {version}, older than {FORMAT_VERSION}; "
                "attach it once with automatic_migration=True (and without read_only) to migrate it"
            )
        migrate(database)
    missing = sorted(set(TABLES) - database.tables("ducklake_"))
    if missing:
        raise AttachError(f"{location} is damaged: its catalog lacks the tables {', '.join(missing)}")


def _number(version: str) -> tuple[int, ...]:
    digits = version.split("-")[0].split(".")
    return tuple(int(part) for part in digits if part.isdigit())


def _check_encryption(database: Database, options: AttachOptions) -> None:
    stored = database.value('SELECT "value" FROM ducklake_metadata WHERE "key" = \'encrypted\'') == "true"
    if options.encrypted is not None and options.encrypted != stored:
        state = "encrypted" if stored else "not encrypted"
        raise AttachError(
            f"{database.location} is {state}, which is settled when a lake is made; leave `encrypted` out"
        )


def _located(database: Database, options: AttachOptions) -> Catalog:
    stored = database.value('SELECT "value" FROM ducklake_metadata WHERE "key" = \'data_path\' AND "scope" IS NULL')
    given = options.data_path or stored
    if given is None:
        raise AttachError(f"{database.location} names no data path; give data_path")
    refuse_secrets(given)
    path = folder(absolute(given))
    same = stored is None or path == folder(absolute(stored)) or _is_same_elsewhere(stored, path)
    if not same and not options.override_data_path:
        raise AttachError(
            f"{database.location} keeps its files under {stored}, not {given}; "
            "leave data_path out, or set override_data_path=True"
        )
    return Catalog(database, path, folder(given))


def _is_same_elsewhere(stored: str, path: str) -> bool:
    """Whether a path is a lake's relative one, seen from another folder than the one that this program runs in."""
    if not is_local(stored) or not is_local(path) or stored.startswith("file:") or os.path.isabs(stored):
        return False
    parts = [part for part in os.path.normpath(stored).split("/") if part not in (".", "..")]
    ends = path.rstrip("/").split("/")[-len(parts) :] == parts
    return bool(parts) and ends and (os.path.isdir(path) or not os.path.isdir(absolute(stored)))
