"""Defines a table's partitioning: which column goes through which transform, in which place of the key."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.partitioning.transforms import Transform


@dataclass(frozen=True)
class PartitionField:
    """One place of a partition key."""

    key_index: int
    column_id: int
    transform: Transform


@dataclass(frozen=True)
class PartitionSpec:
    """One partitioning that a table has or had; each data file names the one it was written under."""

    partition_id: int
    fields: tuple[PartitionField, ...]
