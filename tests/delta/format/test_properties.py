"""Properties of new tables: features that they need are listed, and what is not kept is refused by name."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

import penstock.delta
from penstock.delta.format.actions import Metadata, Protocol
from penstock.delta.format.properties import checkpoint_interval, choose_protocol, indexed_columns, retention
from penstock.errors import InvalidError, PenstockError, UnsupportedError
from support.delta_judges import by_deltalake, by_duckdb, in_order

_PLAIN = T.StructType([T.StructField("id", T.LongType())])
_LOCAL = T.StructType([T.StructField("ts", T.ArrayType(T.TimestampNTZType()))])
_IMPLIED = ("appendOnly", "invariants")
_MATERIALIZED = "materializePartitionColumns"


@pytest.mark.parametrize(
    ("properties", "protocol"),
    [
        ({}, Protocol(1, 2)),
        ({"delta.appendOnly": "true", "mine": "anything"}, Protocol(1, 2)),
        ({"delta.enableChangeDataFeed": "false", "delta.columnMapping.mode": "none"}, Protocol(1, 2)),
        ({"delta.logRetentionDuration": "interval 1 days", "delta.checkpointPolicy": "classic"}, Protocol(1, 2)),
        ({"delta.enableInCommitTimestamps": "true"}, Protocol(1, 7, None, (*_IMPLIED, "inCommitTimestamp"))),
        (
            {"delta.enableDeletionVectors": "TRUE"},
            Protocol(3, 7, ("deletionVectors",), (*_IMPLIED, "deletionVectors")),
        ),
        (
            {"delta.feature.v2Checkpoint": "supported", "delta.feature.domainMetadata": "supported"},
            Protocol(3, 7, ("v2Checkpoint",), (*_IMPLIED, "v2Checkpoint", "domainMetadata")),
        ),
        (
            {
                "delta.autoOptimize.autoCompact": "auto",
                "delta.autoOptimize.optimizeWrite": "true",
                "delta.targetFileSize": "128mb",
                "delta.checkpoint.writeStatsAsJson": "true",
                "delta.parquet.compression.codec": "ZSTD",
                "delta.isolationLevel": "WriteSerializable",
            },
            Protocol(1, 2),
        ),
        (
            {
                "delta.isolationLevel": "Serializable",
                "delta.targetFileSize": "104857600",
                "delta.deletedFileRetentionDuration": "INTERVAL 1 week 12 hours",
                "delta.logRetentionDuration": "30 days",
            },
            Protocol(1, 2),
        ),
        ({f"delta.feature.{_MATERIALIZED}": "supported"}, Protocol(1, 7, None, (*_IMPLIED, _MATERIALIZED))),
    ],
)
def test_features_are_listed(properties: dict[str, str], protocol: Protocol) -> None:
    found = choose_protocol(_PLAIN, properties, False)
    assert found.protocol == protocol
    kept = {name: value for name, value in properties.items() if not name.startswith("delta.feature.")}
    listed = _MATERIALIZED in (protocol.writer_features or ())
    assert found.configuration == (
        {**kept, "delta.enableMaterializePartitionColumnsFeature": "true"} if listed else kept
    )


def test_features_of_columns_and_of_properties() -> None:
    found = choose_protocol(_LOCAL, {"delta.enableDeletionVectors": "true"}, True)
    readers = ("timestampNtz", "deletionVectors")
    assert found.protocol == Protocol(3, 7, readers, (*_IMPLIED, *readers, _MATERIALIZED))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("delta.constraints.positive", "id > 0", UnsupportedError),
        ("delta.columnMapping.mode", "name", UnsupportedError),
        ("delta.enableChangeDataFeed", "true", UnsupportedError),
        ("delta.enableRowTracking", "true", UnsupportedError),
        ("delta.checkpointPolicy", "v2", UnsupportedError),
        ("delta.enableIcebergCompatV2", "true", UnsupportedError),
        ("delta.enableTypeWidening", "true", UnsupportedError),
        ("delta.minWriterVersion", "7", UnsupportedError),
        ("delta.minReaderVersion", "2", UnsupportedError),
        ("delta.minReaderVersion", "two", InvalidError),
        ("delta.unheardOf", "1", UnsupportedError),
        ("delta.unheardOf", "false", UnsupportedError),
        ("delta.constraints.never", "false", UnsupportedError),
        ("delta.columnMapping.mode", "false", UnsupportedError),
        ("delta.checkpointPolicy", "false", UnsupportedError),
        ("delta.rowTracking.materializedRowIdColumnName", "false", UnsupportedError),
        ("delta.isolationLevel", "none", InvalidError),
        ("delta.targetFileSize", "big", InvalidError),
        ("delta.parquet.compression.codec", "zip", InvalidError),
        ("delta.autoOptimize.autoCompact", "1", InvalidError),
        ("delta.deletedFileRetentionDuration", "garbage", InvalidError),
        ("delta.deletedFileRetentionDuration", "interval 1 month", InvalidError),
        ("delta.logRetentionDuration", "7", InvalidError),
        ("delta.feature.rowTracking", "supported", UnsupportedError),
        ("delta.feature.columnMapping", "supported", UnsupportedError),
        ("delta.feature.catalogManaged", "supported", UnsupportedError),
        ("delta.feature.domainMetadata", "enabled", InvalidError),
        ("delta.appendOnly", "yes", InvalidError),
        ("delta.checkpointInterval", "0", InvalidError),
        ("delta.dataSkippingNumIndexedCols", "few", InvalidError),
        ("mine", 1, InvalidError),
    ],
)
def test_what_is_not_kept_is_refused(name: str, value: Any, error: type[PenstockError]) -> None:
    with pytest.raises(error, match=name.removeprefix("delta.feature.")):
        choose_protocol(_PLAIN, {name: value}, False)


def test_versions_that_the_table_has_anyway() -> None:
    versions = {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}
    found = choose_protocol(_PLAIN, {**versions, "delta.enableDeletionVectors": "true"}, False)
    assert found.protocol == Protocol(3, 7, ("deletionVectors",), (*_IMPLIED, "deletionVectors"))
    assert found.configuration == {"delta.enableDeletionVectors": "true"}
    assert (
        choose_protocol(_PLAIN, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}, False).configuration
        == {}
    )


def test_retentions() -> None:
    def of(text: str) -> timedelta:
        return retention(Metadata("1", "{}", configuration={"delta.deletedFileRetentionDuration": text}))

    assert retention(Metadata("1", "{}")) == of("interval 1 week") == of("168 Hours") == timedelta(days=7)
    assert of("interval 1 day 2 hours 3 milliseconds") == timedelta(days=1, hours=2, milliseconds=3)
    assert of(f"interval {'9' * 20} weeks") == timedelta.max
    with pytest.raises(InvalidError, match=r"delta\.deletedFileRetentionDuration is 'a week'"):
        of("a week")


def test_numbers() -> None:
    def of(**properties: str) -> tuple[int | None, int | None]:
        metadata = Metadata("1", "{}", configuration={f"delta.{name}": value for name, value in properties.items()})
        return indexed_columns(metadata), checkpoint_interval(metadata)

    assert of() == (32, None)
    assert of(dataSkippingNumIndexedCols="0", checkpointInterval="7") == (0, 7)
    assert of(dataSkippingNumIndexedCols="-1", checkpointInterval="-3x") == (None, None)


def test_a_table_keeps_its_properties(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"delta\.constraints\.c"):
        penstock.delta.create(str(tmp_path / "t"), "id INT", properties={"delta.constraints.c": "id > 0"}, spark=spark)
    assert not (tmp_path / "t").exists()
    properties = {
        "delta.checkpointInterval": "2", "delta.dataSkippingNumIndexedCols": "1",
        "delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true",
    }  # fmt: skip
    table = penstock.delta.create(str(tmp_path / "t"), "id INT, more INT", properties=properties, spark=spark)
    log = tmp_path / "t" / "_delta_log"
    for number in (1, 2, 3):
        table.append(spark.createDataFrame([(number, -number)], "id INT, more INT").coalesce(1))
    assert [path.name for path in log.glob("*.checkpoint.parquet")] == [f"{2:020}.checkpoint.parquet"]
    for line in (log / f"{3:020}.json").read_text().splitlines():
        if "add" in json.loads(line):
            told = json.loads(json.loads(line)["add"]["stats"])
            assert (told["minValues"], told["nullCount"]) == ({"id": 3}, {"id": 0})
    assert "inCommitTimestamp" in (log / f"{0:020}.json").read_text()
    expected = in_order([(1, -1), (2, -2), (3, -3)])
    assert in_order(by_deltalake(table.path)) == in_order(by_duckdb(table.path)) == expected
    assert in_order(table.read().where("more <= -2 OR id = 1").collect()) == expected
