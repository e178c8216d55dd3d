"""Writes WITH SCHEMA EVOLUTION: columns that are new come with the rows, in one snapshot.

Spark alters the table while it analyses the statement, then looks at it again, and then the rows are written. So what
is altered waits in a transaction of its own, which the write goes on with. A statement that fails leaves nothing.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.commit import CommitInfo
from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.transaction import Transaction

_MOST_WAITING = 64  # those of statements that failed in Spark are never asked for
Alter = Callable[[], None]


class EvolvingTables:
    """Tables that were altered for a write which has not come yet."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._waiting: OrderedDict[str, tuple[int, str, str, Transaction]] = OrderedDict()

    def alter(self, schema: str, name: str, alter: Alter) -> None:
        """Alter a table for the statement that this thread's caller is analysing."""
        attachment = self._attachment
        if attachment.in_transaction:
            alter()
            return
        known = self._found(schema, name)
        transaction = self._waiting[known][3] if known else attachment.begun(CommitInfo())
        with attachment.lent(transaction):
            alter()
        self._waiting[known or uuid4().hex] = (attachment.caller, schema, name, transaction)
        while len(self._waiting) > _MOST_WAITING:
            self._waiting.popitem(last=False)

    @contextmanager
    def looked_at(self, schema: str, name: str) -> Iterator[dict[str, str]]:
        """Look at a table as it was altered; yields what its handle needs to find that again."""
        token = None if self._attachment.in_transaction else self._found(schema, name)
        if token is None:
            yield {}
            return
        caller, _, _, transaction = self._waiting.pop(token)
        self._waiting[token] = (-caller, schema, name, transaction)  # others of this thread look at the lake itself
        with self._attachment.lent(transaction):
            yield {"evolving": token}

    @contextmanager
    def going_on(self, handle: str) -> Iterator[None]:
        """Go on with what was altered, if something was: a statement's write, which ends it."""
        token = json.loads(handle).get("evolving")
        waiting = self._waiting.pop(token, None) if token else None
        if waiting is None:
            with self._attachment.statement():
                yield
            return
        with self._attachment.resumed(waiting[3]) as transaction:
            transaction.check_message()
            yield

    def _found(self, schema: str, name: str) -> str | None:
        """What this thread's caller has altered of a table and not looked at yet."""
        for token, (caller, of, table, _) in list(self._waiting.items()):
            if caller == self._attachment.caller and same_name(of, schema) and same_name(table, name):
                return token
        return None
