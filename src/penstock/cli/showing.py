"""The command `show`: one table by the catalog alone, its columns, files, partitions or snapshots; or a view."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from penstock.cli.commands import command
from penstock.cli.lakes import MOST, AtOption, LakeArgument, TableArgument, opened, shown, table_of
from penstock.cli.looking import history_of, rest
from penstock.cli.reports import Field, Listing, Report, Sheet
from penstock.cli.texts import listed, number, size
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.named_lakes.read_catalogs import ReadCatalog
from penstock.ducklake.inspection.columns import column_summaries, walk
from penstock.ducklake.inspection.files import FileOrder, file_summaries
from penstock.ducklake.inspection.partition_values import PartitionValue
from penstock.ducklake.inspection.partitions import PartitionOrder, partition_summaries
from penstock.ducklake.inspection.tables import table_summary
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.model.objects import TableInfo, View

_MANY = 1000
_ASCENDING = ("id", "value")
_SORT = "Files: id, size, rows, deleted. Partitions: value, bytes, rows, files. Largest first, but for id and value."
_LIMIT = "How many files, partitions or snapshots at most."


def register(app: typer.Typer) -> None:
    """Makes this function a command of a program."""
    command(
        app, "show", "penstock show sales orders", "penstock show sales orders --files --sort size --limit 10",
        "penstock show sales eu.orders --partitions --csv",
    )(show)  # fmt: skip


def show(
    lake: LakeArgument,
    table: TableArgument,
    schema: Annotated[bool, typer.Option("--schema", help="Its columns, with the fields inside of them.")] = False,
    files: Annotated[bool, typer.Option("--files", help="Its data files.")] = False,
    partitions: Annotated[bool, typer.Option("--partitions", help="Its partitions.")] = False,
    snapshots: Annotated[bool, typer.Option("--snapshots", help="What snapshots did to it, as `history`.")] = False,
    sort: Annotated[str | None, typer.Option("--sort", metavar="BY", help=_SORT)] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, max=MOST, metavar="N", help=_LIMIT)] = None,
    at: AtOption = None,
) -> Report:
    """Show one table, or the SQL of a view."""
    if schema + files + partitions + snapshots > 1:
        raise typer.BadParameter("give one of --schema, --files, --partitions and --snapshots")
    if sort is not None and not (files or partitions):
        raise typer.BadParameter("--sort is for --files and --partitions")
    if limit is not None and not (files or partitions or snapshots):
        raise typer.BadParameter("--limit is for --files, --partitions and --snapshots")
    most = limit or _MANY
    with opened(lake, at) as found:
        view = None if schema or files or partitions or snapshots else _view(found, table)
        if view is not None:
            return _view_sheet(view)
        info = table_of(found, table)
        if schema:
            return _schema(found, info)
        if files:
            return _files(found, info, sort or "id", most)
        if partitions:
            return _partitions(found, info, sort or "value", most)
        return history_of(found, info, most) if snapshots else _table(found, info)


def _view(lake: ReadCatalog, name: str) -> View | None:
    schema, view = parse_table_name(name)
    views = objects.views(lake.catalog.database, lake.at, lake.catalog.data_path)
    return next((v for v in views if objects.same_name(v.schema, schema) and objects.same_name(v.name, view)), None)


def _view_sheet(view: View) -> Sheet:
    facts = {"kind": "view", "schema": view.schema, "name": view.name, "dialect": view.dialect, "sql": view.sql}
    comment = view.tags.get("comment")
    said = {"view": f"{view.schema}.{view.name}", "comment": comment, "dialect": view.dialect, "SQL": view.sql}
    return Sheet({**facts, "comment": comment}, {name: text for name, text in said.items() if text}, "columns")


def _table(lake: ReadCatalog, table: TableInfo) -> Sheet:
    summary = table_summary(shown(lake), table)
    facts: dict[str, Any] = {
        "kind": "table", "schema": summary.schema, "name": summary.name, "id": summary.id, "uuid": summary.uuid,
        "comment": summary.comment, "path": table.path, "rows": summary.rows, "inlined_rows": summary.inlined_rows,
        "deleted_rows": summary.deleted_rows, "files": summary.file_count, "bytes": summary.file_bytes,
        "delete_files": summary.delete_file_count, "delete_bytes": summary.delete_bytes,
        "partitioned_by": list(summary.partitioned_by), "sorted_by": list(summary.sorted_by),
        "snapshot": lake.snapshot.id,
    }  # fmt: skip
    inlined = f", {number(summary.inlined_rows)} in the catalog" if summary.inlined_rows else ""
    said = {
        "table": summary.full_name,
        "comment": summary.comment,
        "rows": number(summary.rows) + inlined,
        "files": f"{number(summary.file_count)}, {size(summary.file_bytes)}",
        "deleted": f"{number(summary.deleted_rows)} rows of files" if summary.deleted_rows else None,
        "partitioned by": listed(summary.partitioned_by),
        "sorted by": listed(summary.sorted_by),
    }
    columns = _schema(lake, table, deep=False)
    return Sheet(facts, {name: text for name, text in said.items() if text}, "columns", columns)


def _schema(lake: ReadCatalog, table: TableInfo, *, deep: bool = True) -> Listing:
    fields = (
        Field("column", "column"), Field("type", "type"), Field("nullable", "nullable"),
        Field("default", "default", null=""), Field("min_value", "min"), Field("max_value", "max"),
        Field("contains_null", "has NULL"), Field("contains_nan", "has NaN", null="", people=deep),
        Field("bytes", "size", size, True), Field("comment", "comment", null=""),
    )  # fmt: skip
    columns = column_summaries(shown(lake), table)
    rows = [
        (_path(column.path), column.type, column.nullable, column.default, column.min_value, column.max_value,
         column.contains_null, column.contains_nan, column.bytes, column.comment)
        for column in (walk(columns) if deep else columns)
    ]  # fmt: skip
    return Listing(fields, rows)


def _path(parts: tuple[str, ...]) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' if set(part) & set('."') else part for part in parts)


def _files(lake: ReadCatalog, table: TableInfo, order: str, limit: int) -> Listing:
    fields = (
        Field("file", "file", number, True), Field("path", "path", people=False), Field("stored_path", "path"),
        Field("bytes", "size", size, True), Field("rows", "rows", number, True),
        Field("deleted_rows", "deleted", number, True), Field("partition", "partition", _partition, null=""),
        Field("begin_snapshot", "snapshot", number, True), Field("first_row_id", "first row id", people=False),
        Field("delete_file", "delete file", people=False), Field("delete_bytes", "size of deletes", people=False),
        Field("encrypted", "encrypted", people=False),
    )  # fmt: skip
    page = file_summaries(
        shown(lake), table, order=cast(FileOrder, order), descending=order not in _ASCENDING, limit=limit
    )
    rows = [
        (file.id, file.path, file.stored_path, file.size, file.rows, file.deleted_rows, _key(file.partition),
         file.begin_snapshot, file.row_id_start, file.delete_file, file.delete_size, file.encrypted)
        for file in page.items
    ]  # fmt: skip
    return Listing(fields, rows, rest(page.total - len(rows)))


def _partitions(lake: ReadCatalog, table: TableInfo, order: str, limit: int) -> Listing:
    fields = (
        Field("partition", "partition", _partition, null=""), Field("files", "files", number, True),
        Field("bytes", "size", size, True), Field("rows", "rows", number, True),
        Field("deleted_rows", "deleted", number, True),
    )  # fmt: skip
    page = partition_summaries(
        shown(lake), table, order=cast(PartitionOrder, order), descending=order not in _ASCENDING, limit=limit
    )
    rows = [(_key(one.values), one.file_count, one.bytes, one.rows, one.deleted_rows) for one in page.items]
    return Listing(fields, rows, rest(page.total - len(rows)))


def _key(values: tuple[PartitionValue, ...]) -> list[dict[str, str | None]] | None:
    return [vars(value) for value in values] or None


def _partition(values: object) -> str:
    assert isinstance(values, list)
    return ", ".join(f"{_field(value)}={'NULL' if value['value'] is None else value['value']}" for value in values)


def _field(value: dict[str, Any]) -> str:
    return value["name"] if value["transform"] == "identity" else f"{value['transform']}({value['name']})"
