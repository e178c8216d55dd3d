"""Lists the names that a query can use: for those who complete what somebody types."""

from __future__ import annotations

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.shown import Shown


def known_names(shown: Shown) -> list[tuple[str, ...]]:
    """Names of schemas, tables, views and columns, in parts: tables and views with and without schema."""
    database, where = shown.database, (shown.database, shown.at, shown.data_path)
    with database.consistent():
        found: set[tuple[str, ...]] = {(schema.name,) for schema in objects.schemas(*where)}
        for schema, name in [
            *((table.schema.name, table.name) for table in objects.tables(*where)),
            *((view.schema, view.name) for view in objects.views(*where)),
        ]:
            found |= {(name,), (schema, name)}
        columns = f"SELECT DISTINCT column_name FROM ducklake_column WHERE {shown.at.visible()}"
        found |= {(name,) for (name,) in database.query(columns)}
    return sorted(found)
