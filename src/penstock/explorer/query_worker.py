"""The process that runs one query, or binds one filter: a DuckDB that can do nothing else, and then ends.

Another process, since two DuckDBs of one cannot have the same catalog file; and so that a query can be stopped, and
takes its memory along. It imports little, because somebody waits. What it gets is a pickled task of the server that
started it, what it gives JSON.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb

_LETTERS_OF_A_ROW = 100_000
_MEGABYTE = 2**20
_PROGRAM = 3000  # megabytes of addresses that DuckDB takes before it has any rows
_REWRITER = "expression_rewriter"  # computes constants, and is all of the optimizer that is wanted for filters


@dataclass(frozen=True)
class QueryTask:
    """A query, how the lake is attached for it, what DuckDB may read, and how much it may take."""

    sql: str
    attach: str = field(repr=False)
    extensions: tuple[str, ...]
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    stores: Any = field(default=None, repr=False)
    most_rows: int = 200
    most_letters: int = 2000  # of one value
    megabytes: int = 1000
    threads: int = 2

    def answer(self) -> dict[str, Any]:
        """The first rows of the query, as texts."""
        return _run(self)


@dataclass(frozen=True)
class FilterTask:
    """A predicate, and the columns and the name of the table that it is about, as CREATE TABLE has them."""

    predicate: str
    columns: str
    table: str = "t"
    megabytes: int = 200

    def answer(self) -> dict[str, Any]:
        """DuckDB's plan of an empty table's rows under the predicate, with constants computed."""
        with _stand_in(self) as connection:
            sql = f"SELECT 1 FROM {self.table} WHERE ({self.predicate}\n)"
            # DuckDB imports pandas for the sake of parameters, which takes longer than all else here.
            [[text]] = connection.execute(f"SELECT json_serialize_plan({_literal(sql)}, optimize := true)").fetchall()
        return {"plan": text}


def main() -> None:
    """Run the task on the input, and write what it gives."""
    task: QueryTask | FilterTask = pickle.load(sys.stdin.buffer)
    # DuckDB does not count everything that it takes, such as one very long text.
    most = (task.megabytes + _PROGRAM) * _MEGABYTE
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        answer = task.answer()
    except (duckdb.Error, MemoryError) as error:
        answer = {"error": str(error) or "out of memory"}
    json.dump(answer, sys.stdout)


def _run(task: QueryTask) -> dict[str, Any]:
    with _ready(task) as connection:
        began = time.monotonic()
        relation = connection.sql(task.sql)
        names, types = relation.columns, [str(kind) for kind in relation.types]
        columns = ", ".join(f"c{place}" for place in range(len(names)))
        letters = max(40, min(task.most_letters, _LETTERS_OF_A_ROW // len(names)))
        shown = ", ".join(f"left(CAST(c{place} AS VARCHAR), {letters + 1})" for place in range(len(names)))
        query = f"SELECT {shown} FROM ({task.sql}\n) AS q({columns}) LIMIT {task.most_rows + 1}"
        rows = connection.execute(query).fetchmany(task.most_rows + 1)
        return {
            "names": names, "types": types, "rows": rows, "letters": letters, "seconds": time.monotonic() - began
        }  # fmt: skip


def _ready(task: QueryTask) -> duckdb.DuckDBPyConnection:
    """A DuckDB that has the lake, and after that can reach nothing else and be told nothing else."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for extension in task.extensions:
        connection.execute(f"LOAD {extension}")
    if task.stores:
        _add_secrets(connection, task.stores)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(task.attach)
    connection.execute("USE lake")
    settings: dict[str, Any] = {
        "allowed_directories": list(task.folders),
        "allowed_paths": list(task.files),
        "memory_limit": f"{task.megabytes}MB",
        "threads": task.threads,
        "temp_directory": "",
        "streaming_buffer_size": "1GB",  # the change feed hangs with less
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
        "enable_external_access": False,
        "lock_configuration": True,
    }
    for name, value in settings.items():
        connection.execute(f"SET {name} = {_literal(value)}")
    return connection


def _stand_in(task: FilterTask) -> duckdb.DuckDBPyConnection:
    """A DuckDB with an empty table, which reads nothing."""
    limited: dict[str, Any] = {"threads": 1, "enable_external_access": "false", "memory_limit": f"{task.megabytes}MB"}
    connection = duckdb.connect(config=limited)
    optimizers = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    unwanted = ",".join(name for (name,) in optimizers if name != _REWRITER)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET disabled_optimizers = '{unwanted}'")
    connection.execute("SET python_enable_replacements = false")
    connection.execute(f"CREATE TABLE {task.table} ({task.columns})")
    connection.execute("SET lock_configuration = true")
    return connection


def _add_secrets(connection: duckdb.DuckDBPyConnection, stores: Any) -> None:
    # These imports take their time, and only lakes in buckets need them.
    from penstock.storage.azure import add_azure_secret, azure_access
    from penstock.storage.options import receive_stores
    from penstock.storage.s3 import S3Access, add_secret

    receive_stores(stores)
    for store, options in stores.items():
        if store.kind == "s3":
            add_secret(connection, S3Access.of(store.name, options))
        elif store.kind == "azure":
            add_azure_secret(connection, azure_access(f"az://{store.name}/"))


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


if __name__ == "__main__":
    main()
