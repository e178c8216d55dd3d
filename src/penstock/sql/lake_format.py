"""Answers for the format "ducklake": which lake and table its options mean, and what is done with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, cast, get_args

from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.streaming.stream_writer import StreamWriter
from penstock.ducklake.streaming.table_stream import StreamDefinition
from penstock.ducklake.table import Table
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError
from penstock.spark.connect.sessions import refuse_on_connect
from penstock.spark.schemas import nullable
from penstock.spark.write_job import Distribution
from penstock.sql.bridge import Answers, load_classes, sql_class
from penstock.sql.format_options import DEFINITION, PARTITIONS, FormatOptions, nanoseconds, stream_definition
from penstock.sql.registration import Door, door_to
from penstock.sql.shown_objects import ShownObjects, find_info
from penstock.sql.streams import FORMAT
from penstock.sql.table_rows import pinned_frame

_FORMAT_ID = "format"  # see LakeFormat
Opener = Callable[[str, Mapping[str, str], bool], DuckLake]


class FormatAnswers:
    """Questions of LakeFormat."""

    def __init__(self, open_lake: Opener) -> None:
        self._open = open_lake

    def table(self, text: str) -> str:
        """The table that is read, as the catalog of a lake describes it."""
        options = FormatOptions.of("read", text)
        lake, door = self._found(options)
        schema, name = parse_table_name(options.table)
        version, time = options.get("version", "versionAsOf"), options.get("timestamp", "timestampAsOf")
        attachment = lake._attachment
        if version is not None and time is not None:
            raise InvalidError("give a version or a timestamp, not both")
        at = attachment.snapshot_at(timestamp=time).id if time is not None else version
        objects = ShownObjects(attachment, door.evolving, nanoseconds(options))
        about = objects.table(schema, name, None if at is None else str(at), None)
        if about is None:
            raise NotFoundError(
                f"table {schema}.{name} does not exist in {attachment!r}; lake.tables() lists those that do"
            )
        handle = json.loads(json.loads(about)["handle"])
        return json.dumps(
            {"lake": door.id, "schema": handle["schema"], "name": handle["name"], "about": json.loads(about)}
        )

    def write(self, text: str, mode: str, jframe: Any) -> None:
        """What DataFrameWriter.save does: columns go by name, and a table that is not there is made."""
        options = FormatOptions.of("write", text)
        distribution = _distribution(options)  # before a lake is made
        lake, door = self._found(options, create=True)
        frame = pinned_frame(lake, door.id, jframe)
        shown = lake._attachment.shown()
        if find_info(shown, *parse_table_name(options.table)) is None:
            with nullcontext() if lake._attachment.in_transaction else lake.transaction():
                made = lake.create_table(options.table, nullable(frame.schema), partitioned_by=_partitions(options))
                made.append(frame, distribution=distribution)
            return
        if mode == "ErrorIfExists":
            raise AlreadyExistsError(
                f'table {options.table} is there already; mode("append") adds rows, mode("overwrite") replaces them'
            )
        _refuse_partitions(options)
        if mode != "Ignore":
            put = lake.table(options.table).append if mode == "Append" else lake.table(options.table).overwrite
            put(frame, by_name=True, distribution=distribution)

    def stream(self, text: str) -> str:
        """A stream out of a table."""
        options = FormatOptions.of("stream", text)
        known = options.get(DEFINITION)
        if known is not None:
            return known
        lake, door = self._found(options)
        definition = stream_definition(lake._attachment, *parse_table_name(options.table), options)
        return json.dumps(door.streams.source(definition))

    def sink(self, text: str, mode: str) -> str:
        """A stream into a table, which must be there."""
        options = FormatOptions.of("sink", text)
        if mode == "Update":
            raise InvalidError(
                'outputMode("update") gives rows again that have changed, and the format ducklake cannot tell by what '
                "they match: use Table.write_stream with merge and on"
            )
        lake, door = self._found(options)
        lake._attachment.check_writable()
        table = lake.table(options.table)
        table.info  # noqa: B018 - raises where it is not there
        _refuse_partitions(options)
        writer = StreamWriter(
            lake._attachment, lambda: table.info, _put(table, mode), options.get("stream"), options.number("maintain")
        )
        return json.dumps(door.streams.sink(writer, options.table))

    def _found(self, options: FormatOptions, *, create: bool = False) -> tuple[DuckLake, Door]:
        lake = self._open(options.lake, options.attach, create)
        return lake, door_to(lake)


def _partitions(options: FormatOptions) -> list[str]:
    columns: list[str] = json.loads(options.given[PARTITIONS])
    return columns


def _refuse_partitions(options: FormatOptions) -> None:
    """Raise an InvalidError where partitionBy was called for a table that is there."""
    if _partitions(options):
        raise InvalidError(
            f"table {options.table} is there already, and partitionBy cannot change how it is partitioned: leave "
            "it out, or call Table.set_partitioned_by before"
        )


def _distribution(options: FormatOptions) -> Distribution:
    chosen = options.get("distribution") or "auto"
    if chosen not in get_args(Distribution):
        raise InvalidError(f"distribution {chosen!r} is none of {', '.join(get_args(Distribution))}")
    return cast(Distribution, chosen)


def load_stream(lake: DuckLake, definition: StreamDefinition) -> DataFrame:
    """A streaming DataFrame of a stream that Python has defined."""
    refuse_on_connect(lake.spark, "a stream of a table", "read its `changes` from snapshot to snapshot")
    told = json.dumps(door_to(lake).streams.source(definition))
    return lake.spark.readStream.format(FORMAT).option(DEFINITION, told).load()


def register_format(spark: SparkSession, open_lake: Opener) -> None:
    """Make the format known to the JVM of a session."""
    load_classes(spark)
    sql_class(spark, "Lakes").register(_FORMAT_ID, Answers([FormatAnswers(open_lake)]))


def install(spark: SparkSession) -> None:
    """Put the rules into a session that tables by the format need."""
    sql_class(spark, "Installation").into(spark._jsparkSession)


def _put(table: Table, mode: str) -> Callable[[DataFrame], object]:
    put = table.overwrite if mode == "Complete" else table.append
    return lambda rows: put(rows, by_name=True)
