"""Checks whether a data file holds its partition columns as `materializePartitionColumns` demands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.delta.reading.parquet_types import describe_type, is_of_type
from penstock.errors import PenstockError
from penstock.storage.filesystems import open_file

Kind = Literal["missing", "not last", "wrong type", "not constant", "differs", "unreadable"]
ToTexts = Callable[[pa.Array, str], pa.StringArray]

_EXAMPLES = 5
_SHOWN = 60
_SURELY_WHOLE = 32  # bytes; writers cut the strings of their statistics at 64 or more, if at all
_READING = (pa.ArrowException, OSError, ValueError, KeyError, PenstockError)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with one file.

    Attributes:
        path: The file.
        kind: What is wrong, in a word.
        column: The partition column in which it is wrong; None where it is the file as a whole.
        message: What is wrong, in a sentence.
    """

    path: str
    kind: Kind
    column: str | None
    message: str


@dataclass(frozen=True)
class Report:
    """What `verify` found in the files of a table; its text is a summary with some examples.

    Attributes:
        files: How many files were looked into.
        findings: All that is wrong with them, in the order of their paths.
    """

    files: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        """Sums up how many files were checked, and what was found."""
        checked = f"{self.files} {'file' if self.files == 1 else 'files'} checked"
        if self.ok:
            return f"{checked}, nothing found"
        kinds = Counter(finding.kind for finding in self.findings)
        lines = [f"{checked}, found: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())]
        lines += [f"  {finding.path}: {finding.message}" for finding in self.findings[:_EXAMPLES]]
        if len(self.findings) > _EXAMPLES:
            lines.append(f"  and {len(self.findings) - _EXAMPLES} more")
        return "\n".join(lines)


def check_file(
    path: str,
    data_columns: Sequence[str],
    partition_columns: Mapping[str, str],
    expected: Mapping[str, str | None],
    to_texts: ToTexts,
) -> list[Finding]:
    """Returns all that is wrong with the partition columns of one data file; nothing else in it is read.

    Columns go by their physical names; partition columns have Delta's types. `expected` holds the log's partition
    values, where an empty text is NULL; in the file an empty text is not NULL, and differs from it. `to_texts` gives
    the values of a column in the log's form.
    """
    try:
        with open_file(path) as opened, pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as file:
            names = file.schema_arrow.names
            findings = [*_misplaced(path, names, data_columns, list(partition_columns))]
            for column, type_name in partition_columns.items():
                leaf = _leaf(file.metadata.schema, column)
                if leaf is not None and not is_of_type(file.schema.column(leaf), type_name):
                    found = describe_type(file.schema.column(leaf))
                    message = f"partition column {column} is {found} where the table has {type_name}"
                    findings.append(Finding(path, "wrong type", column, message))
                elif column in names:
                    findings += _wrong_values(path, file, column, expected.get(column) or None, to_texts)
    except _READING as error:
        return [Finding(path, "unreadable", None, f"the file cannot be read: {error}")]
    return findings


def _misplaced(
    path: str, names: Sequence[str], data_columns: Sequence[str], partition_columns: Sequence[str]
) -> Iterator[Finding]:
    data = set(data_columns)
    last = max((index for index, name in enumerate(names) if name in data), default=-1)
    for column in partition_columns:
        if column not in names:
            yield Finding(path, "missing", column, f"partition column {column} is not in the file")
        elif names.index(column) < last:
            message = f"partition column {column} stands before data column {names[last]}"
            yield Finding(path, "not last", column, message)


def _wrong_values(
    path: str, file: pq.ParquetFile, column: str, expected: str | None, to_texts: ToTexts
) -> Iterator[Finding]:
    try:
        found = list(islice(_distinct_texts(file, column, to_texts), 2))
    except _READING as error:
        message = f"partition column {column} cannot be read: {error}"
        yield Finding(path, "unreadable", column, message)
        return
    if len(found) > 1:
        message = f"partition column {column} holds {_shown(found[0])} and {_shown(found[1])}"
        yield Finding(path, "not constant", column, message)
    elif found and found[0] != expected:
        message = f"partition column {column} holds {_shown(found[0])} where the log says {_shown(expected)}"
        yield Finding(path, "differs", column, message)


def _distinct_texts(file: pq.ParquetFile, column: str, to_texts: ToTexts) -> Iterator[str | None]:
    """Yields the different values of a column: two of them are enough to know that it is not constant."""
    seen: set[str | None] = set()
    for values in _values(file, column):
        for text in to_texts(values.unique(), column).to_pylist():
            if text not in seen:
                seen.add(text)
                yield text


def _values(file: pq.ParquetFile, column: str) -> Iterator[pa.Array]:
    """Yields arrays with all values of a column: from the footer where it tells them, else from the rows."""
    type_ = _plain(file.schema_arrow.field(column).type)
    leaf = _leaf(file.metadata.schema, column)
    for group in range(file.num_row_groups):
        footer = file.metadata.row_group(group)
        if footer.num_rows == 0:
            continue
        statistics = None if leaf is None else footer.column(leaf).statistics
        known = None if statistics is None else _from_footer(statistics, footer.num_rows, type_)
        if known is not None:
            yield known
        else:
            for batch in file.iter_batches(row_groups=[group], columns=[column]):
                yield batch.column(column).cast(type_)


def _from_footer(statistics: pq.Statistics, rows: int, type_: pa.DataType) -> pa.Array | None:
    """Returns values that are in the row group, and all of them if they are one; None where the footer cannot tell.

    Those of floats hide NaN and the sign of zero, and those of strings may be cut.
    """
    if not statistics.has_null_count:
        return None
    if statistics.null_count == rows:
        return pa.nulls(1, type_)
    nulls = [None] if statistics.null_count else []
    if not statistics.has_min_max:
        return None
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        low, high = statistics.min_raw, statistics.max_raw
        return pa.array([low.decode(), *nulls], type_) if low == high and len(low) <= _SURELY_WHOLE else None
    if _is_whole_number(type_, statistics.physical_type):
        return pa.array([statistics.min_raw, statistics.max_raw, *nulls], type_)
    if pa.types.is_decimal(type_):
        return pa.array([statistics.min, statistics.max, *nulls], type_)
    return None


def _is_whole_number(type_: pa.DataType, physical: str) -> bool:
    """Tells whether Parquet keeps a value as the integer (or bit) that Arrow keeps."""
    return physical in ("BOOLEAN", "INT32", "INT64") and (
        pa.types.is_boolean(type_)
        or pa.types.is_signed_integer(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_timestamp(type_)
    )


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _leaf(schema: pq.ParquetSchema, column: str) -> int | None:
    """Returns the place of a top-level column among the leaves; a name with a dot is not a path."""
    for index in range(len(schema)):
        leaf = schema.column(index)
        if leaf.name == leaf.path == column and leaf.max_repetition_level == 0:
            return index
    return None


def _shown(text: str | None) -> str:
    if text is None:
        return "NULL"
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
