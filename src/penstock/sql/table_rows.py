"""Answers queries and statements: the plan of a table's rows, and INSERT, DELETE, UPDATE and MERGE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.snapshots import latest_snapshot, snapshot_from_time
from penstock.ducklake.catalog.table_files import table_size
from penstock.ducklake.catalog.visible_files import partitions_of_files
from penstock.ducklake.changing.merge_rows import Action, Case
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.merge import Merge
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.reading.scan_columns import ROW_ID
from penstock.ducklake.table import Table
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError, UnsupportedError
from penstock.spark.jvm import frame_of_plan, query_execution
from penstock.spark.write_job import Distribution
from penstock.sql.bridge import items_of, sql_class
from penstock.sql.described_tables import NANOSECONDS
from penstock.sql.evolving_tables import EvolvingTables
from penstock.sql.shown_objects import moment_of
from penstock.sql.table_definitions import TableDefinitions
from penstock.sql.used_definitions import UsedDefinitions

SOURCE_COLUMN = "_penstock_"  # and the place of a column of a merge's source: see StatementNames
_CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")  # Spark's own names
_NET_CHANGES = "NET_CHANGES"
_DISTRIBUTIONS = ("auto", "none", "partition")


class TableRows:
    """Questions of LakeTable and of the rules."""

    def __init__(
        self,
        lake: DuckLake,
        lake_id: str,
        definitions: TableDefinitions,
        evolving: EvolvingTables,
        used: UsedDefinitions,
    ) -> None:
        self._lake, self._id, self._definitions, self._evolving = lake, lake_id, definitions, evolving
        self._used = used

    def pin(self, noted: str) -> str:
        """What all tables of a query are read at: a snapshot, or this thread's transaction.

        Views and macros, of which this was noted when the query was made, have to be the same there.
        """
        attachment = self._lake._attachment
        if attachment.in_transaction:
            return json.dumps({"version": None})
        shown, newest = attachment.current_snapshot(), latest_snapshot(attachment.catalog.database)
        self._used.check(json.loads(noted), shown.id)
        return json.dumps({"version": shown.id, "newest": newest.id, "time": str(newest.time)})

    def in_transaction(self) -> bool:
        """Whether the caller is inside a transaction."""
        return self._lake._attachment.in_transaction

    def rows(self, handle: str, pin: str, row_ids: bool) -> Any:
        """The analyzed plan of a table's rows."""
        found = json.loads(handle)
        at, nanoseconds = found["at"], found.get(NANOSECONDS)
        version = json.loads(pin)["version"] if at is None else at
        frame = self._table(handle).read(version=version, row_ids=row_ids, nanoseconds=nanoseconds)
        return query_execution(frame).analyzed()

    def statistics(self, handle: str) -> str:
        """The size of a table: its rows, and the bytes of its files."""
        shown, info = self._seen(handle)
        rows, size = table_size(shown.database, shown.at, info.id)
        return json.dumps({"rows": rows, "bytes": size})

    def partitions(self, handle: str) -> str:
        """The values of each partition that the catalog tells of."""
        shown, info = self._seen(handle)
        spec = objects.current_partition_spec(shown.database, shown.at, info.id)
        found = {} if spec is None else partitions_of_files(shown.database, shown.at, info.id, spec)
        return json.dumps(list(set(found.values())))

    def append(self, handle: str, jframe: Any, options: str) -> None:
        """INSERT INTO, and the rows of CREATE TABLE AS SELECT."""
        if self._keep_staged(handle, jframe):
            return
        with self._statement(handle, jframe) as frame:
            self._table(handle).append(frame, distribution=_distribution(options))

    def overwrite(self, handle: str, jframe: Any, options: str, where: Any) -> None:
        """INSERT OVERWRITE of all or of what a predicate is true for, and the rows of REPLACE TABLE AS SELECT."""
        if self._keep_staged(handle, jframe):
            return
        with self._statement(handle, jframe) as frame:
            self._table(handle).overwrite(frame, where=_column(where), distribution=_distribution(options))

    def overwrite_partitions(self, handle: str, jframe: Any, options: str) -> None:
        """INSERT OVERWRITE of the partitions that the rows are in."""
        with self._statement(handle, jframe) as frame:
            self._table(handle).overwrite_partitions(frame, distribution=_distribution(options))

    def truncate(self, handle: str, _: Any) -> None:
        """TRUNCATE TABLE."""
        self._table(handle).truncate()

    def delete(self, handle: str, _: Any, where: Any) -> None:
        """DELETE FROM."""
        self._table(handle).delete(_column(where))

    def update(self, handle: str, _: Any, values: Any, where: Any) -> None:
        """UPDATE."""
        self._table(handle).update(_values(values), _column(where))

    def merge(self, handle: str, jframe: Any, on: Any, clauses: Any) -> None:
        """MERGE INTO."""
        with self._statement(handle, jframe) as frame:
            source = frame.toDF(*(f"{SOURCE_COLUMN}{place}" for place in range(len(frame.columns))))
            merge = self._table(handle).merge(source, F.lit(True) if on is None else SparkColumn(on))
            for case, action, values, condition in map(items_of, items_of(clauses)):
                merge = _with_clause(merge, case, action, values, condition)
            merge.execute()

    def changes(self, schema: str, name: str, start: Any, end: Any, from_start: bool, to_end: bool, mode: str) -> str:
        """The columns of CHANGES FROM ... TO ..., by versions (texts) or times (microseconds)."""
        handle = json.dumps({"schema": schema, "name": name, **self._span(start, end, from_start, to_end)})
        frame, row_ids = self._changes(handle)
        if mode == _NET_CHANGES and not row_ids:
            raise UnsupportedError(
                f"net changes of {schema}.{name} cannot be told: it has a column rowid, which hides DuckLake's"
            )
        return json.dumps({"schema": frame.schema.json(), "handle": handle, "row_ids": row_ids})

    def changed_rows(self, handle: str) -> Any:
        """The analyzed plan of what CHANGES shows."""
        return query_execution(self._changes(handle)[0]).analyzed()

    def _changes(self, handle: str) -> tuple[DataFrame, bool]:
        """The feed with the columns that Spark's CHANGES has, and whether DuckLake's row id is among them."""
        found = json.loads(handle)
        feed = self._table(handle).changes(found["start"], found["end"])
        version, row_id, kind, *columns = (f"_penstock_{place}" for place in range(len(feed.columns)))
        names = feed.columns[3:]
        row_ids = ROW_ID not in (name.lower() for name in names)
        times = self._lake.snapshots().selectExpr("snapshot_id", "snapshot_time")
        joined = feed.toDF(version, row_id, kind, *columns).join(
            F.broadcast(times), F.col(version) == F.col("snapshot_id")
        )
        shown = [F.col(column).alias(name) for column, name in zip(columns, names, strict=True)]
        shown += [F.col(row_id).alias(ROW_ID)] if row_ids else []
        told = [F.col(kind), F.col(version), F.col("snapshot_time")]
        return joined.select(*shown, *(c.alias(n) for c, n in zip(told, _CHANGE_COLUMNS, strict=True))), row_ids

    def _span(self, start: Any, end: Any, from_start: bool, to_end: bool) -> dict[str, int]:
        attachment = self._lake._attachment
        newest = attachment.current_snapshot().id
        first = 0 if start is None else self._bound(start, "start") + (not from_start)
        last = newest if end is None else self._bound(end, "end") - (not to_end)
        return {"start": first, "end": last}

    def _bound(self, bound: str | int, which: str) -> int:
        if isinstance(bound, str):
            if not bound.strip().isdecimal():
                raise InvalidError(f"{bound!r} is no snapshot's number; the {which} of CHANGES is a whole number")
            return int(bound)
        if which == "start":
            return snapshot_from_time(self._lake._attachment.catalog.database, moment_of(bound)).id
        return self._lake.snapshot_at(timestamp=moment_of(bound)).id

    def _seen(self, handle: str) -> tuple[Shown, TableInfo]:
        """What a handle was made of: the lake as it is looked at, and the table there."""
        found = json.loads(handle)
        shown = self._lake._attachment.shown(found["at"])
        return shown, objects.find_table(shown.database, shown.at, shown.data_path, found["schema"], found["name"])

    def _table(self, handle: str) -> Table:
        found = json.loads(handle)
        return self._lake.table(quoted_name(found["schema"], found["name"]))

    def _keep_staged(self, handle: str, jframe: Any) -> bool:
        """Rows of a table that is yet to be wait for its commit."""
        token = json.loads(handle).get("staged")
        if token is not None:
            self._definitions.keep_rows(token, pinned_frame(self._lake, self._id, jframe))
        return token is not None

    @contextmanager
    def _statement(self, handle: str, jframe: Any) -> Iterator[DataFrame]:
        """A statement, and the frame that it takes, whose tables are as they are when it begins."""
        with self._evolving.going_on(handle):
            yield pinned_frame(self._lake, self._id, jframe)


