"""The pages of a table that the catalog fills: columns, partitions, files."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.ducklake.inspection.columns import column_summaries, walk
from penstock.ducklake.inspection.files import file_sizes, file_summaries
from penstock.ducklake.inspection.partitions import PartitionSummary, partition_summaries
from penstock.ducklake.inspection.tables import table_summary
from penstock.explorer import pictures
from penstock.explorer.asked import Asked, Pager
from penstock.explorer.rendering import Explorer, Theme, table_of

_COLUMNS, _PARTITIONS, _FILES = 200, 50, 50
_DRAWN = 30  # partitions, the largest ones
_PARTITION_ORDERS = ("value", "bytes", "rows", "files")
_FILE_ORDERS = ("id", "size", "rows", "deleted")


def columns(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """A table's columns with their statistics."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        found = list(walk(column_summaries(view.shown, table)))
        first = asked.offset(_COLUMNS)
        return explorer.page(
            "columns.html", asked, view, table=table, summary=table_summary(view.shown, table),
            columns=found[first : first + _COLUMNS], pager=Pager(asked.page, _COLUMNS, len(found)),
        )  # fmt: skip


def partitions(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """A table's partitions."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        order = asked.choice("order", _PARTITION_ORDERS)
        page = partition_summaries(
            view.shown, table, order=order, descending=order != "value",  # type: ignore[arg-type]
            offset=asked.offset(_PARTITIONS), limit=_PARTITIONS,
        )  # fmt: skip
        return explorer.page(
            "partitions.html", asked, view, table=table, summary=table_summary(view.shown, table),
            partitions=page.items, pager=Pager(asked.page, _PARTITIONS, page.total), order=order,
            label=partition_label, drawn=min(_DRAWN, page.total),
        )  # fmt: skip


def picture_of_partitions(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """The sizes of the largest partitions."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        page = partition_summaries(view.shown, table, order="bytes", descending=True, limit=_DRAWN)
    sizes = tuple((partition_label(one), one.bytes) for one in page.items)
    theme = Theme.asked(asked)
    return explorer.picture(("partitions", theme, sizes), lambda: pictures.partition_sizes(sizes, theme))


def files(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """A table's data files with their deletes."""
    with explorer.source.opened(asked.version) as view:
        table = table_of(view, request.path_params["table"])
        order = asked.choice("order", _FILE_ORDERS)
        page = file_summaries(
            view.shown, table, order=order, descending=order != "id",  # type: ignore[arg-type]
            offset=asked.offset(_FILES), limit=_FILES,
        )  # fmt: skip
        return explorer.page(
            "files.html", asked, view, table=table, summary=table_summary(view.shown, table),
            files=page.items, pager=Pager(asked.page, _FILES, page.total), order=order,
        )  # fmt: skip


def picture_of_files(explorer: Explorer, asked: Asked, request: Request) -> Response:
    """How many files there are of which size."""
    with explorer.source.opened(asked.version) as view:
        buckets = tuple(file_sizes(view.shown, table_of(view, request.path_params["table"])))
    theme = Theme.asked(asked)
    return explorer.picture(("files", theme, buckets), lambda: pictures.file_sizes(buckets, theme))


def partition_label(partition: PartitionSummary) -> str:
    """A partition by its values."""
    if not partition.values:
        return "(not partitioned)"
    return ", ".join(
        f"{value.name if value.transform == 'identity' else f'{value.transform}({value.name})'}"
        f" = {'NULL' if value.value is None else value.value}"
        for value in partition.values
    )
