"""Writes files with DuckDB that PyArrow cannot: encrypted ones, variants, intervals, times with a zone."""

from __future__ import annotations

import tempfile
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidError, PenstockError
from penstock.schema.columns import Column
from penstock.schema.embedded_columns import EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD
from penstock.schema.statistics import WrittenFile
from penstock.storage.duckdb_files import connect_duckdb, load_httpfs
from penstock.storage.duckdb_sql import duckdb_quoted, stored_list, text_literal
from penstock.storage.filesystems import upload_file
from penstock.storage.parquet.duckdb_copy import KEY, copy_options, new_key
from penstock.storage.parquet.duckdb_statistics import DuckDBStatistics
from penstock.storage.parquet.files import OpenFile, PartitionValues
from penstock.storage.parquet.leaves import leaves
from penstock.storage.parquet.plan import WritePlan
from penstock.storage.parquet.values import check_not_null, sample_text, well_known_binary
from penstock.storage.paths import is_local


class DuckDBFile(OpenFile):
    """A file that DuckDB writes in one go: it is written to once.

    An encrypted one has a fresh key, which is kept out of the statements, since errors quote those.
    """

    appends = False

    def __init__(self, plan: WritePlan, values: PartitionValues) -> None:
        super().__init__(plan, values)
        self._key = new_key() if plan.encrypted else None
        self._written: WrittenFile | None = None

    @property
    def size(self) -> int:
        return self._written.size if self._written else 0

    def write(self, rows: pa.Table) -> None:
        assert self._written is None, "a file of DuckDB's is written once"
        _check(self.plan.columns, rows)
        rows = _named(rows, self.plan)
        if is_local(self.location):
            self._written = self._copy(rows, self.location.removeprefix("file://"))
            return
        with tempfile.TemporaryDirectory() as directory:
            local = f"{directory}/file.parquet"
            self._written = self._copy(rows, local)
            upload_file(local, self.location)

    def close(self) -> WrittenFile:
        assert self._written is not None, "a file is closed after it was written"
        return self._written

    def _copy(self, rows: pa.Table, target: str) -> WrittenFile:
        connection = _connection(self._key is not None).cursor()
        if self._key:
            connection.execute(f"SET VARIABLE {KEY} = from_base64(?)", [self._key])
        connection.register("rows", rows)
        statement = f"COPY ({_select(self.plan, rows)}) TO {text_literal(target)} ({self._options(rows)})"
        try:
            answer = connection.execute(statement).fetchone()
        except duckdb.Error as error:
            raise _explained(connection, self.plan, rows, error) from None
        finally:
            connection.close()
        assert answer is not None  # RETURN_STATS answers with one line a file
        _, count, size, footer_size, statistics, _ = answer
        found = DuckDBStatistics(self.plan.columns, statistics, rows)
        return WrittenFile(
            path=self.path,
            record_count=count,
            size=size,
            footer_size=footer_size,
            partition_values=self.values,
            encryption_key=self._key,
            columns=found.columns(),
            variants=found.variants(),
        )

    def _options(self, rows: pa.Table) -> str:
        embedded = [(EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD)] if self.plan.row_ids else []
        return copy_options(
            self.plan.columns,
            self.plan.options,
            self.group_rows(rows),
            embedded=embedded,
            encrypted=self._key is not None,
        )


@cache
def _connection(encrypted: bool) -> duckdb.DuckDBPyConnection:
    connection = connect_duckdb()
    connection.execute("SET threads = 1")  # a task has one core
    if encrypted:
        load_httpfs(connection)
    return connection


def _named(rows: pa.Table, plan: WritePlan) -> pa.Table:
    """The written columns as `v0, v1, ...`, geometries as bare bytes."""
    arrays = rows.columns[: plan.written_width]
    for position, column in enumerate(plan.columns):
        if column.type.name == "geometry":
            chunks = [well_known_binary(chunk) for chunk in arrays[position].chunks]
            arrays[position] = pa.chunked_array(chunks, type=chunks[0].type) if chunks else arrays[position]
    return pa.table(arrays, names=[f"v{i}" for i in range(len(arrays))])


def _select(plan: WritePlan, rows: pa.Table, positions: range | None = None) -> str:
    chosen = range(len(plan.columns)) if positions is None else positions
    items = [_item(plan.columns[position], position, rows) for position in chosen]
    if plan.row_ids and positions is None:
        items.append(f"v{len(plan.columns)} AS {duckdb_quoted(EMBEDDED_ROW_ID)}")
    return f"SELECT {', '.join(items)} FROM rows"


def _item(column: Column, position: int, rows: pa.Table) -> str:
    numbers = _as_numbers(column, rows.field(position).type)
    return stored_list([column], {column.id: f"v{position}"}, nanoseconds=numbers)


def _as_numbers(column: Column, kind: pa.DataType) -> bool:
    """Whether timestamps of nanoseconds arrive as numbers."""
    match column.type.name:
        case "struct":
            return any(_as_numbers(child, kind.field(i).type) for i, child in enumerate(column.children))
        case "list":
            return _as_numbers(column.children[0], kind.value_type)
        case "map":
            key, item = column.children
            return _as_numbers(key, kind.key_type) or _as_numbers(item, kind.item_type)
        case name:
            return name == "timestamp_ns" and pa.types.is_integer(kind)


def _check(columns: tuple[Column, ...], rows: pa.Table) -> None:
    """What DuckDB would not refuse, or not with the column's name."""
    check_not_null(columns, rows)
    for position, column in enumerate(columns):
        if not any(item.type.name == "interval" for item in column.walk()):
            continue
        for chunk in rows.column(position).chunks:
            for leaf, values, _ in leaves(column, chunk):
                if leaf.type.name == "interval":
                    _check_intervals(column.name, values)


def _check_intervals(name: str, values: pa.Array) -> None:
    for part in values.flatten():
        negative = pc.less(part, pa.scalar(0, part.type))
        if pc.any(negative).as_py():
            bad = sample_text(values.filter(negative)[0])
            raise InvalidError(f"column {name!r} is interval: {bad} does not fit (Parquet has no negative intervals)")


def _explained(
    connection: duckdb.DuckDBPyConnection, plan: WritePlan, rows: pa.Table, error: duckdb.Error
) -> PenstockError:
    """The column and a value that DuckDB cannot take, found by trying each column alone, and then halves of it."""
    for position, column in enumerate(plan.columns):
        reason = _failure(connection, plan, rows, position)
        if reason is None:
            continue
        part = rows
        while part.num_rows > 1:
            half = part.num_rows // 2
            first = part.slice(0, half)
            part = first if _failure(connection, plan, first, position) else part.slice(half)
        bad: Any = part.column(position)[0]
        return InvalidError(f"column {column.name!r} is {column.type}: {sample_text(bad)} does not fit ({reason})")
    return PenstockError(f"DuckDB cannot write {plan.directory}: {_first_line(error)}")


def _failure(connection: duckdb.DuckDBPyConnection, plan: WritePlan, rows: pa.Table, position: int) -> str | None:
    connection.register("rows", rows)
    try:
        connection.execute(_select(plan, rows, range(position, position + 1))).fetchall()
    except duckdb.Error as error:
        return _first_line(error)
    return None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
