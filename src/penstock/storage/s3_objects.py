"""Does with objects of S3 what PyArrow cannot: deletes many at once, puts one where none is, ends uploads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from penstock.storage.s3 import has_boto3, s3_access, s3_client
from penstock.storage.stores import split_path, store_kind

AT_ONCE = 1000  # objects that one request may delete


def has_s3_client(path: str) -> bool:
    """Whether a path is on S3, and boto3 is there to ask it more than PyArrow does."""
    return store_kind(path) == "s3" and has_boto3()


def delete_objects(paths: Sequence[str]) -> dict[str, str]:
    """Delete up to a thousand objects of one bucket; tells why, of those that are still there."""
    access = s3_access(paths[0])
    by_key = {split_path(path)[1]: path for path in paths}
    with _os_errors():
        answer = s3_client(access).delete_objects(
            Bucket=access.bucket, Delete={"Objects": [{"Key": key} for key in by_key], "Quiet": True}
        )
    return {
        by_key[error["Key"]]: f"{error.get('Code')}: {error.get('Message')}"
        for error in answer.get("Errors", ())
        if error.get("Code") != "NoSuchKey"
    }


def put_if_absent(path: str, content: bytes) -> bool:
    """Make an object, all of it at once; False, and nothing done, where there is one already."""
    from botocore.exceptions import ClientError

    access, key = s3_access(path), split_path(path)[1]
    client = s3_client(access)
    with _os_errors():
        while True:
            try:
                client.put_object(Bucket=access.bucket, Key=key, Body=content, IfNoneMatch="*")
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code == "ConditionalRequestConflict":  # another put or delete was under way
                    continue
                if code not in ("PreconditionFailed", "412"):
                    raise
                # A request that was sent twice may have been heard the first time.
                again = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
                return bool(again) and client.get_object(Bucket=access.bucket, Key=key)["Body"].read() == content
            return True
    raise AssertionError("unreachable")


class Upload(NamedTuple):
    """An upload that was begun and not ended: its parts are kept, and no listing of objects shows it."""

    path: str
    id: str
    started: datetime


def unfinished_uploads(directory: str) -> Iterator[Upload]:
    """The unfinished uploads below a directory, which ends in a slash."""
    access, prefix = s3_access(directory), split_path(directory)[1]
    root = directory.removesuffix(prefix)
    pages = s3_client(access).get_paginator("list_multipart_uploads").paginate(Bucket=access.bucket, Prefix=prefix)
    with _os_errors():
        for page in pages:
            for upload in page.get("Uploads", ()):
                yield Upload(root + upload["Key"], upload["UploadId"], upload["Initiated"])


def end_upload(upload: Upload) -> bool:
    """Give up an upload and its parts; whether it is gone."""
    from botocore.exceptions import BotoCoreError, ClientError

    access, key = s3_access(upload.path), split_path(upload.path)[1]
    try:
        s3_client(access).abort_multipart_upload(Bucket=access.bucket, Key=key, UploadId=upload.id)
    except (ClientError, BotoCoreError) as error:
        return isinstance(error, ClientError) and error.response["Error"]["Code"] == "NoSuchUpload"
    return True


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise as OSError what boto3 raises, as other file systems do."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise OSError(str(error)) from error
