"""Hadoop's settings for S3: what a session says of a bucket, and what a scan is told of it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.hadoop import hadoop_of, secret_of
from penstock.storage.s3 import S3Access

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
# Hadoop's newest stream asks for each file's ETag first; this one asks for nothing but bytes.
_STREAM = "classic"
_PROVIDERS = "org.apache.hadoop.fs.s3a"
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


def _setting(hadoop: Any, bucket: str, name: str) -> str | None:
    return hadoop.get(f"fs.s3a.bucket.{bucket}.{name}") or hadoop.get(f"fs.s3a.{name}") or None


def session_options(spark: SparkSession, bucket: str) -> dict[str, str]:
    """What the session's `fs.s3a` settings say of a bucket."""
    hadoop, found = hadoop_of(spark), {}
    for name, hadoop_name in _KEYS.items():
        secret = secret_of(spark, f"fs.s3a.bucket.{bucket}.{hadoop_name}", f"fs.s3a.{hadoop_name}")
        if secret:
            found[name] = secret
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


def scan_settings(hadoop: Any, access: S3Access) -> dict[str, str]:
    """By which a scan reads a bucket."""
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
    return {f"fs.s3a.bucket.{access.bucket}.{name}": value for name, value in said.items() if value is not None}


def _provider(access: S3Access) -> str | None:
    """None for the session's own: by default it looks for keys where AWS's tools do."""
    if access.anonymous:
        return f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
    if access.key_id is None:
        return None
    kind = "Temporary" if access.session_token else "Simple"
    return f"{_PROVIDERS}.{kind}AWSCredentialsProvider"
