"""Parses names as users write them: `orders`, `sales.orders`, `"odd.name".orders`."""

from __future__ import annotations

import re

from penstock.errors import NotFoundError

DEFAULT_SCHEMA = "main"
_PART = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([^."`]+)')


def parse_table_name(name: str) -> tuple[str, str]:
    """Parse a name into schema and table; one alone is in `main`. Parts with dots are in double quotes or backticks."""
    parts: list[str] = []
    position = 0
    while position <= len(name):
        match = _PART.match(name, position)
        if match is None:
            raise NotFoundError(f'{name!r} is not a table name; write table, schema.table or "schema"."table"')
        double, back, bare = match.groups()
        parts.append(
            double.replace('""', '"') if double is not None else back.replace("``", "`") if back is not None else bare
        )
        position = match.end() + 1
        if match.end() == len(name):
            break
        if name[match.end()] != ".":
            raise NotFoundError(
                f"{name!r} is not a table name; quote the part with special characters in double quotes"
            )
    if len(parts) > 2:
        raise NotFoundError(f"{name!r} has {len(parts)} parts; write schema.table, quoting parts that contain dots")
    return (parts[0], parts[1]) if len(parts) == 2 else (DEFAULT_SCHEMA, parts[0])
