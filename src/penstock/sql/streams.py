"""Answers Spark's streams of a lake: offsets and batches of those that go out, batches of those that come in."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.streaming.stream_writer import StreamWriter
from penstock.ducklake.streaming.table_stream import StreamDefinition, TableStream
from penstock.errors import InvalidError
from penstock.sql.format_options import FormatOptions, stream_definition

FORMAT = "ducklake"
_MOST = 10_000


_T = TypeVar("_T")


class Latest(Generic[_T]):
    """Values by numbers, without those that were used longest ago: a service may make streams again and again."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, _T] = OrderedDict()

    def __setitem__(self, number: str, value: _T) -> None:
        self._values[number] = value
        while len(self._values) > _MOST:
            self._values.popitem(last=False)

    def __getitem__(self, number: str) -> _T:
        if number not in self._values:
            raise InvalidError("this stream was made long ago, and many others since; make it again")
        self._values.move_to_end(number)
        return self._values[number]


@dataclass(frozen=True)
class KnownStreams:
    """The streams of a lake by the numbers that Spark knows them by."""

    attachment: Attachment
    lake_id: str
    defined: Latest[StreamDefinition] = field(default_factory=lambda: Latest())
    running: dict[str, TableStream] = field(default_factory=dict)
    sinks: Latest[StreamWriter] = field(default_factory=lambda: Latest())

    def source(self, definition: StreamDefinition) -> dict[str, str]:
        """What LakeSource is made of."""
        number = uuid4().hex
        self.defined[number] = definition
        schema = TableStream(self.attachment, definition).schema.json()
        table = definition.table.full_name
        return {"lake": self.lake_id, "stream": number, "schema": schema, "description": f"{FORMAT} {table}"}

    def sink(self, writer: StreamWriter, table: str) -> dict[str, str]:
        """What LakeSink is made of."""
        number = uuid4().hex
        self.sinks[number] = writer
        return {"lake": self.lake_id, "sink": number, "description": f"{FORMAT} {table}"}


class StreamAnswers:
    """Questions of LakeSource and LakeSink."""

    def __init__(self, streams: KnownStreams) -> None:
        self._streams = streams

    def stream_of(self, handle: str, options: str) -> str:
        """The stream of a table by its name, for which a format's options hold."""
        table = json.loads(handle)
        given = {"lake": "by name", "table": "by name", **json.loads(options)}
        found = FormatOptions.of("stream", json.dumps(given))
        if found.flag("changes", False):
            raise InvalidError(
                f"the stream of {table['schema']}.{table['name']} by its name has the table's columns, and no changes; "
                "use Table.read_stream(changes=True), or the format ducklake with its option changes"
            )
        definition = stream_definition(self._streams.attachment, table["schema"], table["name"], found)
        return json.dumps(self._streams.source(definition))

    def open_stream(self, definition: str) -> str:
        """Start a stream that was defined; the answer is its number."""
        number = uuid4().hex
        streams = self._streams
        streams.running[number] = TableStream(streams.attachment, streams.defined[definition])
        return number

    def latest_offset(self, number: str, start: str | None, unlimited: bool) -> str | None:
        """Where the next batch ends."""
        return self._streams.running[number].latest(start, unlimited)

    def newest_offset(self, number: str, *_: Any) -> str:
        """How far the stream could get."""
        return self._streams.running[number].newest()

    def prepare_available_now(self, number: str, *_: Any) -> None:
        """End the stream with what is there now."""
        self._streams.running[number].prepare_available_now()

    def batch(self, number: str, start: str | None, end: str) -> Any:
        """The rows of a batch."""
        return self._streams.running[number].batch(start, end)._jdf

    def commit_offset(self, number: str, end: str, *_: Any) -> None:
        """Nobody asks for rows up to this offset any more."""
        self._streams.running[number].commit(end)

    def stop_stream(self, number: str, *_: Any) -> None:
        """The query has ended."""
        self._streams.running.pop(number, None)

    def add_batch(self, sink: str, batch: int, jframe: Any) -> None:
        """Write a batch once."""
        self._streams.sinks[sink].add(DataFrame(jframe, self._streams.attachment.spark), batch)