def pinned_frame(lake: DuckLake, lake_id: str, jframe: Any) -> DataFrame:
    """A frame that shows the lake's tables as this thread sees them now, whatever is written meanwhile."""
    frame = DataFrame(jframe, lake.spark)
    query = sql_class(lake.spark, "PinnedQuery")
    plan = query_execution(frame).analyzed()
    tables = [items_of(table) for table in items_of(query.tables(lake_id, plan))]
    if not tables:
        return frame
    plans = [_analyzed_rows(lake, json.loads(handle), row_ids) for handle, row_ids in tables]
    return frame_of_plan(frame, query.of(lake_id, plan, plans))


def _analyzed_rows(lake: DuckLake, handle: dict[str, Any], row_ids: bool) -> Any:
    table = lake.table(quoted_name(handle["schema"], handle["name"]))
    frame = table.read(version=handle["at"], row_ids=row_ids, nanoseconds=handle.get(NANOSECONDS))
    return query_execution(frame).analyzed()


def _with_clause(merge: Merge, case: Case, action: Action, values: Any, condition: Any) -> Merge:
    given = None if values is None else _values(values)
    verb = getattr(merge, f"when_{case.replace(' ', '_')}_{action}")
    made: Merge = verb(_column(condition)) if action == "delete" else verb(given, _column(condition))
    return made


def _values(values: Any) -> dict[str, SparkColumn]:
    """New values by the paths of what they are for."""
    found: dict[str, SparkColumn] = {}
    for path, value in map(items_of, items_of(values)):
        if path in found:
            raise InvalidError(f"{path} is set twice; set it once")
        found[path] = SparkColumn(value)
    return found


def _column(jcolumn: Any) -> SparkColumn | None:
    return None if jcolumn is None else SparkColumn(jcolumn)


def _distribution(options: str) -> Distribution:
    """How rows come to the tasks that write: the one option that a write takes."""
    given = {name.lower(): value for name, value in json.loads(options).items()}
    chosen = given.pop("distribution", "auto")
    if given:
        raise InvalidError(f"a write to a lake has no option {', '.join(given)}; it takes distribution")
    if chosen not in _DISTRIBUTIONS:
        raise InvalidError(f"distribution {chosen!r} is none of {', '.join(_DISTRIBUTIONS)}")
    return cast(Distribution, chosen)
