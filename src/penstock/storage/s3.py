"""Reaches S3: what PyArrow, DuckDB and boto3 are told about a bucket, from its options and the environment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyarrow import fs

from penstock.errors import UnsupportedError
from penstock.storage.duckdb_sql import duckdb_quoted
from penstock.storage.options import StorageOptions, from_environment, options_for
from penstock.storage.stores import store_kind, store_of

if TYPE_CHECKING:
    import duckdb

# An address where nothing answers is an error in seconds.
_CONNECT_SECONDS = 5.0
_KEPT = 64  # connections: keys come and go
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
# What a server of its own calls its only region.
_USUAL_REGION = "us-east-1"


@dataclass(frozen=True)
class S3Access:
    """How to reach a bucket. Without a key, each library looks for one where AWS's do: variables, files, machine."""

    bucket: str
    region: str | None
    endpoint: str | None  # with its scheme; None for AWS itself
    virtual_hosted: bool
    anonymous: bool
    key_id: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, bucket: str, options: StorageOptions) -> S3Access:
        """By a bucket's options, and where they say nothing of its address, by the environment's."""
        said = with_environment(options)
        endpoint = said.get("aws_endpoint_url")
        region = said.get("aws_region") or (_USUAL_REGION if endpoint else None)
        return cls(
            bucket,
            region,
            endpoint,
            options.is_yes("aws_virtual_hosted_style_request") if endpoint else True,
            options.is_yes("aws_skip_signature"),
            options.get("aws_access_key_id"),
            options.get("aws_secret_access_key"),
            options.get("aws_session_token"),
        )

    @property
    def host(self) -> str | None:
        """The endpoint without its scheme."""
        return urlsplit(self.endpoint).netloc if self.endpoint else None

    @property
    def is_encrypted(self) -> bool:
        """Whether requests go by TLS."""
        return not (self.endpoint or "").startswith("http://")


def s3_access(path: str) -> S3Access:
    """How to reach the bucket of a path, which is on S3, with the options that are used for it."""
    store = store_of(path)
    assert store is not None  # or the path would be on this machine
    return S3Access.of(store.name, options_for(path))


def s3_endpoint(path: str) -> str | None:
    """The server of a path's bucket; None for AWS's, and where the path is not on S3."""
    endpoint = s3_access(path).endpoint if store_kind(path) == "s3" else None
    return endpoint.rstrip("/").lower() if endpoint else None


def with_environment(options: StorageOptions) -> StorageOptions:
    """Options with what this process's environment says of the address; that of a worker need not say the same."""
    found = {"aws_endpoint_url": from_environment(_ENDPOINTS), "aws_region": from_environment(_REGIONS)}
    said = {name: value for name, value in found.items() if value is not None}
    return StorageOptions.of({**said, **options}) if said else options


@lru_cache(maxsize=_KEPT)
def s3_filesystem(access: S3Access) -> fs.S3FileSystem:
    """The file system by which PyArrow reaches a bucket."""
    region = access.region
    if region is None:
        region = fs.resolve_s3_region(access.bucket)
    return fs.S3FileSystem(
        access_key=access.key_id,
        secret_key=access.secret,
        session_token=access.session_token,
        anonymous=access.anonymous,
        region=region,
        endpoint_override=access.host,
        scheme="https" if access.is_encrypted else "http",
        force_virtual_addressing=access.virtual_hosted and access.endpoint is not None,
        connect_timeout=_CONNECT_SECONDS,
        allow_delayed_open=True,  # a small file is one request then, not three
    )


def add_secret(connection: duckdb.DuckDBPyConnection, access: S3Access) -> None:
    """Tell a DuckDB, which has its `httpfs` loaded, how to reach a bucket."""
    access = _with_found_key(access)
    said = {
        "KEY_ID": access.key_id,
        "SECRET": access.secret,
        "SESSION_TOKEN": access.session_token,
        "REGION": access.region,
        "ENDPOINT": access.host,
        "URL_STYLE": None if access.endpoint is None else "vhost" if access.virtual_hosted else "path",
        "USE_SSL": access.is_encrypted,
    }
    given = {name: value for name, value in said.items() if value is not None}
    parameters = ", ".join(f"{name} ?" for name in given)
    for scheme in ("s3", "s3a", "s3n"):
        scope = f"{scheme}://{access.bucket}/"
        connection.execute(
            f"CREATE OR REPLACE TEMPORARY SECRET {duckdb_quoted(f'penstock {scope}')} (TYPE s3, {parameters}, SCOPE ?)",
            [*given.values(), scope],
        )


def _with_found_key(access: S3Access) -> S3Access:
    """With the key of this machine, where none is given: DuckDB alone does not look for one."""
    if access.key_id or access.anonymous:
        return access
    found = _boto3_session(access).get_credentials() if has_boto3() else None
    if found is None:
        return access
    key = found.get_frozen_credentials()
    return replace(access, key_id=key.access_key, secret=key.secret_key, session_token=key.token)


@cache
def has_boto3() -> bool:
    """Whether boto3 is installed."""
    try:
        import boto3  # noqa: F401
    except ImportError:
        return False
    return True


def _boto3_session(access: S3Access) -> Any:
    import boto3

    return boto3.session.Session(access.key_id, access.secret, access.session_token, access.region)


@lru_cache(maxsize=_KEPT)
def s3_client(access: S3Access) -> Any:
    """A client of boto3, for what PyArrow cannot ask of S3. Raises UnsupportedError where it is not installed."""
    if not has_boto3():
        raise UnsupportedError(f"to do this in the bucket {access.bucket} takes boto3; pip install 'penstock[s3]'")
    import botocore
    import botocore.config

    config = botocore.config.Config(
        connect_timeout=_CONNECT_SECONDS,
        retries={"max_attempts": 3, "mode": "standard"},
        signature_version=botocore.UNSIGNED if access.anonymous else None,
        s3={"addressing_style": "virtual" if access.virtual_hosted else "path"},
    )
    return _boto3_session(access).client("s3", endpoint_url=access.endpoint, config=config)
