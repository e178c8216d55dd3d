"""Remembers which batch of a stream a lake has: in a tag of each table that the batch wrote, in the same snapshot."""

from __future__ import annotations

import json
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.errors import ConflictError, InvalidError

_PREFIX = "penstock.stream."


class StreamTakenError(ConflictError):
    """Another run of the same stream has written meanwhile."""


@dataclass(frozen=True)
class NotedBatch:
    """The last batch of a stream that a table got, and the run that wrote it, if it told its name."""

    batch: int
    run: str | None = None

    @property
    def text(self) -> str:
        """The tag's value."""
        return json.dumps({"batch": self.batch, **({} if self.run is None else {"run": self.run})})

    @staticmethod
    def of(text: str) -> NotedBatch:
        """Reads a tag's value."""
        found = json.loads(text)
        return NotedBatch(found["batch"], found.get("run"))


@dataclass(frozen=True)
class StreamBatch:
    """A batch of a stream, and what the lake knew of the stream when the transaction of the batch began."""

    stream: str
    own: NotedBatch
    known: NotedBatch | None

    @property
    def key(self) -> str:
        """The key of the tags."""
        return tag_key(self.stream)

    @property
    def is_new(self) -> bool:
        """Whether the lake does not have it."""
        return self.known is None or self.own.batch > self.known.batch

    def check_run(self) -> None:
        """Raise an InvalidError where the numbers of another run's batches are in the way of this one's."""
        known, own = self.known, self.own
        if known is not None and known.run is not None and own.run is not None and known.run != own.run:
            raise InvalidError(
                f"stream {self.stream} was written by another query ({known.run}, its batch {known.batch} was the "
                f"last), and a query with a new checkpoint ({own.run}) counts its batches anew; go on with the "
                "checkpoint of the other one, give this one another name, or let the lake forget the stream: "
                f"lake.forget_stream({self.stream!r})"
            )

    def check_still_known(self, database: Database) -> None:
        """Raise a ConflictError where another run of the stream has written since. Call it inside the commit."""
        found = last_batch(database, self.stream)
        if found != self.known:
            there = "nothing" if found is None else f"batch {found.batch}"
            raise StreamTakenError(
                f"another run of stream {self.stream} has written meanwhile (the lake has {there} of it now); "
                f"batch {self.own.batch} was not committed: a stream can only run once at a time"
            )


def tag_key(stream: str) -> str:
    """The key of a stream's tags."""
    return _PREFIX + stream


def last_batch(database: Database, stream: str) -> NotedBatch | None:
    """The last batch of a stream that the lake has: the newest of all that its tables remember."""
    sql = 'SELECT "value" FROM ducklake_tag WHERE "key" = ? AND end_snapshot IS NULL'
    found = [NotedBatch.of(text) for (text,) in database.query(sql, [tag_key(stream)]) if text is not None]
    return max(found, key=lambda noted: noted.batch, default=None)


def noted_streams(database: Database) -> list[tuple[str, int, NotedBatch, int]]:
    """Every stream that tables remember: its name, the table, the batch, and the snapshot that the batch is in."""
    sql = """SELECT "key", object_id, "value", begin_snapshot FROM ducklake_tag
             WHERE "key" LIKE ? AND end_snapshot IS NULL ORDER BY 1, 2"""
    return [
        (key.removeprefix(_PREFIX), table_id, NotedBatch.of(text), snapshot)
        for key, table_id, text, snapshot in database.query(sql, [f"{_PREFIX}%"])
        if text is not None
    ]


def check_stream(stream: object, batch: object) -> None:
    """Raise an InvalidError for what is no name of a stream, or no number of a batch."""
    if not isinstance(stream, str) or not stream:
        raise InvalidError(f"{stream!r} is no name of a stream; give a text that stays the same from run to run")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 0:
        raise InvalidError(f"{batch!r} is no batch of stream {stream}; its batches are numbered from 0")
