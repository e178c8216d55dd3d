"""Writes a batch of a stream once, whatever dies when: its number is committed with its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.commit import CommitInfo
from penstock.ducklake.catalog.commits.staged_schemas import set_tag
from penstock.ducklake.catalog.commits.staging import Staging
from penstock.ducklake.catalog.commits.stream_batches import (
    NotedBatch,
    StreamBatch,
    StreamTakenError,
    check_stream,
    last_batch,
    noted_streams,
    tag_key,
)
from penstock.ducklake.catalog.objects import tables
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import ConflictError, InvalidError, NotFoundError
from penstock.spark.connect.sessions import is_connect
from penstock.storage.commit_log import log_retry

_QUERY_ID = "sql.streaming.queryId"  # Spark sets it for the thread of a stream: the id in its checkpoint


@dataclass(frozen=True)
class LakeBatch:
    """A batch of a stream, inside the block of `Lake.write_once`."""

    stream: str
    number: int
    is_new: bool  # whether the lake does not have it: else what the block does is dropped


@contextmanager
def written_once(
    attachment: Attachment, stream: str, batch: int, *, author: str | None = None, message: str | None = None
) -> Iterator[LakeBatch]:
    """A transaction whose statements are committed if the lake does not have the batch yet, and dropped if it has."""
    check_stream(stream, batch)
    told = message or f"batch {batch} of stream {stream}"
    info = CommitInfo(author, told, json.dumps({"stream": stream, "batch": batch}))
    with attachment.transaction(info) as transaction:
        own = NotedBatch(stream, batch, running_query(attachment))
        found = StreamBatch(own, last_batch(attachment.catalog.database, stream))
        found.check_run()
        transaction.staging.stream = found
        yield LakeBatch(stream, batch, found.is_new)
        if not found.is_new:
            transaction.roll_back()
        elif not transaction.staging.is_empty:
            _note(transaction.staging, found)


def _note(staging: Staging, batch: StreamBatch) -> None:
    """Remember the batch at each table that it wrote.

    Not noted as a change of the table: that would be a new schema version a batch, and a conflict with every writer.
    """
    written = staging.written_tables
    if not written:
        raise InvalidError(
            f"batch {batch.own.batch} of stream {batch.stream} changes no table, so that nothing could remember it; "
            "do it outside of write_once"
        )
    for table_id in written:
        set_tag(staging, table_id, batch.key, batch.own.text)


def running_query(attachment: Attachment) -> str | None:
    """The id of the streaming query that this thread runs a batch of; None elsewhere, and where Spark does not tell."""
    if is_connect(attachment.spark):
        return None
    found: str | None = attachment.spark.sparkContext.getLocalProperty(_QUERY_ID)
    return found


def write_batch(attachment: Attachment, stream: str, batch: int, write: Callable[[], object]) -> bool:
    """Write a batch once, again where another writer was in the way. Returns False where the lake had it."""
    waits = enumerate(attachment.retries.waits(), start=2)
    while True:
        try:
            with written_once(attachment, stream, batch) as found:
                if found.is_new:
                    write()
            return found.is_new
        except ConflictError as error:
            following = None if isinstance(error, StreamTakenError) else next(waits, None)
            if following is None:
                raise
            attempt, wait = following
            reason = f"batch {batch} of stream {stream} is written again: {error}"
            log_retry(str(attachment.catalog.database.location), reason, attempt, wait * 1000)
        sleep(wait)


def streams(attachment: Attachment) -> list[tuple[str, str, str, int, int]]:
    """Every stream that the lake remembers: name, schema and table, the last batch, and the snapshot of that."""
    shown = attachment.shown()
    names = {table.id: table for table in tables(shown.database, shown.at, shown.data_path)}
    return [
        (noted.stream, names[table_id].schema.name, names[table_id].name, noted.batch, snapshot)
        for noted, table_id, snapshot in noted_streams(attachment.catalog.database)
        if table_id in names
    ]


def forget_stream(attachment: Attachment, stream: str) -> Snapshot | None:
    """Forget the batches of a stream: the next one that comes is new, whatever its number."""
    with attachment.statement() as transaction:
        streams = noted_streams(attachment.catalog.database)
        known = [table_id for noted, table_id, _ in streams if noted.stream == stream]
        if not known:
            raise NotFoundError(f"the lake remembers no stream {stream!r}; lake.streams() lists those that it does")
        for table_id in known:
            transaction.staging.end("ducklake_tag", object_id=table_id, key=tag_key(stream))
    return transaction.snapshot
