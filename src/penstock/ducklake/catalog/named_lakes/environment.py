"""Reads what variables of the environment say of lakes."""

from __future__ import annotations

import os
from collections import defaultdict

from penstock.ducklake.catalog.named_lakes.entries import Entry, Layer

# PENSTOCK_LAKE=NAME, PENSTOCK_LAKE_NAME=LOCATION, PENSTOCK_LAKE_NAME__KEY=..., PENSTOCK_LAKE_NAME__MAPPING__KEY=...,
# and PENSTOCK_DEFAULTS__KEY=...
DEFAULT_LAKE = "PENSTOCK_LAKE"
_LAKE, _DEFAULTS, _SEPARATOR = "PENSTOCK_LAKE_", "PENSTOCK_DEFAULTS__", "__"
LOCATION = "location"


def read_environment() -> Layer:
    """What the environment says; names and keys are in lower case."""
    lakes: dict[str, dict[tuple[str, ...], Entry]] = defaultdict(dict)
    defaults: dict[tuple[str, ...], Entry] = {}
    for variable, value in os.environ.items():
        entry = Entry(f"the variable {variable}", value, is_text=True)
        if variable.startswith(_DEFAULTS):
            defaults[_keys(variable.removeprefix(_DEFAULTS))] = entry
        elif variable.startswith(_LAKE):
            name, *keys = _keys(variable.removeprefix(_LAKE))
            lakes[name][tuple(keys) or (LOCATION,)] = entry
    chosen = os.environ.get(DEFAULT_LAKE)
    default = Entry(f"the variable {DEFAULT_LAKE}", chosen, is_text=True) if chosen else None
    return Layer("the environment", lakes, defaults, default)


def _keys(rest: str) -> tuple[str, ...]:
    return tuple(rest.lower().split(_SEPARATOR))
