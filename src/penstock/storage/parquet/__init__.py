"""Writes the Parquet data files of a table from Arrow batches, inside a worker, with their statistics."""

from penstock.storage.parquet.options import FileOptions
from penstock.storage.parquet.plan import SortColumn, WritePlan, check_writable
from penstock.storage.parquet.writer import MEMORY_LIMIT, delete_written, write_files

__all__ = ["MEMORY_LIMIT", "FileOptions", "SortColumn", "WritePlan", "check_writable", "delete_written", "write_files"]
