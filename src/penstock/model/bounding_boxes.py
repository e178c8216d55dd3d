"""The `extra_stats` of geometries: a bounding box and the kinds of shapes, as JSON."""

from __future__ import annotations

import json
from typing import Any


def merged_extra(left: str | None, right: str | None) -> str | None:
    """The box around both; what is not known on one side is not known of both."""
    if left is None or right is None:
        return None
    a, b = json.loads(left), json.loads(right)
    if not isinstance(a, dict) or not isinstance(b, dict) or "bbox" not in a or "bbox" not in b:
        return None
    types = sorted({*a.get("types", ()), *b.get("types", ())})
    return json.dumps({"bbox": _around(a["bbox"], b["bbox"]), "types": types}, separators=(",", ":"))


def _around(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    box: dict[str, Any] = {}
    for name in {**a, **b}:
        known = [value for value in (a.get(name), b.get(name)) if value is not None]
        box[name] = None if not known else (min if name.endswith("min") else max)(known)
    return box
