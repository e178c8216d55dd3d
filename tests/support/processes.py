"""Processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path


def environment() -> dict[str, str]:
    """Of a process that finds `support`, and the same Penstock as the tests do."""
    places = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
