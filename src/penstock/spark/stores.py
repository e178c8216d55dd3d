"""Prepares Spark, and this process, for a bucket: the keys of its user, and the file system that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import UnsupportedError
from penstock.spark.java_classes import java_class
from penstock.spark.s3_packages import HOW_TO_ADD
from penstock.storage.options import StorageOptions, known_stores, options_for, use_options
from penstock.storage.reachability import check_reachable
from penstock.storage.s3 import S3Access
from penstock.storage.stores import store_of

# Sources of the classes that open files whose sizes the catalog knows, in stores and behind http.
KNOWN_FILES = ("KnownFile", "KnownParquet", "KnownSizes", "KnownStream", "RangeFileSystem")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
# Hadoop's newest stream asks for each file's ETag first; this one asks for nothing but bytes.
_STREAM = "classic"
_PROVIDERS = "org.apache.hadoop.fs.s3a"
# Hadoop's own file system for http can neither tell sizes nor read from the middle. One of ours is made for each file.
_OF_WEB = {
    f"fs.{scheme}.impl{setting}": value
    for scheme in ("http", "https")
    for setting, value in (("", "penstock.RangeFileSystem"), (".disable.cache", "true"))
}
# Our names of options with those of Hadoop's settings.
_SETTINGS = {
    "aws_region": "endpoint.region",
    "aws_endpoint_url": "endpoint",
}
_KEYS = {
    "aws_access_key_id": "access.key",
    "aws_secret_access_key": "secret.key",
    "aws_session_token": "session.token",
}


def prepare_store(
    spark: SparkSession, path: str, given: Mapping[str, object] | None, *, reads_there: bool = True
) -> None:
    """Use a user's options for the bucket of a path, and what they leave open as the session has it.

    `reads_there`: whether Spark's own reader has to reach it. Raises InvalidError where the options make no sense or do
    not open the bucket, NotFoundError where there is none, UnsupportedError where the session cannot read there.
    """
    options, store = StorageOptions.of(given), store_of(path)
    if store is None or store.kind != "s3":
        use_options(path, options)
        return
    if reads_there and not reads_s3(spark):
        raise UnsupportedError(f"this Spark session cannot read {path}: {HOW_TO_ADD}")
    options = options.over(_of_session(spark, store.name))
    check_reachable(path, options)
    use_options(path, options)


def prepare_other_store(spark: SparkSession, path: str, data_path: str) -> None:
    """Use a lake's options for another bucket that it gets files from, where that has none of its own."""
    store = store_of(path)
    if store is not None and store not in known_stores():
        prepare_store(spark, path, options_for(data_path))


def reads_s3(spark: SparkSession) -> bool:
    """Whether a session has a file system for S3."""
    return _is_class(spark, _S3A) or bool(_hadoop(spark).get("fs.s3.impl"))


def _is_class(spark: SparkSession, name: str) -> bool:
    return "JavaClass" in type(java_class(spark, name)).__name__


def _hadoop(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext._jsc
    return context.hadoopConfiguration()


def _setting(hadoop: Any, bucket: str, name: str) -> str | None:
    return hadoop.get(f"fs.s3a.bucket.{bucket}.{name}") or hadoop.get(f"fs.s3a.{name}") or None


def _of_session(spark: SparkSession, bucket: str) -> dict[str, str]:
    """What the session's `fs.s3a` settings say of a bucket."""
    hadoop, found = _hadoop(spark), {}
    for name, hadoop_name in _KEYS.items():
        secret = hadoop.getPassword(f"fs.s3a.bucket.{bucket}.{hadoop_name}") or hadoop.getPassword(
            f"fs.s3a.{hadoop_name}"
        )
        if secret:
            found[name] = str(java_class(spark, "java.lang.String").valueOf(secret))
    for name, hadoop_name in _SETTINGS.items():
        value = _setting(hadoop, bucket, hadoop_name)
        if value:
            found[name] = value
    endpoint = found.get("aws_endpoint_url")
    if endpoint and "://" not in endpoint:
        found["aws_endpoint_url"] = (
            f"{'http' if _setting(hadoop, bucket, 'connection.ssl.enabled') == 'false' else 'https'}://{endpoint}"
        )
    if _setting(hadoop, bucket, "path.style.access") == "false" and endpoint:
        found["aws_virtual_hosted_style_request"] = "true"
    if "Anonymous" in (_setting(hadoop, bucket, "aws.credentials.provider") or ""):
        found["aws_skip_signature"] = "true"
    return found


def hadoop_settings(spark: SparkSession) -> dict[str, str]:
    """Settings of Hadoop's by which a scan reads the known buckets: for the scan alone, and in no session."""
    hadoop = _hadoop(spark)
    settings: dict[str, str] = {}
    stores = known_stores()
    for store, options in stores.items():
        if store.kind == "s3":
            settings |= _of_bucket(hadoop, S3Access.of(store.name, options))
    if settings:
        settings |= _without_sizes(hadoop, ("s3", "s3a", "s3n"), _S3A)
    if any(store.kind == "http" for store in stores):
        settings |= _OF_WEB
    return settings


def _of_bucket(hadoop: Any, access: S3Access) -> dict[str, str]:
    said: dict[str, str | None] = {
        "access.key": access.key_id,
        "secret.key": access.secret,
        "session.token": access.session_token,
        "endpoint": access.endpoint,
        "endpoint.region": access.region,
        "path.style.access": None if access.endpoint is None else str(not access.virtual_hosted).lower(),
        "aws.credentials.provider": _provider(access),
        "connection.establish.timeout": "5s",
        "input.stream.type": _setting(hadoop, access.bucket, "input.stream.type") or _STREAM,
    }
    settings = {f"fs.s3a.bucket.{access.bucket}.{name}": value for name, value in said.items() if value is not None}
    return settings | {f"penstock.settings.{access.bucket}": sha256(repr(settings).encode()).hexdigest()}


def _without_sizes(hadoop: Any, schemes: tuple[str, ...], usual: str) -> dict[str, str]:
    """Let the file system of ours open the files of schemes, and the one that is set, or the usual, do all else."""
    settings: dict[str, str] = {}
    for scheme in schemes:
        settings[f"penstock.fs.{scheme}"] = hadoop.get(f"fs.{scheme}.impl") or usual
        settings[f"fs.{scheme}.impl"] = "penstock.KnownSizes"
        settings[f"fs.{scheme}.impl.disable.cache"] = "true"
    return settings


def _provider(access: S3Access) -> str | None:
    """None for the session's own: by default it looks for keys where AWS's tools do."""
    if access.anonymous:
        return f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
    if access.key_id is None:
        return None
    kind = "Temporary" if access.session_token else "Simple"
    return f"{_PROVIDERS}.{kind}AWSCredentialsProvider"
