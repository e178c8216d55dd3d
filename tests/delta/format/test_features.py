"""What is understood, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.delta.format.actions import AddFile, Metadata, Protocol
from penstock.delta.format.features import (
    MATERIALIZE_PARTITION_COLUMNS,
    check_may_remove,
    check_readable,
    check_writable,
    materializes,
    with_materialized,
    without_materialized,
)
from penstock.errors import UnsupportedError

_IMPLIED_BY_4 = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"]


def _metadata(column: dict[str, Any] | None = None, **properties: str) -> Metadata:
    inner = {"name": "x", "type": "long", "nullable": True, "metadata": column or {}}
    nested = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
    schema = {"type": "struct", "fields": [{"name": "s", "type": nested, "nullable": True, "metadata": {}}]}
    return Metadata("1", json.dumps(schema), configuration={f"delta.{k}": v for k, v in properties.items()})


def _features(*names: str) -> Protocol:
    return Protocol(1, 7, None, names)


def test_unknown_reader_features_are_named() -> None:
    check_readable(Protocol(3, 7, ("columnMapping", "deletionVectors", "v2Checkpoint"), ()), "t")
    check_readable(Protocol(2, 7, None, ("rareWriterFeature",)), "t")
    with pytest.raises(UnsupportedError, match=r"t cannot be read.* variantType, catalogManaged; upgrade"):
        check_readable(Protocol(3, 7, ("variantType", "columnMapping", "catalogManaged"), ()), "t")
    with pytest.raises(UnsupportedError, match="reader version 4"):
        check_readable(Protocol(4, 7), "t")


@pytest.mark.parametrize(
    ("protocol", "metadata", "named"),
    [
        (_features("clustering", "appendOnly"), _metadata(), "clustering"),
        (Protocol(1, 8), _metadata(), "writer version 8"),
        (Protocol(3, 7, ("variantType",), ()), _metadata(), "variantType"),
        (Protocol(1, 2), _metadata({"delta.invariants": "{}"}), "the invariant of column s.x"),
        (Protocol(1, 3), Metadata("1", "{}", configuration={"delta.constraints.p": "x > 0"}), "the constraint p"),
        (Protocol(1, 4), _metadata({"delta.generationExpression": "1"}), "the generation expression of column s.x"),
        (Protocol(2, 6), _metadata({"delta.identity.start": 1}), "the identity of column s.x"),
        (_features("allowColumnDefaults"), _metadata({"CURRENT_DEFAULT": "1"}), "the default of column s.x"),
        (Protocol(1, 4), _metadata(enableChangeDataFeed="true"), "delta.enableChangeDataFeed=true"),
        (_features("rowTracking"), _metadata(), "rowTracking"),
        (_features("icebergCompatV2"), _metadata(enableIcebergCompatV2="true"), "delta.enableIcebergCompatV2=true"),
    ],
)
def test_what_makes_a_table_read_only(protocol: Protocol, metadata: Metadata, named: str) -> None:
    with pytest.raises(UnsupportedError, match=named):
        check_writable(protocol, metadata, "t")


def test_features_that_are_not_active_do_no_harm() -> None:
    check_writable(Protocol(2, 6), _metadata(enableChangeDataFeed="false"), "t")
    check_writable(Protocol(1, 2), _metadata({"delta.generationExpression": "1"}), "t")
    check_writable(_features("rowTracking"), _metadata(rowTrackingSuspended="true"), "t")
    check_writable(_features(MATERIALIZE_PARTITION_COLUMNS, "inCommitTimestamp", "icebergCompatV1"), _metadata(), "t")


def test_append_only() -> None:
    metadata, file = _metadata(appendOnly="true"), AddFile("f", {}, 1, 2, True)
    with pytest.raises(UnsupportedError, match=r"delta\.appendOnly"):
        check_may_remove(Protocol(1, 2), metadata, [file.removed(0)], "t")
    check_may_remove(Protocol(1, 2), metadata, [file, file.removed(0, data_change=False)], "t")
    check_may_remove(_features(MATERIALIZE_PARTITION_COLUMNS), metadata, [file.removed(0)], "t")


@pytest.mark.parametrize(
    ("protocol", "listed"),
    [
        (Protocol(1, 1), []),
        (Protocol(1, 2), ["appendOnly", "invariants"]),
        (Protocol(1, 3), ["appendOnly", "invariants", "checkConstraints"]),
        (Protocol(1, 4), _IMPLIED_BY_4),
        (Protocol(1, 5), _IMPLIED_BY_4),
        (Protocol(2, 1), ["columnMapping"]),
        (
            Protocol(2, 6),
            [*_IMPLIED_BY_4, "columnMapping", "identityColumns"],
        ),
        (Protocol(3, 7, ("timestampNtz",), ("timestampNtz",)), ["timestampNtz"]),
    ],
)
def test_the_upgrade_lists_what_was_implied(protocol: Protocol, listed: list[str]) -> None:
    upgraded = with_materialized(protocol)
    assert upgraded == Protocol(
        protocol.min_reader, 7, protocol.reader_features, (*listed, MATERIALIZE_PARTITION_COLUMNS)
    )
    assert materializes(upgraded)
    assert not materializes(protocol)
    assert with_materialized(upgraded) == upgraded
    dropped = without_materialized(upgraded)
    assert dropped == Protocol(protocol.min_reader, 7, protocol.reader_features, tuple(listed))
    assert without_materialized(protocol) == protocol
