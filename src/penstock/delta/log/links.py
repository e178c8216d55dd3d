"""Keeps notes in a Delta log about tables elsewhere that show its files.

Delta has no word for them. They are a property of the table: every writer and every checkpoint carries those on. Older
versions made transactions of them, which a table may let expire (`delta.setTransactionRetentionDuration`).
"""

from __future__ import annotations

import json
from dataclasses import replace

from penstock.delta.format.actions import Metadata
from penstock.delta.log.snapshot import LogSnapshot

_PROPERTY = "penstock.linkedInto"
_APPLICATION = "penstock:linked-into:"


def with_link(snapshot: LogSnapshot, *tables: str) -> Metadata:
    """Adds notes of links to the table's metadata, and those that older versions of Penstock made."""
    tables = tuple(sorted({*linked_into(snapshot), *tables}))
    if not tables:
        return snapshot.metadata
    noted = json.dumps(tables, ensure_ascii=False)
    return replace(snapshot.metadata, configuration={**snapshot.metadata.configuration, _PROPERTY: noted})


def without_links(metadata: Metadata) -> Metadata:
    """Takes the notes out of metadata, which leaves what matters to those who write rows."""
    configuration = {key: value for key, value in metadata.configuration.items() if key != _PROPERTY}
    return replace(metadata, configuration=configuration)


def linked_into(snapshot: LogSnapshot) -> list[str]:
    """Returns the tables that show files of this one."""
    noted = json.loads(snapshot.metadata.configuration.get(_PROPERTY, "[]"))
    older = (app.removeprefix(_APPLICATION) for app in snapshot.txns if app.startswith(_APPLICATION))
    return sorted({*noted, *older})
