"""Decides which data files of a table become one: by what they have in common, in their order, up to a size."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog.compactable_files import CompactableFile, TableHistory

Group = tuple[Hashable, ...]
_MOST_READ_ALONE = 1000  # files in a bin that need a query each: 3,000 of them took DuckDB 1.5 GB and 40 s to plan


@dataclass(frozen=True)
class Bin:
    """Files that become one; `columns_at` is the snapshot whose columns that has."""

    files: tuple[CompactableFile, ...]
    columns_at: int

    @property
    def begin_snapshot(self) -> int:
        """The snapshot that the file begins with, where it takes the place of the others in all snapshots."""
        return max(self.columns_at, min(file.begin_snapshot for file in self.files))


@dataclass(frozen=True)
class SizeLimits:
    """Which files are small enough to be merged, in bytes, and how large a file is meant to be."""

    target: int
    smallest: int | None = None
    largest: int | None = None

    def take(self, file: CompactableFile) -> bool:
        """Whether a file is merged."""
        large = self.target if self.largest is None else min(self.target, self.largest)
        return (self.smallest or 0) <= file.size < large


def merge_bins(
    files: Iterable[CompactableFile], history: TableHistory, limits: SizeLimits, most: int | None = None
) -> list[Bin]:
    """The files that are merged: small ones from which nothing was ever deleted, of one schema version and partition.

    Files of versions that no kept snapshot has count as of the newest of these.
    """
    forgotten = history.forgotten

    def columns_at(file: CompactableFile) -> int:
        return max(history.version(file.begin_snapshot), forgotten)

    wanted = [
        file for file in files if file.deletes is None and limits.take(file) and history.knows(file.begin_snapshot)
    ]
    groups = _grouped(wanted, lambda file: (columns_at(file), file.partition_id, file.partition_values))
    bins = [
        Bin(together, columns_at(together[0]))
        for group in groups
        for together in _filled(group, limits.target, lambda file: file.size)
        if len(together) > 1
    ]
    return bins if most is None else bins[:most]


def rewrite_bins(files: Iterable[CompactableFile], threshold: float, target: int, now: int) -> list[Bin]:
    """The files that are written anew: those that have lost so large a part of their rows, together up to a size."""
    wanted = [file for file in files if file.delete_count and file.delete_count >= threshold * file.record_count]
    groups = _grouped(wanted, lambda file: (file.partition_id, file.partition_values))
    return [Bin(together, now) for group in groups for together in _filled(group, target, _live_size)]


def _live_size(file: CompactableFile) -> int:
    """About as many bytes as the rows take that are left."""
    return file.size * max(0, file.record_count - file.delete_count) // max(1, file.record_count)


def _grouped(
    files: Iterable[CompactableFile], key: Callable[[CompactableFile], Group]
) -> Iterable[list[CompactableFile]]:
    groups: dict[Group, list[CompactableFile]] = {}
    for file in files:
        groups.setdefault(key(file), []).append(file)
    return groups.values()


def _is_read_alone(file: CompactableFile) -> bool:
    """Whether DuckDB reads the file by a query of its own: it has its own key, or its own names."""
    return file.encryption_key is not None or file.mapping_id is not None


def _filled(
    files: Sequence[CompactableFile], target: int, size: Callable[[CompactableFile], int]
) -> Iterator[tuple[CompactableFile, ...]]:
    """Files in their order, each time until they reach the target together, or are too many for one query."""
    together: list[CompactableFile] = []
    total = alone = 0
    for file in files:
        together.append(file)
        total += size(file)
        alone += _is_read_alone(file)
        if total >= target or alone == _MOST_READ_ALONE:
            yield tuple(together)
            together, total, alone = [], 0, 0
    if together:
        yield tuple(together)
