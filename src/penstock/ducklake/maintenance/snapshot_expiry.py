"""Chooses the snapshots that expire, and expires them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.expiry import expire
from penstock.ducklake.catalog.snapshots import all_snapshots
from penstock.ducklake.maintenance.cutoffs import expiry_cutoff
from penstock.ducklake.model.snapshots import Snapshot, Version, version_number
from penstock.errors import InvalidError
from penstock.spark.versions import Age, moment


def expire_snapshots(
    attachment: Attachment,
    versions: Sequence[Version] | None,
    older_than: Age | None,
    keep_last: int | None,
    dry_run: bool,
) -> list[Snapshot]:
    """Expire the snapshots that are chosen, and give them back. The newest one always stays."""
    attachment.check_changes_at_once("expire_snapshots")
    if sum(choice is not None for choice in (versions, older_than, keep_last)) > 1:
        raise InvalidError("expire_snapshots takes one of versions, older_than and keep_last")
    if keep_last is not None and keep_last < 1:
        raise InvalidError(f"keep_last cannot be {keep_last}: the newest snapshot always stays, so it takes 1 or more")
    chosen = _chosen(attachment, versions, older_than, keep_last)
    if not dry_run:
        expire(attachment.catalog.database, {snapshot.id for snapshot in chosen})
    return chosen


def _chosen(
    attachment: Attachment, versions: Sequence[Version] | None, older_than: Age | None, keep_last: int | None
) -> list[Snapshot]:
    *older, _ = all_snapshots(attachment.catalog.database)
    if keep_last is not None:
        return older[: len(older) + 1 - keep_last]
    if versions is not None:
        numbers = {version_number(version) for version in versions}
        return [snapshot for snapshot in older if snapshot.id in numbers]
    cutoff = expiry_cutoff(attachment) if older_than is None else moment(attachment.spark, older_than)
    return [snapshot for snapshot in older if cutoff is not None and snapshot.time < cutoff]
