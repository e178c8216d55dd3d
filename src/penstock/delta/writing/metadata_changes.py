"""Commits changes of a table's protocol and properties, and none of its rows."""

from __future__ import annotations

import json
from dataclasses import replace

from penstock.delta.format.features import (
    MATERIALIZE_PARTITION_COLUMNS,
    materializes,
    with_materialized,
    without_materialized,
)
from penstock.delta.format.properties import MATERIALIZE_ENABLED
from penstock.delta.log.commits import commit, writable_snapshot
from penstock.delta.log.links import with_link
from penstock.delta.log.table_log import TableLog


def enable_materialized_partition_columns(log: TableLog) -> int:
    """Adds `materializePartitionColumns` to the protocol, and returns the version; the newest where it is there."""
    base = writable_snapshot(log)
    if materializes(base.protocol):
        return base.version
    metadata = replace(base.metadata, configuration={**base.metadata.configuration, MATERIALIZE_ENABLED: "true"})
    parameters = {"properties": json.dumps({MATERIALIZE_ENABLED: "true"})}
    return commit(log, base, [with_materialized(base.protocol), metadata], "SET TBLPROPERTIES", parameters).version


def drop_materialized_partition_columns(log: TableLog) -> int:
    """Takes `materializePartitionColumns` out of the protocol, and returns the version; the newest where it is not."""
    base = writable_snapshot(log)
    if not materializes(base.protocol):
        return base.version
    configuration = {key: value for key, value in base.metadata.configuration.items() if key != MATERIALIZE_ENABLED}
    metadata = replace(base.metadata, configuration=configuration)
    parameters = {"featureName": MATERIALIZE_PARTITION_COLUMNS}
    return commit(log, base, [without_materialized(base.protocol), metadata], "DROP FEATURE", parameters).version


def note_link(log: TableLog, into: str) -> None:
    """Notes in the log that a table elsewhere shows files of this one: `vacuum` then asks before it deletes any."""
    base = writable_snapshot(log)
    metadata = with_link(base, into)
    if metadata != base.metadata:
        commit(log, base, [metadata], "LINK", {"into": into})
