"""Writes one data file: where it lies, what PyArrow puts into it, and what is known when it is closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.schema.statistics import WrittenFile
from penstock.storage.filesystems import delete_file, make_directory, open_output
from penstock.storage.parquet.dictionaries import columns_with_dictionaries
from penstock.storage.parquet.names import new_file_name
from penstock.storage.parquet.observations import footer_observations
from penstock.storage.parquet.plan import WritePlan
from penstock.storage.parquet.schema import columns_with_statistics, file_schema
from penstock.storage.parquet.statistics import footer_statistics
from penstock.storage.parquet.values import check_not_null, to_file_form

PartitionValues = tuple[str | None, ...]
_AFTER_FOOTER = 8  # bytes: the footer's size, and PAR1
_PYARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}


class OpenFile(ABC):
    """A data file of a partition that is being written. `appends` says whether it can be written to more than once."""

    appends: bool

    def __init__(self, plan: WritePlan, values: PartitionValues) -> None:
        self.plan = plan
        self.values = values
        folder = plan.folder(plan.partition_names, values) if plan.options.hive_file_pattern else ""
        self.path = folder + new_file_name(plan.write_id, plan.suffix, prefix=plan.prefix)
        make_directory(plan.directory + folder)

    @property
    def location(self) -> str:
        return self.plan.directory + self.path

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Write rows, of which the first columns are the file's."""

    @abstractmethod
    def close(self) -> WrittenFile:
        """Complete the file."""

    def abandon(self) -> None:
        """Stop writing the file, and delete it."""
        delete_file(self.location)

    def group_rows(self, rows: pa.Table) -> int:
        """How many of these rows make a row group."""
        options = self.plan.options
        fitting: int = rows.num_rows
        if options.row_group_bytes is not None and rows.nbytes:
            fitting = options.row_group_bytes * rows.num_rows // rows.nbytes
        return max(1, min(options.row_group_size, fitting))


class ArrowFile(OpenFile):
    """A file that PyArrow writes, a few row groups at a time."""

    appends = True

    def __init__(self, plan: WritePlan, values: PartitionValues) -> None:
        super().__init__(plan, values)
        self._schema = file_schema(plan.columns, plan.row_ids, ids=plan.field_ids)
        self._observed = footer_observations(plan.columns)
        self._footers: list[pq.FileMetaData] = []
        self._sink = open_output(self.location)
        self._writer: pq.ParquetWriter | None = None

    def _begun(self, rows: pa.Table) -> pq.ParquetWriter:
        options = self.plan.options
        return pq.ParquetWriter(
            self._sink,
            self._schema,
            version="2.6",  # the types of DuckDB's files; its own version 2 is about pages
            data_page_version=f"{options.version}.0",
            compression=_PYARROW_CODECS.get(options.compression, options.compression),
            compression_level=options.compression_level,
            use_dictionary=columns_with_dictionaries(rows),
            store_schema=False,
            store_decimal_as_integer=True,
            write_statistics=columns_with_statistics(self._schema),
            metadata_collector=self._footers,
        )

    @property
    def size(self) -> int:
        position: int = self._sink.tell()
        return position

    def write(self, rows: pa.Table) -> None:
        check_not_null(self.plan.columns, rows)
        arrays = [to_file_form(column, rows.column(i)) for i, column in enumerate(self.plan.columns)]
        if self.plan.row_ids:
            arrays.append(rows.column(len(self.plan.columns)))
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._observed.add(table)
        if self._writer is None:
            self._writer = self._begun(table)
        self._writer.write_table(table, row_group_size=self.group_rows(table))

    def close(self) -> WrittenFile:
        assert self._writer is not None
        start = self.size
        self._writer.close()  # which writes the footer, its size and four letters, and nothing else
        size = self.size
        self._sink.close()
        [footer] = self._footers
        return WrittenFile(
            path=self.path,
            record_count=footer.num_rows,
            size=size,
            footer_size=size - start - _AFTER_FOOTER,
            partition_values=self.values,
            columns=footer_statistics(self.plan.columns, footer, self._observed),
        )

    def abandon(self) -> None:
        # What made the write fail may make closing fail too; the file goes all the same.
        with suppress(pa.ArrowException, OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(pa.ArrowException, OSError):
            self._sink.close()
        super().abandon()


def file_sizes(file: pa.NativeFile) -> tuple[int, int]:
    """The size of an open Parquet file, and that of its footer: the number before its last four bytes."""
    size: int = file.size()
    return size, int.from_bytes(file.read_at(4, size - _AFTER_FOOTER), "little")
