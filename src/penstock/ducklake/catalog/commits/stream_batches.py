"""Remembers which batch of a stream a lake has: in a tag of each table that the batch wrote, in the same snapshot."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from penstock.ducklake.catalog.databases import Database
from penstock.errors import ConflictError, InvalidError

_PREFIX = "penstock.stream."


class StreamTakenError(ConflictError):
    """Another run of the same stream has written meanwhile."""


@dataclass(frozen=True)
class NotedBatch:
    """The last batch of a stream that a table got, and the run that wrote it, if it told its name."""

    stream: str
    batch: int
    run: str | None = None

    @property
    def text(self) -> str:
        """The tag's value."""
        told = {"stream": self.stream, "batch": self.batch}
        return json.dumps(told | ({} if self.run is None else {"run": self.run}))

    @staticmethod
    def of(text: str | None) -> NotedBatch | None:
        """Reads a tag's value; None for one that is not of Penstock's making."""
        try:
            found = json.loads(text or "")
            return NotedBatch(str(found["stream"]), int(found["batch"]), found.get("run"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class StreamBatch:
    """A batch of a stream, and what the lake knew of the stream when the transaction of the batch began."""

    own: NotedBatch
    known: NotedBatch | None

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self.own.stream

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
    """The key of a stream's tags: a number for the name, which databases would compare without regard to case."""
    return _PREFIX + sha256(stream.encode()).hexdigest()[:24]


def last_batch(database: Database, stream: str) -> NotedBatch | None:
    """The last batch of a stream that the lake has: the newest of all that its tables remember."""
    sql = 'SELECT "value" FROM ducklake_tag WHERE "key" = ? AND end_snapshot IS NULL'
    found = [NotedBatch.of(text) for (text,) in database.query(sql, [tag_key(stream)])]
    return max((noted for noted in found if noted is not None), key=lambda noted: noted.batch, default=None)


def noted_streams(database: Database) -> list[tuple[NotedBatch, int, int]]:
    """Every stream that tables remember: its last batch, the table, and the snapshot that the batch is in."""
    sql = """SELECT "value", object_id, begin_snapshot FROM ducklake_tag
             WHERE "key" LIKE ? AND end_snapshot IS NULL"""
    rows = database.query(sql, [f"{_PREFIX}%"])
    found = [(NotedBatch.of(text), table_id, snapshot) for text, table_id, snapshot in rows]
    known = [(noted, table_id, snapshot) for noted, table_id, snapshot in found if noted is not None]
    return sorted(known, key=lambda line: (line[0].stream, line[1]))


def check_name(stream: object) -> None:
    """Raise an InvalidError for what is no name of a stream."""
    if not isinstance(stream, str) or not stream:
        raise InvalidError(f"{stream!r} is no name of a stream; give a text that stays the same from run to run")


def check_stream(stream: object, batch: object) -> None:
    """Raise an InvalidError for what is no name of a stream, or no number of a batch."""
    check_name(stream)
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 0:
        raise InvalidError(f"{batch!r} is no batch of stream {stream}; its batches are numbered from 0")
