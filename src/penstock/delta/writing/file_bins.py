"""Decides which small files of a table become one: those of the same partition, up to a size together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.delta.format.actions import AddFile
from penstock.delta.format.file_statistics import record_count
from penstock.delta.format.partition_values import from_text, is_zoneless, to_text
from penstock.delta.format.schema import TableSchema

PartitionTexts = tuple[str | None, ...]


@dataclass(frozen=True)
class FileBin:
    """Files whose rows go into one new file, and the texts of their partition values in the one form that we write."""

    partition: PartitionTexts
    files: tuple[AddFile, ...]


def file_bins(files: Iterable[AddFile], schema: TableSchema, target: int) -> list[FileBin]:
    """Returns files that are smaller than the target, put together by partition so that none exceeds it.

    A file alone in its bin is left out: there is nothing to gain by writing it anew.
    """
    groups: dict[PartitionTexts, list[AddFile]] = {}
    for file in files:
        if live_size(file) < target:
            groups.setdefault(partition_texts(file, schema), []).append(file)
    bins = (FileBin(partition, together) for partition, group in groups.items() for together in _filled(group, target))
    return [one for one in bins if len(one.files) > 1]


def partition_texts(file: AddFile, schema: TableSchema) -> PartitionTexts:
    """Returns a file's partition values in the form that we write: other writers may write the same value otherwise.

    A timestamp without a zone stays as it is: Spark reads it in the zone of the session, others in UTC.
    """
    given = ((file.partition_values.get(name), kind) for name, kind in schema.partition_types.items())
    return tuple(text if is_zoneless(text, kind) else to_text(from_text(text, kind), kind) for text, kind in given)


def live_size(file: AddFile) -> int:
    """Returns about as many bytes as the rows take that are not deleted."""
    rows = record_count(file.stats)
    if file.deletion_vector is None or not rows:
        return file.size
    return file.size * max(0, rows - file.deletion_vector.cardinality) // rows


def _filled(files: list[AddFile], target: int) -> Iterator[tuple[AddFile, ...]]:
    """Yields files, the smallest first, each time as many as fit into the target."""
    together: list[AddFile] = []
    total = 0
    for file in sorted(files, key=live_size):
        if together and total + live_size(file) > target:
            yield tuple(together)
            together, total = [], 0
        together.append(file)
        total += live_size(file)
    if together:
        yield tuple(together)
