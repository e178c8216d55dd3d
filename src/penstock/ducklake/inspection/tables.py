"""Tells what a lake has, and of each table how many rows and files: a question for all tables, not one a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.location import redact
from penstock.ducklake.catalog.migration import format_version
from penstock.ducklake.catalog.opening import Catalog
from penstock.ducklake.catalog.remembered_answers import Moment
from penstock.ducklake.catalog.shown import Shown
from penstock.ducklake.catalog.snapshots import latest_snapshot, oldest_snapshot, snapshot_by_version
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import MANY_FILES
from penstock.ducklake.inspection.inlined_counts import inlined_delete_counts, inlined_row_counts
from penstock.ducklake.model.objects import SortKey, TableInfo
from penstock.ducklake.model.option_values import parse_boolean
from penstock.ducklake.model.options import effective_value
from penstock.ducklake.model.snapshots import Snapshot
from penstock.partitioning import parse_transform


@dataclass(frozen=True)
class TableSummary:
    """A table with what it holds.

    `rows` are those that a query finds, as far as the catalog tells. It does not (`is_exact`) for an older snapshot
    whose files were merged since then: these count whole.
    """

    id: int
    uuid: str
    schema: str
    name: str
    comment: str | None
    rows: int
    inlined_rows: int  # of the rows, those that the catalog itself keeps
    file_count: int
    file_bytes: int
    delete_file_count: int
    delete_bytes: int
    deleted_rows: int  # of the files' rows
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    is_exact: bool = True

    @property
    def full_name(self) -> str:
        """The name with that of the schema."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class LakeSummary:
    """A lake at one snapshot; no secret is in it."""

    location: str
    engine: str
    format_version: str
    data_path: str
    encrypted: bool
    created_by: str | None
    snapshot_count: int
    oldest: Snapshot
    newest: Snapshot
    schema_count: int
    table_count: int
    view_count: int
    macro_count: int
    rows: int
    inlined_rows: int
    file_count: int
    file_bytes: int
    delete_file_count: int
    delete_bytes: int
    deleted_rows: int


@dataclass(frozen=True)
class FileTotals:
    """What the files of a table are together; `mixed` are those that hold rows of later snapshots too."""

    count: int = 0
    bytes: int = 0
    rows: int = 0
    mixed: int = 0


def table_summaries(shown: Shown) -> list[TableSummary]:
    """Every table that a snapshot shows, by schema and name."""
    with shown.database.consistent():
        tables = objects.tables(shown.database, shown.at, shown.data_path)
        found = _summaries(shown, tables)
    return sorted(found, key=lambda summary: (summary.schema, summary.name))


def table_summary(shown: Shown, table: TableInfo) -> TableSummary:
    """One table."""
    with shown.database.consistent():
        [summary] = _summaries(shown, [table])
    return summary


def lake_summary(catalog: Catalog, at: At, newest: Snapshot | None = None) -> LakeSummary:
    """The lake as a snapshot shows it; those after the `newest` one, if that is given, count as not there."""
    database = catalog.database
    with database.consistent():
        newest = newest or latest_snapshot(database)
        tables = table_summaries(Shown(database, at, catalog.data_path))
        options = catalog.options()
        kinds = ("schema", "view", "macro")
        counted = [database.value(f"SELECT count(*) FROM ducklake_{kind} WHERE {at.visible()}") for kind in kinds]
        return LakeSummary(
            location=str(database.location),
            engine=database.engine,
            format_version=format_version(database),
            data_path=redact(catalog.data_path),
            encrypted=bool(parse_boolean(effective_value("encrypted", options, None, None) or "")),
            created_by=effective_value("created_by", options, None, None),
            snapshot_count=int(
                database.value(f"SELECT count(*) FROM ducklake_snapshot WHERE snapshot_id <= {newest.id}")
            ),
            oldest=snapshot_by_version(database, oldest_snapshot(database)),
            newest=newest,
            schema_count=int(counted[0]),
            table_count=len(tables),
            view_count=int(counted[1]),
            macro_count=int(counted[2]),
            rows=sum(table.rows for table in tables),
            inlined_rows=sum(table.inlined_rows for table in tables),
            file_count=sum(table.file_count for table in tables),
            file_bytes=sum(table.file_bytes for table in tables),
            delete_file_count=sum(table.delete_file_count for table in tables),
            delete_bytes=sum(table.delete_bytes for table in tables),
            deleted_rows=sum(table.deleted_rows for table in tables),
        )


