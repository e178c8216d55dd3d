"""Makes streams out of tables from what their users say."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.objects import column_versions, columns_at, find_table
from penstock.ducklake.catalog.snapshots import snapshot_from_time
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model.snapshots import Snapshot, Version, version_number
from penstock.ducklake.streaming.admission import Limits
from penstock.ducklake.streaming.table_stream import StreamDefinition, StreamedColumns, StreamOptions
from penstock.errors import InvalidError, NotFoundError

Start = Literal["initial"] | Version | str | datetime
INITIAL = "initial"


def define_stream(
    attachment: Attachment,
    schema: str,
    table: str,
    *,
    start: Start = INITIAL,
    changes: bool = False,
    max_snapshots_per_trigger: int | None = None,
    max_rows_per_trigger: int | None = None,
    fail_on_data_loss: bool = True,
    nanoseconds: bool = False,
) -> StreamDefinition:
    """A stream of a table, as the lake shows it now: what a transaction has not committed does not count."""
    limits = Limits(max_snapshots_per_trigger, max_rows_per_trigger)
    database = attachment.catalog.database
    with database.consistent():
        newest = attachment.current_snapshot()
        info = find_table(database, At(newest.id), attachment.catalog.data_path, schema, table)
        columns = columns_at(column_versions(database, info.id), At(newest.id))
        first = _first_snapshot(attachment, start, newest)
    options = StreamOptions(first, changes, limits, fail_on_data_loss, nanoseconds)
    return StreamDefinition(info, StreamedColumns(columns, newest.id), options)


def _first_snapshot(attachment: Attachment, start: Start, newest: Snapshot) -> int | None:
    """The first snapshot whose changes count: one that there is, or the next one; None for all that there is."""
    if start == INITIAL:
        return None
    if isinstance(start, str | datetime):
        return snapshot_from_time(attachment.catalog.database, attachment.instant(start)).id
    number = version_number(start)
    if number < 0:
        raise InvalidError(f"start cannot be {number}; it is {INITIAL!r}, the number of a snapshot, or a time")
    if number > newest.id + 1:
        raise NotFoundError(
            f"snapshot {number} does not exist, and the next one is {newest.id + 1}; start there or before"
        )
    return number  # one that was expired since does not matter to a stream that has a checkpoint
