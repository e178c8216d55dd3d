"""One attached DuckLake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession

from penstock.catalog import objects
from penstock.catalog.attach import AttachOptions, Catalog, open_catalog
from penstock.catalog.files import table_sizes
from penstock.catalog.snapshots import (
    all_snapshots,
    latest_snapshot,
    reserved_words,
    snapshot_by_time,
    snapshot_by_version,
)
from penstock.errors import AttachError, NotFoundError
from penstock.model.changes import parse_changes, summarise
from penstock.model.names import parse_table_name
from penstock.model.objects import Macro, Schema, TableInfo, View
from penstock.model.options import OPTIONS, OptionValue
from penstock.model.snapshots import Snapshot
from penstock.spark.session import prepare
from penstock.table import Table
from penstock.version import __version__

_SNAPSHOTS = """snapshot_id long, snapshot_time timestamp, schema_version long, changes map<string,array<string>>,
                author string, commit_message string, commit_extra_info string"""
_OPTIONS = "option_name string, description string, value string, scope string, scope_entry string"
_SETTINGS = "catalog_type string, extension_version string, data_path string"
_TABLES = """table_name string, schema_id long, table_id long, table_uuid string, file_count long, file_size_bytes long,
             delete_file_count long, delete_file_size_bytes long"""


class Lake:
    """A DuckLake: its tables, snapshots and options. Made by `penstock.attach`; close it, or use it in a `with`."""

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSession,
        pinned: Callable[[Lake], Snapshot] | None = None,
        attached_options: Mapping[str, str] | None = None,
    ) -> None:
        self.catalog = catalog
        self.attached_options = attached_options or {}
        self.spark = spark
        self.known_file_kinds: dict[tuple[int, ...], dict[int, str]] = {}
        self._pinned = pinned(self) if pinned else None

    def __repr__(self) -> str:
        return f"Lake({str(self.catalog.database.location)!r})"

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog; DataFrames that were read and not yet run will fail."""
        self.catalog.database.close()

    def table(self, name: str) -> Table:
        """The table of a name: `orders` (in `main`), `sales.orders`, `"odd.schema"."odd table"`."""
        schema, table = parse_table_name(name)
        if not objects.was_ever_a_table(self.catalog.database, table):
            self._table_at(schema, table)
        return Table(self, schema, table)

    def _table_at(self, schema: str, table: str) -> TableInfo:
        version = self.current_snapshot().id
        return objects.find_table(self.catalog.database, version, self.catalog.data_path, schema, table)

    def schemas(self) -> list[Schema]:
        return objects.schemas(self.catalog.database, self.current_snapshot().id, self.catalog.data_path)

    def views(self) -> list[View]:
        """The views, as their SQL; DuckDB wrote it, and in DuckDB's dialect."""
        return objects.views(self.catalog.database, self.current_snapshot().id, self.catalog.data_path)

    def macros(self) -> list[Macro]:
        return objects.macros(self.catalog.database, self.current_snapshot().id, self.catalog.data_path)

    def tables(self) -> DataFrame:
        """What the extension's `table_info()` returns: the tables, with the number and size of their files."""
        version, database = self.current_snapshot().id, self.catalog.database
        sizes = table_sizes(database, version)
        tables = objects.tables(database, version, self.catalog.data_path)
        rows = [(t.name, t.schema.id, t.id, t.uuid, *sizes.get(t.id, (0, 0, 0, 0))) for t in tables]
        return self._frame(rows, _TABLES)

    def current_snapshot(self) -> Snapshot:
        """The newest snapshot, or the one that the lake was attached at."""
        return self._pinned or latest_snapshot(self.catalog.database)

    def snapshots(self) -> DataFrame:
        """What the extension's `snapshots()` returns: every snapshot, with what it changed."""
        reserved = reserved_words()
        rows = [
            (s.id, s.time, s.schema_version, summarise(parse_changes(s.changes_made), reserved), s.author,
             s.commit_message, s.commit_extra_info)
            for s in all_snapshots(self.catalog.database)
        ]  # fmt: skip
        return self._frame(rows, _SNAPSHOTS)

    def options(self) -> DataFrame:
        """What the extension's `options()` returns: the options that were set, and for what."""
        return self._frame([self._option_row(item) for item in self.catalog.options()], _OPTIONS)

    def _option_row(self, item: OptionValue) -> tuple[str | None, ...]:
        description = OPTIONS[item.name].description if item.name in OPTIONS else None
        return (item.name, description, item.value, item.scope.upper(), self._scope_entry(item))

    def _scope_entry(self, item: OptionValue) -> str | None:
        version, database, path = self.current_snapshot().id, self.catalog.database, self.catalog.data_path
        if item.scope == "schema":
            return next((s.name for s in objects.schemas(database, version, path) if s.id == item.scope_id), None)
        if item.scope == "table":
            return next((t.full_name for t in objects.tables(database, version, path) if t.id == item.scope_id), None)
        return None

    def settings(self) -> DataFrame:
        """What the extension's `settings()` returns, with Penstock's version as the extension's."""
        row = (self.catalog.database.engine, f"penstock {__version__}", self.catalog.data_path_as_given)
        return self._frame([row], _SETTINGS)

    def snapshot_at(self, version: int | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """The snapshot of a version or a time; the current one when neither is given."""
        if version is not None and timestamp is not None:
            raise NotFoundError("give a version or a timestamp, not both")
        if version is not None:
            return snapshot_by_version(self.catalog.database, version)
        if timestamp is not None:
            return snapshot_by_time(self.catalog.database, self._instant(timestamp))
        return self.current_snapshot()

    def _instant(self, time: str | datetime) -> datetime:
        """A time without a zone is in the Spark session's."""
        try:
            moment = datetime.fromisoformat(time) if isinstance(time, str) else time
        except ValueError:
            raise NotFoundError(f"{time!r} is not a timestamp; write it as 2026-04-10 12:00:00") from None
        zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)


