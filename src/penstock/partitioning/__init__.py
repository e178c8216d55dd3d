"""How rows become partitions: transforms, specifications, and what a predicate says about a partition's value."""

from penstock.partitioning.naming import directory, directory_names
from penstock.partitioning.parsing import parse_partition_field, partition_fields
from penstock.partitioning.specs import PartitionField, PartitionSpec
from penstock.partitioning.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Unknown,
    Year,
    parse_transform,
)

__all__ = [
    "Bucket",
    "Day",
    "Hour",
    "Identity",
    "Month",
    "PartitionField",
    "PartitionSpec",
    "Transform",
    "Unknown",
    "Year",
    "directory",
    "directory_names",
    "parse_partition_field",
    "parse_transform",
    "partition_fields",
]
