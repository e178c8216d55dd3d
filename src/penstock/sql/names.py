"""Names as Spark hands them over, and as the lake takes them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.errors import InvalidError, NotFoundError


class NoSuchSchemaError(NotFoundError):
    """A schema that is not there, for which Spark has an error of its own."""


def one_schema(namespace: str) -> str:
    """The schema of a namespace, which Spark gives as a JSON list; an empty one is `main`."""
    parts = json.loads(namespace)
    if len(parts) > 1:
        raise InvalidError(f"{'.'.join(parts)} has {len(parts)} parts; a lake has schemas, and no schemas inside them")
    return str(parts[0]) if parts else DEFAULT_SCHEMA


def dotted(path: Sequence[str]) -> str:
    """A path to a field, each part quoted."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in path)
