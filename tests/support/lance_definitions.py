"""A namespace's schema, and definitions and leaves of it, for tests that need no files."""

from __future__ import annotations

import json
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.lance.format.definition import (
    ENABLED,
    PARTITION_COLUMNS,
    NamespaceDefinition,
    new_definition,
    read_definition,
)
from penstock.lance.format.definition import SCHEMA as SCHEMA_PROPERTY
from penstock.lance.format.field_ids import field_id, with_field_ids
from penstock.lance.format.leaves import Leaf, leaf_from_entry
from penstock.lance.format.manifest import ManifestEntry
from penstock.lance.format.partition_fields import PartitionField
from penstock.lance.format.schema_conversion import namespace_columns
from penstock.lance.format.schema_json import schema_to_json

NO_SPARK = cast(SparkSession, None)  # Arrow's schemas need none
SCHEMA = with_field_ids(
    pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("country", pa.string()),
            ("point", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
            ("city", pa.string()),
            ("ts", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(38, 10)),
            ("a/b = $%", pa.string()),
        ],
        metadata={"owner": "é"},
    )
)
COLUMNS = namespace_columns(NO_SPARK, SCHEMA)
IDS = {item.name: field_id(item) for item in SCHEMA}


def defined(*partitioned_by: str) -> NamespaceDefinition:
    """The definition of a new namespace with this schema."""
    return new_definition(SCHEMA, COLUMNS, partitioned_by)


def reread(*described: Any, schema: pa.Schema = SCHEMA, **changes: str) -> NamespaceDefinition:
    """The definition of properties in which the partition columns are so described."""
    properties = {ENABLED: "true", SCHEMA_PROPERTY: schema_to_json(schema), PARTITION_COLUMNS: json.dumps(described)}
    return read_definition("events", {**properties, **changes})


def only_field(*described: Any, schema: pa.Schema = SCHEMA) -> PartitionField:
    """The partition field that is so described."""
    [found] = reread(*described, schema=schema).fields
    return found


def partition_columns(definition: NamespaceDefinition) -> list[dict[str, Any]]:
    """The partition columns as the properties describe them."""
    return list(json.loads(definition.properties()["lance.partitioning.partition-columns"]))


def named_leaf(definition: NamespaceDefinition, *levels: str) -> Leaf:
    """A leaf of another writer, which has its name alone."""
    return leaf_from_entry(ManifestEntry("$".join(["events", *levels]), "table", "place"), "events", definition.fields)
