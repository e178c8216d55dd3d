"""Deletes many files at once, and tells how far it is."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor

from penstock.storage.filesystems import delete_file
from penstock.storage.progress import progress
from penstock.storage.s3_objects import AT_ONCE, delete_objects, has_s3_client
from penstock.storage.stores import Store, store_of

_THREADS = 32
_log = logging.getLogger("penstock")


def delete_all(paths: Collection[str]) -> list[bool]:
    """Delete files; tells of each whether it is gone. One that was not there is; one that cannot be deleted is not."""
    if not paths:
        return []
    left: dict[str, str] = {}
    once = dict.fromkeys(paths)
    with ThreadPoolExecutor(_THREADS) as pool, progress("delete files", len(once)) as bar:
        for batch, failures in pool.map(_delete, _batches(once)):
            left |= failures
            bar.advance(len(batch))
    for path, why in left.items():
        _log.warning("%s could not be deleted: %s", path, why)
    return [path not in left for path in paths]


def _batches(paths: Collection[str]) -> Iterator[list[str]]:
    """What is deleted with one request: many objects of a bucket, or one file."""
    objects: dict[Store | None, list[str]] = defaultdict(list)
    for path in paths:
        if has_s3_client(path):
            objects[store_of(path)].append(path)
        else:
            yield [path]
    for of_bucket in objects.values():
        for first in range(0, len(of_bucket), AT_ONCE):
            yield of_bucket[first : first + AT_ONCE]


def _delete(batch: list[str]) -> tuple[list[str], dict[str, str]]:
    """The batch, and why those are left that are."""
    try:
        if has_s3_client(batch[0]):
            return batch, delete_objects(batch)
        delete_file(batch[0])
    except OSError as error:
        return batch, dict.fromkeys(batch, str(error))
    return batch, {}