def attach(
    uri: str,
    *,
    data_path: str | None = None,
    create_if_not_exists: bool = True,
    read_only: bool = False,
    encrypted: bool | None = None,
    data_inlining_row_limit: int | None = None,
    metadata_schema: str | None = None,
    metadata_parameters: Mapping[str, str] | None = None,
    automatic_migration: bool = False,
    override_data_path: bool = False,
    snapshot_version: int | None = None,
    snapshot_time: str | datetime | None = None,
    spark: SparkSession | None = None,
) -> Lake:
    """Attach a DuckLake: `ducklake:FILE`, `ducklake:sqlite:FILE`, `ducklake:postgres:...` or `ducklake:mysql:...`.

    The parameters are those of DuckLake's ATTACH, in lower case. With `snapshot_version` or `snapshot_time` the lake is
    shown as it was then. `spark` is the session to use: by default the active one, else a local one.
    """
    if snapshot_version is not None and snapshot_time is not None:
        raise AttachError("give snapshot_version or snapshot_time, not both")
    options = AttachOptions(
        data_path, create_if_not_exists, read_only, encrypted, metadata_schema, metadata_parameters or {},
        automatic_migration, override_data_path,
    )  # fmt: skip
    catalog = open_catalog(uri, options)
    limit = {} if data_inlining_row_limit is None else {"data_inlining_row_limit": str(data_inlining_row_limit)}
    pinned = snapshot_version is not None or snapshot_time is not None
    try:
        at = (lambda lake: lake.snapshot_at(snapshot_version, snapshot_time)) if pinned else None
        return Lake(catalog, prepare(spark), at, limit)
    except NotFoundError as error:
        catalog.database.close()
        raise AttachError(f"{catalog.database.location} cannot be attached there: {error}") from None
    except BaseException:
        catalog.database.close()
        raise
