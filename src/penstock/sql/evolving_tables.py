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
        self._forks: set[str] = set()  # those that go on in the transaction that the statement is in

    def alter(self, schema: str, name: str, alter: Alter) -> None:
        """Alter a table for the statement that this thread's caller is analysing."""
        attachment = self._attachment
        known = self._found(schema, name)
        forked = attachment.forked()
        transaction = self._waiting[known][3] if known else forked or attachment.begun(CommitInfo())
        with attachment.lent(transaction):
            alter()
        token = known or uuid4().hex
        self._waiting[token] = (attachment.caller, schema, name, transaction)
        if forked is not None:
            self._forks.add(token)
        while len(self._waiting) > _MOST_WAITING:
            self._forks.discard(self._waiting.popitem(last=False)[0])

    @contextmanager
    def looked_at(self, schema: str, name: str) -> Iterator[dict[str, str]]:
        """Look at a table as it was altered; yields what its handle needs to find that again."""
        token = self._found(schema, name)
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
        if waiting is None or token in self._forks:
            self._forks.discard(token)
            with self._attachment.statement() as own:
                if waiting is not None:
                    own.staging = waiting[3].staging
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
