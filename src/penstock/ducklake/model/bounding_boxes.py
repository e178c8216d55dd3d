"""Merges the `extra_stats` of geometries: a bounding box and the kinds of shapes, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal


def merged_extra(left: str | None, right: str | None) -> str | None:
    """Merge two boxes into the one around both; what is not known on one side is not known of both."""
    if left is None or right is None:
        return None
    a, b = (json.loads(text, parse_float=Decimal) for text in (left, right))
    if not isinstance(a, dict) or not isinstance(b, dict) or "bbox" not in a or "bbox" not in b:
        return None
    types = sorted({*a.get("types", ()), *b.get("types", ())})
    sides = ", ".join(f'"{name}": {_side(name, a["bbox"], b["bbox"])}' for name in {**a["bbox"], **b["bbox"]})
    return f'{{"bbox": {{{sides}}}, "types": {json.dumps(types)}}}'


def _side(name: str, a: Mapping[str, Decimal | None], b: Mapping[str, Decimal | None]) -> str:
    known = [value for value in (a.get(name), b.get(name)) if value is not None]
    return format((min if name.endswith("min") else max)(known), "f") if known else "null"
