"""Deletes many files at once, and tells how far it is."""

from __future__ import annotations

import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from penstock.storage.filesystems import delete_file
from penstock.storage.progress import progress

_AT_ONCE = 32
_log = logging.getLogger("penstock")


def delete_all(paths: Collection[str]) -> list[bool]:
    """Delete files; tells of each whether it is gone. One that was not there is; one that cannot be deleted is not."""
    if not paths:
        return []
    with ThreadPoolExecutor(_AT_ONCE) as pool, progress("deleted", len(paths)) as line:

        def delete(path: str) -> bool:
            try:
                delete_file(path)
            except OSError as error:
                _log.warning("%s could not be deleted: %s", path, error)
                return False
            finally:
                line.advance()
            return True

        return list(pool.map(delete, paths))
