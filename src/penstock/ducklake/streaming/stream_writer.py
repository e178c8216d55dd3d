"""Writes the batches of a streaming DataFrame to a table, and keeps the table small meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.stream_batches import check_name
from penstock.ducklake.maintenance import compacted_tables, inlined_flush
from penstock.ducklake.maintenance.old_files import cleanup_old_files
from penstock.ducklake.maintenance.snapshot_expiry import expire_snapshots
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.streaming.written_once import running_query, write_batch
from penstock.errors import InvalidError, PenstockError
from penstock.spark.connect.sessions import refuse_on_connect
from penstock.texts import one_line

OutputMode = Literal["append", "update", "complete"]
Write = Callable[[DataFrame], object]
_log = logging.getLogger("penstock")


@dataclass(frozen=True)
class StreamWriter:
    """How each batch of a stream gets into a table.

    `maintain` is after how many batches the table is maintained; `name` that of the stream, by default the id of its
    query.
    """

    attachment: Attachment
    info: Callable[[], TableInfo]
    write: Write
    name: str | None = None
    maintain: int | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.maintain, int) and not isinstance(self.maintain, bool)
        if self.maintain is not None and not (whole and self.maintain > 0):
            raise InvalidError(f"maintain cannot be {self.maintain!r}; it is a number of batches, from 1")
        if self.name is not None:
            check_name(self.name)

    def add(self, frame: DataFrame, batch: int) -> None:
        """Write one batch, if the lake does not have it."""
        stream = self.name or running_query(self.attachment)
        if stream is None:
            raise InvalidError("this is no batch of a streaming query; give the stream a name")
        write_batch(self.attachment, stream, batch, lambda: self.write(frame))
        if self.maintain is not None and (batch + 1) % self.maintain == 0:
            self._maintain()

    def start(
        self,
        df: DataFrame,
        checkpoint: str,
        output_mode: OutputMode,
        trigger: Mapping[str, Any] | None,
    ) -> StreamingQuery:
        """Start the query."""
        refuse_on_connect(
            self.attachment.spark,
            "write_stream",
            "call foreachBatch with a function that attaches the lake and writes within `lake.write_once`",
        )
        if not df.isStreaming:
            raise InvalidError("write_stream takes a streaming DataFrame (readStream); append takes this one")
        writer = df.writeStream.outputMode(output_mode).option("checkpointLocation", checkpoint)
        if trigger is not None:
            writer = writer.trigger(**trigger)
        return writer.foreachBatch(self.add).start()

    def _maintain(self) -> None:
        """Make few large files of what the batches left. It can wait for the next time, and never stops the stream."""
        attachment = self.attachment
        try:
            tables = [self.info()]
            inlined_flush.flush_inlined_data(attachment, tables)
            expire_snapshots(attachment, None, None, None, False)
            compacted_tables.rewrite_data_files(attachment, tables)
            compacted_tables.merge_adjacent_files(attachment, tables)
            cleanup_old_files(attachment, None, False, False)
        except Exception as error:  # Spark's own too, whatever they are
            told = one_line(str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}")
            _log.warning("the maintenance of a stream's table failed, and is tried again later: %s", told)
