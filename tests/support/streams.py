"""Streams for tests: files that arrive one by one, a query until it has read all that there is, a crash afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

SECONDS = 400  # of batches that each take seconds on a busy machine
NOW = {"availableNow": True}


class Arrivals:
    """A folder of Parquet files as a stream: each file is a batch."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str) -> None:
        self.spark, self.folder, self.schema = spark, folder, schema
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)

    def arrive(self, *rows: tuple[Any, ...]) -> None:
        """Another file. Its name is later than those before, as its time is."""
        made = self.folder.parent / f"making-{self._count}"
        self.spark.createDataFrame(list(rows), self.schema).coalesce(1).write.parquet(str(made))
        [file] = made.glob("*.parquet")
        file.rename(self.folder / f"{self._count:05}.parquet")
        self._count += 1

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


def finished(query: StreamingQuery) -> StreamingQuery:
    """The query after it has read all that there was."""
    try:
        assert query.awaitTermination(SECONDS), "the query does not come to its end"
    finally:
        query.stop()
    return query


def collected(frame: DataFrame, checkpoint: Path, trigger: dict[str, Any] | None = None) -> list[list[tuple[Any, ...]]]:
    """The rows of each batch of what a stream has now."""
    batches: list[list[tuple[Any, ...]]] = []

    def take(rows: DataFrame, _: int) -> None:
        batches.append(sorted((tuple(row) for row in rows.collect()), key=repr))

    run(frame, checkpoint, take, trigger)
    return batches


def run(
    frame: DataFrame, checkpoint: Path, take: Callable[[DataFrame, int], None], trigger: dict[str, Any] | None = None
) -> None:
    """Give all batches of what a stream has now to a function."""
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(take)
    finished(writer.trigger(**(trigger or NOW)).start())


def all_rows(batches: Sequence[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    return sorted((row for batch in batches for row in batch), key=repr)


def forget_last_batch(checkpoint: Path) -> int:
    """Take from a checkpoint that its last batch was finished, as if the driver had died just before it noted that."""
    number = max(int(entry.name) for entry in (checkpoint / "commits").iterdir() if entry.name.isdigit())
    for name in (f"{number}", f".{number}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    return number
