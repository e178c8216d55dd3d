"""Delta tables whose files hold their partition columns (`materializePartitionColumns`). Needs `penstock[delta]`."""

from penstock.delta.format.features import FEATURES
from penstock.delta.reading.partition_column_checks import Finding, Report
from penstock.delta.table import DeltaTable, create
from penstock.delta.table import open_table as open

__all__ = ["FEATURES", "DeltaTable", "Finding", "Report", "create", "open"]
