"""Reads the options of the format "ducklake", and says what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.location import secrets_in
from penstock.ducklake.model.attach_parameters import ATTACH_PARAMETERS, flag
from penstock.ducklake.readable_table import Nanoseconds
from penstock.ducklake.streaming.stream_definitions import INITIAL, define_stream
from penstock.ducklake.streaming.table_stream import StreamDefinition
from penstock.errors import InvalidError

PARTITIONS = "__partition_columns"  # where Spark puts those of DataFrameWriter.partitionBy
_LAKE, _URL, _TABLE = "lake", "url", "table"
DEFINITION = "definition"  # of a stream that Python has defined: what LakeSource is made of
Use = Literal["read", "write", "stream", "sink"]
# What each use takes besides the lake and how it is attached; names go without regard to case and underscores.
_OPTIONS: dict[Use, tuple[str, ...]] = {
    "read": ("version", "timestamp", "versionAsOf", "timestampAsOf", "nanoseconds"),
    "write": ("distribution",),
    "stream": (
        "startingVersion", "startingTimestamp", "changes", "maxSnapshotsPerTrigger", "maxRowsPerTrigger",
        "failOnDataLoss", "nanoseconds", DEFINITION,
    ),
    "sink": ("stream", "maintain", "checkpointLocation", "queryName"),
}  # fmt: skip
_STORAGE = ("aws_", "azure_")


def _take_url(given: dict[str, str]) -> None:
    """Take the location of `url` for that of `lake`: Spark hides what is called so in plans and logs."""
    if _LAKE in given and _URL in given:
        raise InvalidError("the options lake and url say the same; give one of them")
    if secrets_in(given.get(_LAKE, "")):
        raise InvalidError(
            f"the option {_LAKE} has a password, which Spark would show in plans and logs: give the location as the "
            f"option {_URL}, which Spark hides, or the name of a lake that was attached with it"
        )
    if _URL in given:
        given[_LAKE] = given.pop(_URL)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


@dataclass(frozen=True)
class FormatOptions:
    """The options of one use, each under its plain name, apart from those that attach a lake."""

    use: Use
    lake: str
    table: str
    given: Mapping[str, str]
    attach: Mapping[str, str]

    @classmethod
    def of(cls, use: Use, text: str) -> FormatOptions:
        """Read what Spark gives, and raise an InvalidError for what nobody would look at."""
        given: dict[str, str] = json.loads(text)
        storage = {name: value for name, value in given.items() if name.lower().startswith(_STORAGE)}
        plain = {_plain(name): value for name, value in given.items() if name not in storage}
        _take_url(plain)
        for name in (_LAKE, _TABLE):
            if not plain.get(name) and DEFINITION not in plain:
                raise InvalidError(
                    f'the format ducklake needs the option {name}: .option("lake", "ducklake:sales.ducklake") (or the '
                    'name that the lake has in this session) and .option("table", "main.orders")'
                )
        attach = {name: plain.pop(_plain(name)) for name in ATTACH_PARAMETERS if _plain(name) in plain}
        lake, table, partitions = plain.pop(_LAKE, ""), plain.pop(_TABLE, ""), plain.pop(_plain(PARTITIONS), "[]")
        unknown = sorted(plain.keys() - set(map(_plain, _OPTIONS[use])))
        if unknown:
            known = ", ".join((_LAKE, _TABLE, *_OPTIONS[use], *ATTACH_PARAMETERS))
            raise InvalidError(f"a {use} by the format ducklake has no option {', '.join(unknown)}; it takes {known}")
        return cls(use, lake, table, {**plain, PARTITIONS: partitions}, {**attach, **storage})

    def get(self, *names: str) -> str | None:
        """The value of an option, which may have several names."""
        found = [self.given[_plain(name)] for name in names if _plain(name) in self.given]
        if len(found) > 1:
            raise InvalidError(f"the options {' and '.join(names)} say the same; give one of them")
        return found[0] if found else None

    def number(self, name: str) -> int | None:
        """A whole number."""
        text = self.get(name)
        if text is not None and not text.strip().isdecimal():
            raise InvalidError(f"the option {name} cannot be {text!r}; it takes a whole number")
        return None if text is None else int(text)

    def flag(self, name: str, otherwise: bool) -> bool:
        """True or false."""
        return flag(name, self.get(name), otherwise)


def nanoseconds(options: FormatOptions) -> Nanoseconds | None:
    """How columns of type timestamp_ns are shown."""
    chosen = options.get("nanoseconds")
    if chosen not in (None, *get_args(Nanoseconds)):
        raise InvalidError(f"the option nanoseconds cannot be {chosen!r}; it is truncate or long")
    return cast(Nanoseconds | None, chosen)


def stream_definition(attachment: Attachment, schema: str, name: str, options: FormatOptions) -> StreamDefinition:
    """The stream of a table that options ask for."""
    time, version = options.get("startingTimestamp"), options.number("startingVersion")
    if time is not None and version is not None:
        raise InvalidError("give startingVersion or startingTimestamp, not both")
    return define_stream(
        attachment,
        schema,
        name,
        start=time if time is not None else version if version is not None else INITIAL,
        changes=options.flag("changes", False),
        max_snapshots_per_trigger=options.number("maxSnapshotsPerTrigger"),
        max_rows_per_trigger=options.number("maxRowsPerTrigger"),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        nanoseconds=nanoseconds(options) == "long",
    )
