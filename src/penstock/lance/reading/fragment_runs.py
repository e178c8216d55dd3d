"""Puts the small fragments of a leaf together, to be read by one scanner: to make one takes as long as many rows do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceFragment

_MOST_BYTES = 4 * 2**20  # what Spark takes the opening of a file for
_MOST_FRAGMENTS = 32  # so that many tasks share those of a leaf, however small they are


@dataclass(frozen=True)
class FragmentRun:
    """Fragments of a leaf that one scanner reads, in their order."""

    numbers: tuple[int, ...]
    first_file: str
    size: int  # in bytes; 0 where Lance does not know it: such a fragment stays alone

    @classmethod
    def of(cls, fragment: LanceFragment) -> FragmentRun:
        """The run of one fragment."""
        files = fragment.metadata.files
        sizes = [file.file_size_bytes or 0 for file in files]
        return cls((fragment.fragment_id,), files[0].path, sum(sizes) if all(sizes) else 0)

    def takes(self, other: FragmentRun) -> bool:
        """Whether there is room for another run's fragments."""
        few = len(self.numbers) + len(other.numbers) <= _MOST_FRAGMENTS
        return few and 0 not in (self.size, other.size) and self.size + other.size <= _MOST_BYTES

    def joined(self, other: FragmentRun) -> FragmentRun:
        """Both runs in one."""
        return FragmentRun(self.numbers + other.numbers, self.first_file, self.size + other.size)


def joined_runs(runs: Iterable[FragmentRun]) -> Iterator[FragmentRun]:
    """The same fragments in the same order, in fewer runs."""
    current: FragmentRun | None = None
    for run in runs:
        if current is not None and current.takes(run):
            current = current.joined(run)
            continue
        if current is not None:
            yield current
        current = run
    if current is not None:
        yield current
