"""Defines how the Parquet files of a table are written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileOptions:
    """Options of data files. `compression_level` is None where the codec takes none."""

    compression: str = "snappy"
    compression_level: int | None = None
    version: int = 1
    row_group_size: int = 122_880  # rows
    row_group_bytes: int | None = None
    target_file_size: int = 512_000_000
    hive_file_pattern: bool = True
