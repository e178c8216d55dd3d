"""Merges the `extra_stats` of variants: the paths that every file holds as a type of their own, as JSON."""

from __future__ import annotations

import json
from typing import Any

from penstock.ducklake.model.statistics_order import bounds_order
from penstock.errors import PenstockError
from penstock.schema.types import Order, parse_type

_COUNTS = ("null_count", "num_values", "column_size_bytes")
_BOUNDS = ("min", "max")
Path = dict[str, Any]


def merged_paths(left: str | None, right: str | None) -> str | None:
    """Merge the paths that both hold as the same type, and what is known of their values; None where there is none."""
    before, after = _by_name(left), _by_name(right)
    both = [_merged(before[name], after[name]) for name in sorted(before.keys() & after.keys())]
    kept = [path for path in both if path is not None]
    return json.dumps(kept, separators=(",", ":")) if kept else None


def _by_name(extra: str | None) -> dict[str, Path]:
    paths = json.loads(extra) if extra else []
    return {path["field_name"]: path for path in paths} if isinstance(paths, list) else {}


def _merged(left: Path, right: Path) -> Path | None:
    if left["shredded_type"] != right["shredded_type"]:
        return None
    counts = {name: left[name] + right[name] for name in _COUNTS if name in left and name in right}
    merged = {name: value for name, value in left.items() if name not in _BOUNDS} | counts | _bounds(left, right)
    if "contains_nan" in left or "contains_nan" in right:
        merged["contains_nan"] = bool(left.get("contains_nan", True) or right.get("contains_nan", True))
    return merged


def _bounds(left: Path, right: Path) -> Path:
    """The least and the greatest of both; nothing where one side has values and does not tell."""
    told = [path for path in (left, right) if path.get("null_count") != path.get("num_values")]
    if not told or any(name not in path for path in told for name in _BOUNDS):
        return {}
    try:
        kind = parse_type(left["shredded_type"])
    except PenstockError:
        return {}
    if kind.order is Order.NONE:
        return {}
    order = bounds_order(kind)
    least, greatest = _BOUNDS
    return {
        least: min((path[least] for path in told), key=order),
        greatest: max((path[greatest] for path in told), key=order),
    }