def _summaries(shown: Shown, tables: Sequence[TableInfo]) -> list[TableSummary]:
    database, at = shown.database, shown.at
    only = tables[0].id if len(tables) == 1 else None
    files, deletes = _file_totals(shown, "data_file", only), _file_totals(shown, "delete_file", only)
    inlined = inlined_row_counts(database, at, tables)
    inlined_deletes = inlined_delete_counts(database, at, tables)
    comments, partitions, orders = _comments(shown, only), _partitions(shown, only), _orders(shown, only)
    found = []
    for table in tables:
        held, lost = files.get(table.id, FileTotals()), deletes.get(table.id, FileTotals())
        deleted_rows = lost.rows + inlined_deletes.get(table.id, 0)
        found.append(
            TableSummary(
                id=table.id,
                uuid=table.uuid,
                schema=table.schema.name,
                name=table.name,
                comment=comments.get(table.id),
                rows=held.rows - deleted_rows + inlined.get(table.id, 0),
                inlined_rows=inlined.get(table.id, 0),
                file_count=held.count,
                file_bytes=held.bytes,
                delete_file_count=lost.count,
                delete_bytes=lost.bytes,
                deleted_rows=deleted_rows,
                partitioned_by=partitions.get(table.id, ()),
                sorted_by=orders.get(table.id, ()),
                is_exact=not held.mixed and not lost.mixed,
            )
        )
    return found


def _file_totals(shown: Shown, kind: str, only: int | None) -> dict[int, FileTotals]:
    """The files of each table; those of a large lake are added up once a snapshot."""
    database, at = shown.database, shown.at
    if at.own is not None:
        return _asked_totals(shown, kind, only)
    newest = latest_snapshot(database)
    return database.answers.answer(
        ("file totals", kind, only, at),
        Moment(newest.id, newest.time),
        lambda: _asked_totals(shown, kind, only),
        lambda totals: sum(total.count for total in totals.values()) >= MANY_FILES,
    )


def _asked_totals(shown: Shown, kind: str, only: int | None) -> dict[int, FileTotals]:
    if kind == "data_file":
        rows, joined = "f.record_count", ""
    else:  # the extension may leave the delete file of a file that is gone
        rows = "CASE WHEN d.data_file_id IS NULL THEN 0 ELSE f.delete_count END"
        joined = f"LEFT JOIN ducklake_data_file d ON d.data_file_id = f.data_file_id AND {shown.at.visible('d')}"
    sql = f"""SELECT f.table_id, count(*), sum(coalesce(f.file_size_bytes, 0)), sum(coalesce({rows}, 0)),
                     sum(CASE WHEN f.partial_max > {shown.at.version} THEN 1 ELSE 0 END)
              FROM ducklake_{kind} f {joined} WHERE {shown.at.visible("f")}{_of(only, "f.table_id")}
              GROUP BY f.table_id"""
    with shown.database.joining():
        return {table_id: FileTotals(*map(int, counted)) for table_id, *counted in shown.database.query(sql)}


def _comments(shown: Shown, only: int | None) -> dict[int, str]:
    sql = f"""SELECT object_id, "value" FROM ducklake_tag
              WHERE "key" = 'comment' AND {shown.at.visible()}{_of(only, "object_id")}"""
    return {object_id: value for object_id, value in shown.database.query(sql) if value is not None}


def _partitions(shown: Shown, only: int | None) -> dict[int, tuple[str, ...]]:
    """How new rows are partitioned, as `create_table` takes it."""
    at = shown.at
    rows = shown.database.query(
        f"""SELECT p.table_id, p."transform", c.column_name
            FROM ducklake_partition_info i
            JOIN ducklake_partition_column p ON p.partition_id = i.partition_id AND p.table_id = i.table_id
            LEFT JOIN ducklake_column c ON c.table_id = p.table_id AND c.column_id = p.column_id AND {at.visible("c")}
            WHERE {at.visible("i")}{_of(only, "i.table_id")} ORDER BY p.table_id, p.partition_key_index"""
    )
    return _grouped((table_id, parse_transform(how).describe(name or "?")) for table_id, how, name in rows)


def _orders(shown: Shown, only: int | None) -> dict[int, tuple[str, ...]]:
    """What new rows are sorted by, as `create_table` takes it."""
    rows = shown.database.query(
        f"""SELECT e.table_id, e.expression, e.dialect, e.sort_direction, e.null_order
            FROM ducklake_sort_info i
            JOIN ducklake_sort_expression e ON e.sort_id = i.sort_id AND e.table_id = i.table_id
            WHERE {shown.at.visible("i")}{_of(only, "i.table_id")} ORDER BY e.table_id, e.sort_key_index"""
    )
    return _grouped((table_id, _shown_key(SortKey(*key))) for table_id, *key in rows)


def _shown_key(key: SortKey) -> str:
    return f"{key.expression} {key.direction} {key.null_order.replace('_', ' ')}"


def _grouped(pairs: Iterable[tuple[int, str]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = defaultdict(list)
    for number, text in pairs:
        found[number].append(text)
    return {number: tuple(texts) for number, texts in found.items()}


def _of(only: int | None, column: str = "table_id") -> str:
    return "" if only is None else f" AND {column} = {only}"
