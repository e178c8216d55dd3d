"""Tells the moment before which snapshots and files are old, from what a user says and from options."""

from __future__ import annotations

from datetime import datetime

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.ages import DELETE_OLDER_THAN, option_cutoff
from penstock.errors import InvalidError
from penstock.spark.versions import Age, moment


def expiry_cutoff(attachment: Attachment) -> datetime | None:
    """What the lake's option `expire_older_than` says; None where it is not set.

    Raises:
        InvalidError: It is no age.
    """
    interval = attachment.option("expire_older_than", None, None)
    return option_cutoff("expire_older_than", interval) if interval else None


def file_cutoff(attachment: Attachment, verb: str, older_than: Age | None, cleanup_all: bool) -> datetime | None:
    """Before when files may go: as told, or as the lake's option `delete_older_than` says. None for any time.

    Raises:
        InvalidError: Both were told, or nothing was and the option is empty, or no age.
    """
    if older_than is not None and cleanup_all:
        raise InvalidError(f"{verb} takes older_than or cleanup_all, not both")
    if cleanup_all:
        return None
    if older_than is not None:
        return moment(attachment.spark, older_than)
    interval = attachment.option("delete_older_than", None, None)
    if interval == "":
        raise InvalidError(f"the option delete_older_than is empty: give {verb} older_than=..., or cleanup_all=True")
    return option_cutoff("delete_older_than", interval or DELETE_OLDER_THAN)
