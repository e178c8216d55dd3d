"""Counts what a piece of work asks of others: calls into the JVM, statements of the catalog's database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import GatewayClient

_MEMORY = "m\n"  # an object that Python needs no more: told when its garbage is collected, at any time


@contextmanager
def calls_counted() -> Iterator[list[str]]:
    """Collects the commands that go to the JVM meanwhile, from every thread."""
    commands: list[str] = []
    send = GatewayClient.send_command

    def counted(client: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith(_MEMORY):
            commands.append(command)
        return send(client, command, *args, **kwargs)

    GatewayClient.send_command = counted
    try:
        yield commands
    finally:
        GatewayClient.send_command = send


@contextmanager
def statements_counted(connection: sqlite3.Connection) -> Iterator[list[str]]:
    """Collects the statements that SQLite runs meanwhile."""
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        yield statements
    finally:
        connection.set_trace_callback(None)
