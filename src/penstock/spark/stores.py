"""Prepares Spark, and this process, for a store: the keys of its user, and the file system that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import UnsupportedError
from penstock.spark import azure_packages, azure_settings, s3_packages, s3_settings
from penstock.spark.connect.sessions import is_connect, refuse_on_connect
from penstock.spark.hadoop import hadoop_of, is_class
from penstock.storage.azure import AzureAccess, azure_access
from penstock.storage.options import StorageOptions, known_stores, options_for
from penstock.storage.s3 import S3Access
from penstock.storage.stores import Store, store_of
from penstock.storage.used_stores import use_store

# Sources of the classes that open files on executors: those whose sizes the catalog knows, in stores and behind http;
# and those of which rows were deleted, anywhere.
KNOWN_FILES = (
    "KnownFile", "KnownParquet", "KnownSizes", "KnownStream", "RangeFileSystem",
    "DeletedPositions", "DeletionVector", "ParquetWithDeletes", "RowNumbers", "RowsLeft", "UnreadableDeletes",
)  # fmt: skip
# Hadoop's own file system for http can neither tell sizes nor read from the middle. One of ours is made for each file.
_OF_WEB = {
    f"fs.{scheme}.impl{setting}": value
    for scheme in ("http", "https")
    for setting, value in (("", "penstock.RangeFileSystem"), (".disable.cache", "true"))
}


def prepare_store(
    spark: SparkSession, path: str, given: Mapping[str, object] | None, *, reads_there: bool = True
) -> None:
    """Use a user's options for the bucket of a path, and what they leave open as the session has it.

    `reads_there`: whether Spark's own reader has to reach it. Raises InvalidError where the options make no sense or do
    not open the bucket, NotFoundError where there is none, UnsupportedError where the session cannot read there.
    """
    options, store = StorageOptions.of(given), store_of(path)
    if store is None:
        return
    options.check_kind(store.kind, path)
    if store.kind == "http":
        refuse_on_connect(spark, f"reading {path}", "copy the lake to a store")
    if reads_there:
        _check_reader(spark, store, path)
    use_store(path, options, partial(_session_options, spark, store, path))


def prepare_other_store(spark: SparkSession, path: str, data_path: str) -> None:
    """Use a lake's options for another bucket that it gets files from, where that has none of its own."""
    store, own = store_of(path), store_of(data_path)
    if store is not None and store not in known_stores():
        prepare_store(spark, path, options_for(data_path) if own is not None and own.kind == store.kind else None)


def _check_reader(spark: SparkSession, store: Store, path: str) -> None:
    if store.kind == "s3" and not reads_s3(spark):
        raise UnsupportedError(f"this Spark session cannot read {path}: {s3_packages.HOW_TO_ADD}")
    if store.kind == "azure" and not reads_azure(spark):
        raise UnsupportedError(f"this Spark session cannot read {path}: {azure_packages.HOW_TO_ADD}")


def reads_s3(spark: SparkSession) -> bool:
    """Whether a session has a file system for S3."""
    return is_class(spark, s3_settings.S3A) or bool(hadoop_of(spark).get("fs.s3.impl"))


def reads_azure(spark: SparkSession) -> bool:
    """Whether a session has a file system for Azure."""
    return is_class(spark, azure_settings.FILE_SYSTEMS["abfs"])


def _session_options(spark: SparkSession, store: Store, path: str, known: StorageOptions) -> Mapping[str, str]:
    """What the session says of a store."""
    if store.kind == "s3":
        return s3_settings.session_options(spark, store.name)
    return azure_settings.session_options(spark, AzureAccess.of(path, known))


def hadoop_settings(spark: SparkSession) -> dict[str, str]:
    """Settings of Hadoop's by which a scan reads the known buckets: for the scan alone, and in no session."""
    if not known_stores():
        return {}
    hadoop, settings = hadoop_of(spark), dict[str, str]()
    opened = _plain if is_connect(spark) else _opened
    for store, options in known_stores().items():
        if store.kind == "s3":
            settings |= _digested(store.name, s3_settings.scan_settings(hadoop, S3Access.of(store.name, options)))
            settings |= opened(hadoop, dict.fromkeys(("s3", "s3a", "s3n"), s3_settings.S3A))
        elif store.kind == "azure":
            access = azure_access(f"az://{store.name}/")
            settings |= _digested(access.hadoop_authority, azure_settings.scan_settings(access))
            settings |= opened(hadoop, azure_settings.FILE_SYSTEMS)
        elif store.kind == "http":
            settings |= _OF_WEB
    return settings


def _digested(authority: str, settings: dict[str, str]) -> dict[str, str]:
    """Settings with a digest of themselves, by which KnownSizes tells new keys from old ones."""
    return settings | {f"penstock.settings.{authority}": sha256(repr(settings).encode()).hexdigest()}


def _plain(hadoop: Any, usual: Mapping[str, str]) -> dict[str, str]:
    """Let the file system that is set for schemes, or the usual one, open their files."""
    return {f"fs.{scheme}.impl": hadoop.get(f"fs.{scheme}.impl") or usual[scheme] for scheme in usual}


def _opened(hadoop: Any, usual: Mapping[str, str]) -> dict[str, str]:
    """Let the file system of ours open the files of schemes, and the one that is set, or the usual, do all else."""
    settings: dict[str, str] = {}
    for scheme, file_system in usual.items():
        settings[f"penstock.fs.{scheme}"] = hadoop.get(f"fs.{scheme}.impl") or file_system
        settings[f"fs.{scheme}.impl"] = "penstock.KnownSizes"
        settings[f"fs.{scheme}.impl.disable.cache"] = "true"
    return settings
