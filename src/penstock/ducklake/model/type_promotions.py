"""Says which changes of a column's type are allowed: those that are documented, and no others."""

from __future__ import annotations

from penstock.schema.types import Type

_PROMOTIONS = {
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("uint16", "uint32", "uint64"),
    "uint16": ("uint32", "uint64"),
    "uint32": ("uint64",),
    "float32": ("float64",),
}


def may_promote(old: Type, new: Type) -> bool:
    """Whether DuckLake lets a column of the one type become the other."""
    return new.name in _PROMOTIONS.get(old.name, ())


def refusal(old: Type, new: Type) -> str:
    """Why a promotion is refused, and what the type can become."""
    wider = _PROMOTIONS.get(old.name)
    possible = f"it can become {', '.join(wider)}" if wider else f"the type of a column of {old} cannot be changed"
    return f"{old} cannot become {new}: {possible}"
