"""`penstock.attach`: from a location to a Lake. `penstock.register`: the same for the options of a format."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.commit import RetryPolicy
from penstock.ducklake.catalog.location import parse_location
from penstock.ducklake.catalog.named_lakes.attach_calls import configured
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.model.snapshots import Version
from penstock.errors import AttachError, NotFoundError
from penstock.format_lakes import FormatLakes
from penstock.lake import Lake
from penstock.spark.connect.sessions import is_connect, refuse_on_connect
from penstock.spark.session import prepare
from penstock.spark.stores import prepare_store
from penstock.sql.lake_format import install, load_stream, register_format
from penstock.sql.registration import refuse_name_on_connect
from penstock.storage.options import options_on_trial
from penstock.storage.stores import store_kind, store_of

_formats: WeakKeyDictionary[Any, FormatLakes] = WeakKeyDictionary()  # by JVM
_lock = threading.Lock()


@configured
@options_on_trial()
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
    storage_options: Mapping[str, str] | None = None,
    automatic_migration: bool = False,
    override_data_path: bool = False,
    snapshot_version: Version | None = None,
    snapshot_time: str | datetime | None = None,
    max_retry_count: int = 10,
    retry_wait_ms: int = 100,
    retry_backoff: float = 1.5,
    name: str | None = None,
    spark: SparkSession | None = None,
) -> Lake:
    """Attaches a DuckLake; one that does not exist is made.

    The parameters are those of DuckLake's ATTACH, in lower case. What is not given comes from what `penstock.toml` and
    the environment say of the lake, then from what they say of all lakes.

    Args:
        uri: `ducklake:FILE`, `ducklake:sqlite:FILE`, `ducklake:postgres:...` or `ducklake:mysql:...`; or the name of a
            lake in `penstock.toml` or the environment, `ducklake:NAME`, and `ducklake:` for the default one. A file
            behind `https://`, `http://` or `s3://`, of DuckDB or SQLite, is read only.
        data_path: Where data files are; by default beside a file of the catalog, `FILE.files/`.
        create_if_not_exists: Whether a lake that does not exist is made.
        read_only: Whether nothing may be changed.
        encrypted: Whether files of a new lake are encrypted.
        data_inlining_row_limit: Up to how many rows an insert is kept in the catalog, where no option says otherwise.
        metadata_schema: The database's schema that holds the catalog.
        metadata_parameters: These add to what the location says of the connection, and may say all of it:
            `ducklake:postgres:` (where libpq's environment counts too) and `ducklake:mysql:` need nothing more.
        storage_options: Keys and address of the bucket of data and catalog, as deltalake and Polars call them:
            `aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`, `aws_region`, `aws_endpoint_url`,
            `aws_virtual_hosted_style_request`, `aws_skip_signature`. What is not given comes from the session's
            `fs.s3a` settings, then from where AWS's own tools look.
        automatic_migration: Whether the catalog of an older format version is brought to this one.
        override_data_path: Whether `data_path` counts although the lake was made with another.
        snapshot_version: Shows the lake as it was at a snapshot: its number, or a `Snapshot`.
        snapshot_time: Shows the lake as it was at a time.
        max_retry_count: How often a commit that another writer outran is tried again.
        retry_wait_ms: After how many milliseconds.
        retry_backoff: How many times as long each time.
        name: What Spark SQL calls the lake: `spark.sql("SELECT * FROM sales.orders")`; see `Lake.register`.
        spark: The session to use: by default the active one, else a local one.

    Returns:
        The lake; close it, or use it in a `with`.

    Raises:
        AttachError: The lake cannot be attached, or no lake has the name. (What its database refuses later is a
            `CatalogError`.)
        InvalidError: Spark uses the name already, or the storage options make no sense.
        UnsupportedError: The session cannot read the data path's store, or is of another version of Spark; or it is
            one of Spark Connect, which knows no `name`.
    """
    if snapshot_version is not None and snapshot_time is not None:
        raise AttachError("give snapshot_version or snapshot_time, not both")
    if name is not None and spark is not None:
        refuse_name_on_connect(spark)
    options = AttachOptions(
        data_path, create_if_not_exists, read_only, encrypted, metadata_schema, metadata_parameters or {},
        automatic_migration, override_data_path,
    )  # fmt: skip
    retries = RetryPolicy(max_retry_count, retry_wait_ms, retry_backoff)
    if storage_options or store_of(data_path or ""):
        prepare_store(prepare(spark, connect=True), data_path or "", storage_options)  # before a lake is made
    location = parse_location(uri)
    if location.is_remote and store_kind(location.target) == "s3":
        prepare_store(prepare(spark, connect=True), location.target, storage_options, reads_there=False)
    catalog = open_catalog(uri, options)
    limit = {} if data_inlining_row_limit is None else {"data_inlining_row_limit": str(data_inlining_row_limit)}
    pinned = snapshot_version is not None or snapshot_time is not None
    try:
        at = (lambda lake: lake.snapshot_at(snapshot_version, snapshot_time)) if pinned else None
        session = prepare(spark, connect=True)
        if store_of(catalog.data_path) != store_of(data_path or ""):  # or it was prepared above
            elsewhere = location.is_remote and store_kind(catalog.data_path) != store_kind(location.target)
            prepare_store(session, catalog.data_path, None if elsewhere else storage_options)
        if location.is_remote and store_kind(location.target) == "http":  # it may name files by their addresses
            prepare_store(session, location.target, None)
        if not is_connect(session):
            _register(session)
        attachment = Attachment(catalog, session, limit, read_only, retries, at)
        lake = Lake(attachment)
        attachment.load_stream = partial(load_stream, lake)
        if name is not None:
            lake.register(name)
        return lake
    except NotFoundError as error:
        catalog.database.close()
        raise AttachError(f"{catalog.database.location} cannot be attached there: {error}") from None
    except BaseException:
        catalog.database.close()
        raise


def register(spark: SparkSession) -> None:
    """Makes the format `ducklake` known to a Spark session: `attach` and `session` have done it for theirs.

    From then on `spark.read.format("ducklake")`, `df.write`, `readStream` and `writeStream` with it, and
    `CREATE TEMP VIEW ... USING ducklake OPTIONS (...)` work there. The options `lake` and `table` say what is meant; a
    lake that they name is attached at its first use, and stays so.

    Args:
        spark: The session.

    Raises:
        UnsupportedError: It is a Spark Connect session, or of another version of Spark.
    """
    refuse_on_connect(spark, "the format `ducklake`", "call penstock.attach, and the verbs of its tables")
    _register(prepare(spark))


def _register(session: SparkSession) -> None:
    gateway = session.sparkContext._gateway
    with _lock:
        if gateway not in _formats:
            known = FormatLakes(attach)
            register_format(session, known.open)
            _formats[gateway] = known
        if _formats[gateway].add(session):
            install(session)
