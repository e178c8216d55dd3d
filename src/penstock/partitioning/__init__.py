"""Turns rows into partitions: transforms, specifications, and what a predicate says about a partition's value."""

from penstock.partitioning.buckets import DUCKLAKE, Hashing
from penstock.partitioning.hashes import MURMUR3
from penstock.partitioning.naming import directory, directory_names
from penstock.partitioning.parsing import parse_partition_field, parse_transform, partition_fields
from penstock.partitioning.parts import Calendar, Day, Hour, Month, Year
from penstock.partitioning.specs import PartitionField, PartitionSpec
from penstock.partitioning.transforms import Bucket, Hash, Identity, Transform, Truncate, Unknown

__all__ = [
    "DUCKLAKE",
    "MURMUR3",
    "Bucket",
    "Calendar",
    "Day",
    "Hash",
    "Hashing",
    "Hour",
    "Identity",
    "Month",
    "PartitionField",
    "PartitionSpec",
    "Transform",
    "Truncate",
    "Unknown",
    "Year",
    "directory",
    "directory_names",
    "parse_partition_field",
    "parse_transform",
    "partition_fields",
]
