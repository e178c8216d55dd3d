"""Checks, with one request, that a store answers; says which of its options is wrong where it does not."""

from __future__ import annotations

import re

from pyarrow import fs

from penstock.errors import InvalidError, NotFoundError
from penstock.storage.azure import AzureAccess, azure_filesystem
from penstock.storage.options import StorageOptions
from penstock.storage.s3 import S3Access, s3_filesystem
from penstock.storage.stores import Store, split_path, store_of

# What servers and PyArrow say, and what it means; `{bucket}` is filled in.
_MEANINGS = (
    ("SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch", "aws_secret_access_key is wrong: the signature does not match"),
    ("INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|UserNotFound", "aws_access_key_id is wrong: there is no such key"),
    ("INVALID_CLIENT_TOKEN_ID|InvalidToken|ExpiredToken|EXPIRED_TOKEN", "aws_session_token is wrong or has expired"),
    ("NO_SUCH_BUCKET|NoSuchBucket", "there is no bucket {bucket}"),
    ("NETWORK_CONNECTION|curlCode|REQUEST_TIMEOUT", "nothing answers: check aws_endpoint_url and the network"),
    (
        "AuthenticationFailed|AuthorizationFailure|InvalidAuthenticationInfo",
        "azure_storage_account_key or azure_storage_sas_token is wrong",
    ),
    ("Fail to get a new connection|resolve host", "nothing answers: check the account, azure_endpoint and the network"),
    (
        "AuthorizationHeaderMalformed|PermanentRedirect|HTTP status 301|IllegalLocationConstraint|region",
        "aws_region is wrong",
    ),
)
# To list a folder that is not there is one request, which is answered as any listing below the path; a HEAD gives no
# reason for what it refuses.
_NOTHING = "_penstock_nothing"
# To list may be forbidden where to read is not.
_FORBIDDEN = re.compile("ACCESS_DENIED|AccessDenied|HTTP status 403")


def check_reachable(path: str, options: StorageOptions) -> None:
    """Raise InvalidError where a path's bucket cannot be reached by options, NotFoundError where it does not exist."""
    store = store_of(path)
    if store is not None and store.kind == "s3":
        _check_bucket(path, store, options)
    elif store is not None and store.kind == "azure":
        _check_container(AzureAccess.of(path, options))


def _check_container(access: AzureAccess) -> None:
    place = f"the container {access.container} of {access.account} at {access.endpoint or 'Azure'}"
    try:
        found = azure_filesystem(access).get_file_info(access.container)
    except OSError as error:
        raise InvalidError(f"{place} cannot be reached: {_meaning(str(error), access.container)}") from None
    if found.type == fs.FileType.NotFound:
        raise NotFoundError(f"{place} cannot be reached: there is no such container")


def _check_bucket(path: str, store: Store, options: StorageOptions) -> None:
    access = S3Access.of(store.name, options)
    folder = f"{store.name}/{split_path(path)[1]}".rstrip("/")
    place = f"{store} at {access.endpoint or 'AWS'}"
    try:
        filesystem = s3_filesystem(access)
        filesystem.get_file_info(fs.FileSelector(f"{folder}/{_NOTHING}", allow_not_found=True))
        if filesystem.get_file_info(store.name).type == fs.FileType.NotFound:
            raise NotFoundError(f"{place} cannot be reached: there is no bucket {store.name}")
    except OSError as error:
        if not _FORBIDDEN.search(str(error)):
            raise InvalidError(f"{place} cannot be reached: {_meaning(str(error), store.name)}") from None


def _meaning(text: str, bucket: str) -> str:
    said = text.replace(bucket, "")  # a bucket may have any of these words for its name
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, said):
            return f"{meaning.format(bucket=bucket)} ({text})"
    return text
