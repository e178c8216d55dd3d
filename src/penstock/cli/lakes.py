"""Finds the lakes that commands are given: by names, by locations, and by files without `ducklake:`."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.named_lakes.configuration import SCHEME, configuration
from penstock.ducklake.catalog.named_lakes.read_catalogs import ReadCatalog, read_catalog
from penstock.ducklake.catalog.shown import Shown
from penstock.ducklake.model.names import parse_table_name
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.model.snapshot_changes import quoted_name

MOST = 2**31 - 2  # lines, of Spark, which takes one more to know whether that is all
_DIGITS = 18  # of what all databases hold
GREATEST_ID = 10**_DIGITS - 1
_SQLITE = b"SQLite format 3\x00"
_ENDINGS = ("*.ducklake", "*.duckdb", "*.db", "*.sqlite")


def uri_of(lake: str) -> str:
    """The location or name that a text means, with `ducklake:` before it; a SQLite file is known by its first bytes."""
    if lake.startswith(SCHEME):
        return lake
    is_sqlite = os.path.isfile(lake) and lake not in configuration() and _begins(lake) == _SQLITE
    return f"{SCHEME}sqlite:{lake}" if is_sqlite else SCHEME + lake


def _begins(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(len(_SQLITE))


@contextmanager
def opened(lake: str, at: str | None = None) -> Iterator[ReadCatalog]:
    """The catalog of a lake, to be read, at a snapshot: its number or a time; by default the newest."""
    with read_catalog(uri_of(lake), **moment_of(at)) as found, found.catalog.database.consistent():
        yield found


def moment_of(at: str | None) -> dict[str, Any]:
    """The arguments of `attach` for a snapshot by its number or time."""
    if at is None:
        return {}
    bound = snapshot_or_time(at)
    return {"snapshot_time": bound} if isinstance(bound, str) else {"snapshot_version": bound}


def snapshot_or_time(text: str) -> int | str:
    """A snapshot's number, or a time as it is written."""
    if not text.isdecimal():
        return text
    if len(text) > _DIGITS:
        raise typer.BadParameter(f"no snapshot has a number of {len(text):,} digits")
    return int(text)


def shown(lake: ReadCatalog) -> Shown:
    """What of a lake is looked at."""
    return Shown(lake.catalog.database, lake.at, lake.catalog.data_path)


def table_of(lake: ReadCatalog, name: str) -> TableInfo:
    """The table of a name as users write it."""
    return objects.find_table(lake.catalog.database, lake.at, lake.catalog.data_path, *parse_table_name(name))


def written_name(schema: str, name: str) -> str:
    """A name as commands take it: in quotes where it needs them."""
    plain = all(part and not set(part) & set('."`') for part in (schema, name))
    return f"{schema}.{name}" if plain else quoted_name(schema, name)


def complete_lake(incomplete: str) -> list[str]:
    """Names of lakes, and files that may hold a catalog."""
    found: list[str] = []
    with suppress(Exception):
        prefix = SCHEME if incomplete.startswith(SCHEME) else ""
        rest = incomplete.removeprefix(SCHEME)
        files = [file for ending in _ENDINGS for file in glob.glob(f"{glob.escape(rest)}{ending}")]
        found = [prefix + name for name in (*configuration(), *sorted(files)) if name.startswith(rest)]
    return found


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tables of the lake that stands before in the line; those of `main` by their own names too."""
    names: list[str] = []
    with suppress(Exception), opened(ctx.params["lake"]) as lake:
        database, data_path = lake.catalog.database, lake.catalog.data_path
        for table in objects.tables(database, lake.at, data_path):
            names.append(written_name(table.schema.name, table.name))
            if table.schema.name == "main":
                names.append(names[-1].removeprefix("main."))
    return sorted(name for name in names if name.startswith(incomplete))


_LAKE = "A location (ducklake:FILE, ducklake:postgres:...), the name of a lake in penstock.toml, or a file."
LakeArgument = Annotated[
    str, typer.Argument(metavar="LAKE", help=_LAKE, show_default=False, autocompletion=complete_lake)
]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table: orders, sales.orders.", autocompletion=complete_table)
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="SNAPSHOT", help="As it was at a snapshot, by its number, or at a time in UTC."),
]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=MOST, metavar="N", help="How many lines at most.")
]
