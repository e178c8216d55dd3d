"""Verifies in Spark's tasks that the data files of a table hold their partition columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.delta.format.partition_values import array_texts, from_text, to_text
from penstock.delta.reading.file_jobs import file_tasks, result, run_on_files
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.reading.partition_column_checks import Finding, Report, check_file
from penstock.errors import InvalidError


@dataclass(frozen=True)
class VerificationJob:
    """Checks the partition columns of each file: files in, lists of findings out."""

    data_columns: Sequence[str]
    types: Mapping[str, str]  # of the partition columns, by their names in files

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the findings of each file that a task was given."""
        for _, path, values in file_tasks(batches):
            expected = {name: _in_our_form(values.get(name), kind) for name, kind in self.types.items()}
            yield result(check_file(path, self.data_columns, self.types, expected, self._texts))

    def _texts(self, array: pa.Array, column: str) -> pa.StringArray:
        return array_texts(array, self.types[column])


def verify_files(scan: FileScan) -> Report:
    """Reports what `materializePartitionColumns` finds wrong with the files of a scan."""
    data = [scan.schema.physical_name(item) for item in scan.schema.data_fields]
    told: list[list[Finding]] = run_on_files(scan, VerificationJob(data, scan.schema.partition_types), scan.files)
    findings = sorted(
        (finding for one in told for finding in one), key=lambda one: (one.path, one.kind, one.column or "")
    )
    return Report(len(scan.files), tuple(findings))


def _in_our_form(text: str | None, type_name: str) -> str | None:
    """Returns a partition value of the log as Penstock would write it: others write the same value in other forms."""
    try:
        return to_text(from_text(text, type_name), type_name)
    except InvalidError:
        return text  # no value at all: whatever is in the file differs from it
