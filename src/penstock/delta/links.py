"""Notes in a Delta log about tables elsewhere that show its files.

Delta has no word for them. They are versions of an application of ours: every writer carries those on, and checkpoints
keep them.
"""

from __future__ import annotations

import time

from penstock.delta.actions import Txn
from penstock.delta.log import Snapshot

_APPLICATION = "penstock:linked-into:"


def link_to(table: str) -> Txn:
    now = time.time_ns() // 1_000_000
    return Txn(_APPLICATION + table, now, now)


def linked_into(snapshot: Snapshot) -> list[str]:
    return sorted(app.removeprefix(_APPLICATION) for app in snapshot.txns if app.startswith(_APPLICATION))
