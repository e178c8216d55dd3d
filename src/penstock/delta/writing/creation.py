"""Creates Delta tables: the first commit of a log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.delta.format.actions import Metadata
from penstock.delta.format.features import check_writable
from penstock.delta.format.properties import choose_protocol
from penstock.delta.format.schema import check_column_types, new_schema, schema_string
from penstock.delta.format.times import now_milliseconds
from penstock.delta.log.commits import commit
from penstock.delta.log.table_log import TableLog
from penstock.errors import InvalidError
from penstock.spark.schemas import SchemaLike


def create_table(
    spark: SparkSession,
    log: TableLog,
    schema: SchemaLike,
    partitioned_by: Sequence[str],
    properties: Mapping[str, str],
    *,
    materialize_partition_columns: bool,
) -> None:
    """Commits the protocol and the metadata of a new table; nothing is left where the input is refused."""
    own = new_schema(schema, partitioned_by)
    check_column_types(spark, own)
    if log.exists():
        raise InvalidError(f"there is a Delta table at {log.path} already; open it, or choose another path")
    chosen = choose_protocol(own.struct, properties, materialize_partition_columns)
    metadata = Metadata(
        str(uuid4()),
        schema_string(own.struct),
        partition_columns=tuple(partitioned_by),
        configuration=chosen.configuration,
        created_time=now_milliseconds(),
    )
    check_writable(chosen.protocol, metadata, log.path)
    parameters = {"partitionBy": json.dumps(list(partitioned_by))}
    commit(log, None, [chosen.protocol, metadata], "CREATE TABLE", parameters)
