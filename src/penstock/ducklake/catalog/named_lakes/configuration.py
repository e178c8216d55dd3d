"""Puts together what file and environment say: lakes by their names, and what holds for all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.ducklake.catalog.location import parse_location
from penstock.ducklake.catalog.named_lakes.config_file import FILE, config_file, read_config_file
from penstock.ducklake.catalog.named_lakes.entries import Entry, Layer, Section
from penstock.ducklake.catalog.named_lakes.environment import DEFAULT_LAKE, LOCATION, read_environment
from penstock.ducklake.model.attach_parameters import ATTACH_PARAMETERS, MAPPINGS, MOMENTS
from penstock.errors import AttachError, InvalidError
from penstock.storage.options import StorageOptions
from penstock.storage.paths import is_local

SCHEME = "ducklake:"
# What may hold for all lakes. Anything else is one lake's own: where it is, and what it was made with.
_FOR_ALL = (
    "create_if_not_exists", "read_only", "automatic_migration", "data_inlining_row_limit", "max_retry_count",
    "retry_wait_ms", "retry_backoff",
)  # fmt: skip
_FOR_ONE = (LOCATION, *ATTACH_PARAMETERS, *MAPPINGS, *MOMENTS)
_NAME = re.compile(r"[^./:]+")
_WRITTEN_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class NamedLake:
    """A lake that has a name: its location, and the arguments of `penstock.attach` that are said of it."""

    name: str
    uri: str = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)


def is_name(text: str) -> bool:
    """Whether a text can only be the name of a lake, and no location: it has no dot, no slash and no colon."""
    return _NAME.fullmatch(text) is not None


def configuration() -> Configuration:
    """What file and environment say now. Raises AttachError where the file cannot be understood."""
    path = config_file()
    layers = [] if path is None else [read_config_file(path)]
    return Configuration((*layers, read_environment()))


@dataclass(frozen=True)
class Configuration:
    """Named lakes. Of two layers that say the same thing, the later one counts."""

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        for layer in self.layers:
            seen: dict[str, str] = {}
            for name in layer.lakes:
                if not _WRITTEN_NAME.fullmatch(name):
                    raise AttachError(f"{layer.origin}: {name!r} is no name for a lake: letters, digits, _ and - are")
                other = seen.setdefault(_plain(name), name)
                if other != name:
                    raise AttachError(f"{layer.origin}: {other} and {name} are the same name of a lake")

    def __contains__(self, name: str) -> bool:
        return _plain(name) in map(_plain, self)

    def __iter__(self) -> Iterator[str]:
        """The names that lakes have, in the spelling of the file where it is there."""
        names: dict[str, str] = {}
        for layer in self.layers:
            for name in layer.lakes:
                names.setdefault(_plain(name), name)
        return iter(sorted(names.values()))

    @property
    def told(self) -> str:
        """Which names there are, for an error."""
        names = list(self)
        if names:
            return f"named lakes are {', '.join(names)}"
        return f"no lake has a name: there is neither {FILE} nor a variable {DEFAULT_LAKE}_NAME that says one"

    def default_name(self) -> str:
        """The name of the lake that `ducklake:` alone means."""
        chosen = next((layer.default_lake for layer in reversed(self.layers) if layer.default_lake), None)
        if chosen is None:
            raise AttachError(
                f"'{SCHEME}' alone means the default lake, and none is chosen: say default = \"NAME\" in {FILE}, set "
                f"the variable {DEFAULT_LAKE}, or write a location, {SCHEME}FILE; {self.told}"
            )
        name = chosen.text()
        if name not in self:
            raise AttachError(f"{chosen.where} is {name!r}, which is no named lake; {self.told}")
        return name

    def defaults(self) -> dict[str, Any]:
        """The arguments that hold for all lakes."""
        entries = self._merged([layer.defaults for layer in self.layers])
        _check_keys(entries, _FOR_ALL, "that can hold for all lakes")
        return {keys[0]: entry.parameter(keys[0]) for keys, entry in entries.items()}

    def lake(self, name: str) -> NamedLake:
        """The lake of a name, with what holds for all. Raises AttachError where something said of it makes no sense."""
        sections = [
            section for layer in self.layers for other, section in layer.lakes.items() if _plain(other) == _plain(name)
        ]
        entries = self._merged(sections)
        _check_keys(entries, _FOR_ONE, "of a lake")
        location = entries.pop((LOCATION,), None)
        if location is None:
            raise AttachError(f"nothing says where the lake {name} is: {FILE} needs a {LOCATION} in [lakes.{name}]")
        arguments = self.defaults() | dict(_arguments(entries))
        if all(moment in arguments for moment in MOMENTS):
            raise AttachError(f"{entries[MOMENTS[0],].where} and {MOMENTS[1]} say the same; give one of them")
        return NamedLake(name, _uri(location), arguments)

    @staticmethod
    def _merged(sections: list[Section]) -> dict[tuple[str, ...], Entry]:
        merged: dict[tuple[str, ...], Entry] = {}
        for section in sections:
            merged |= section
        return merged


def _plain(name: str) -> str:
    """A name as it compares: variables have neither small letters nor hyphens."""
    return name.lower().replace("-", "_")


def _check_keys(entries: Section, known: tuple[str, ...], what: str) -> None:
    for keys, entry in entries.items():
        if keys[0] not in known or (len(keys) == 2) != (keys[0] in MAPPINGS) or len(keys) > 2:
            raise AttachError(f"{entry.where} is nothing {what}; there are {', '.join(known)}")


def _arguments(entries: Section) -> Iterator[tuple[str, Any]]:
    for keys, entry in entries.items():
        if keys == ("data_path",):
            # Whole: a new lake keeps it, and may be used from anywhere.
            yield "data_path", _placed(entry.text(), entry.folder, whole=True)
        elif keys == ("snapshot_version",):
            yield "snapshot_version", entry.version()
        elif keys == ("snapshot_time",):
            yield "snapshot_time", entry.time()
        elif len(keys) == 1:
            yield keys[0], entry.parameter(keys[0])
    parameters = {keys[1]: _parameter(entry) for keys, entry in entries.items() if keys[0] == "metadata_parameters"}
    if parameters:
        yield "metadata_parameters", parameters
    storage = {keys[1]: entry for keys, entry in entries.items() if keys[0] == "storage_options"}
    if storage:
        yield "storage_options", _storage_options(storage)


def _parameter(entry: Entry) -> str:
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):  # a port
        return str(entry.value)
    return entry.text()


def _storage_options(entries: Mapping[str, Entry]) -> StorageOptions:
    where = ", ".join(entry.where for entry in entries.values())
    try:
        return StorageOptions.of({name: entry.mapped() for name, entry in entries.items()})
    except InvalidError as error:
        raise AttachError(f"{where}: {error}") from None


def _uri(entry: Entry) -> str:
    """The location, whose file is there where the configuration says, from wherever it is used."""
    text = entry.location()
    uri = text if text.startswith(SCHEME) else SCHEME + text
    if is_name(uri.removeprefix(SCHEME)):
        raise AttachError(f"{entry.where} is a bare word; write the file as ./FILE, or with an ending")
    try:
        location = parse_location(uri)
    except AttachError as error:
        raise AttachError(f"{entry.where}: {error}") from None
    if location.is_remote or location.engine not in ("duckdb", "sqlite"):
        return uri
    return f"{SCHEME}{location.engine}:{_placed(location.target, entry.folder)}"


def _placed(path: str, folder: str | None, *, whole: bool = False) -> str:
    """A path, relative to the folder of the file that says it; as it is where that is this process's own."""
    if not path or not is_local(path) or path.startswith("file:"):
        return path
    path = os.path.expanduser(path)
    if folder is None or (not whole and os.path.samefile(folder, os.curdir)):
        return path
    return os.path.join(folder, path)
