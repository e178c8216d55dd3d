"""Delta tables whose files hold their partition columns (`materializePartitionColumns`). Needs `penstock[delta]`."""

from penstock.delta.table import DeltaTable, create
from penstock.delta.table import open_table as open
from penstock.delta.writing.verification import Finding, Report

__all__ = ["DeltaTable", "Finding", "Report", "create", "open"]
