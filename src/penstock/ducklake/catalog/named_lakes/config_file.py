"""Finds and reads the file `penstock.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from penstock.ducklake.catalog.named_lakes.entries import Entry, Layer, Section
from penstock.ducklake.model.attach_parameters import MAPPINGS
from penstock.errors import AttachError

FILE = "penstock.toml"
VARIABLE = "PENSTOCK_CONFIG"
_LAKES, _DEFAULTS, _DEFAULT = "lakes", "defaults", "default"


def config_file() -> Path | None:
    """The file that counts, the first of these alone: PENSTOCK_CONFIG's, this folder's, the user's own.

    An empty PENSTOCK_CONFIG means none. Raises AttachError where the file that it names is not there.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        if named and not Path(named).is_file():
            raise AttachError(f"there is no file {named!r}, which the variable {VARIABLE} names")
        return Path(named) if named else None
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return next((path for path in (Path(FILE), Path(home, "penstock", FILE)) if path.is_file()), None)


def read_config_file(path: Path) -> Layer:
    """What a file says of lakes; the values are looked at when they are needed."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise AttachError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AttachError(f"{path} cannot be read: it is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise AttachError(f"{path} is no TOML: {error}") from None
    except RecursionError:
        raise AttachError(f"{path} cannot be read: lists or tables are nested too deeply in it") from None
    unknown = content.keys() - {_LAKES, _DEFAULTS, _DEFAULT}
    if unknown:
        raise AttachError(
            f"{path} has {', '.join(map(repr, sorted(unknown)))}, which nobody looks at; it may have [{_LAKES}.NAME], "
            f"[{_DEFAULTS}] and {_DEFAULT}"
        )
    folder = str(path.resolve().parent)
    lakes = {
        name: _section(f"{path}: [{_LAKES}.{name}]", lake, folder)
        for name, lake in _table(f"{path}: [{_LAKES}]", content.get(_LAKES, {})).items()
    }
    default = Entry(f"{path}: {_DEFAULT}", content[_DEFAULT]) if _DEFAULT in content else None
    return Layer(str(path), lakes, _section(f"{path}: [{_DEFAULTS}]", content.get(_DEFAULTS, {}), folder), default)


def _section(where: str, content: object, folder: str) -> Section:
    found: dict[tuple[str, ...], Entry] = {}
    for key, value in _table(where, content).items():
        if key in MAPPINGS:
            inner = _table(f"{where} {key}", value)
            found |= {(key, name): Entry(f"{where} {key}.{name}", item, folder) for name, item in inner.items()}
        else:
            found[(key,)] = Entry(f"{where} {key}", value, folder)
    return found


def _table(where: str, content: object) -> Mapping[str, object]:
    if not isinstance(content, dict):
        raise AttachError(f"{where} is no table of keys and values")
    return content
