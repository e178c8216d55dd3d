"""Actions as lines of JSON."""

from __future__ import annotations

import json

import pytest

from penstock.delta.format.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    from_json,
)

_VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
_VECTOR_JSON = (
    '{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}'
)


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (Protocol(1, 2), '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'),
        (
            Protocol(3, 7, ("timestampNtz",), ("timestampNtz", "appendOnly")),
            '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],'
            '"writerFeatures":["timestampNtz","appendOnly"]}}',
        ),
        (
            Metadata("1", "{}", partition_columns=("a",), configuration={"delta.appendOnly": "true"}, created_time=5),
            '{"metaData":{"id":"1","schemaString":"{}","format":{"provider":"parquet","options":{}},'
            '"partitionColumns":["a"],"configuration":{"delta.appendOnly":"true"},"createdTime":5}}',
        ),
        (
            AddFile("a=%25🚰/f", {"a": None, "b": "x\ny"}, 1, 2, True, '{"numRecords":3}', deletion_vector=_VECTOR),
            '{"add":{"path":"a=%25🚰/f","partitionValues":{"a":null,"b":"x\\ny"},"size":1,"modificationTime":2,'
            f'"dataChange":true,"stats":"{{\\"numRecords\\":3}}","deletionVector":{_VECTOR_JSON}}}}}',
        ),
        (RemoveFile("f", False, 7), '{"remove":{"path":"f","dataChange":false,"deletionTimestamp":7}}'),
        (Txn("q", 0), '{"txn":{"appId":"q","version":0}}'),
        (
            DomainMetadata("delta.x", "{}"),
            '{"domainMetadata":{"domain":"delta.x","configuration":"{}","removed":false}}',
        ),
        (CommitInfo({"operation": "WRITE", "odd": [1, None]}), '{"commitInfo":{"operation":"WRITE","odd":[1,null]}}'),
    ],
)
def test_lines(action: Action, line: str) -> None:
    assert json.loads(action.to_json()) == json.loads(line)
    assert "\n" not in action.to_json()
    assert from_json(line) == action
    assert from_json(action.to_json()) == action


def test_what_is_unknown_is_ignored() -> None:
    assert from_json('{"cdc":{"path":"x"}}') is None
    assert from_json('{"txn":{"appId":"q","version":1,"lastUpdated":null,"newer":{}}}') == Txn("q", 1)
    with pytest.raises(TypeError, match="version"):
        from_json('{"txn":{"appId":"q"}}')


def test_a_file_is_known_by_its_path_and_vector() -> None:
    plain = AddFile("a%20b", {}, 1, 2, True)
    marked = AddFile("a%20b", {}, 1, 2, True, deletion_vector=_VECTOR)
    assert plain.key == ("a b", None)
    assert marked.key == ("a b", "uab^-aqEH.-t@S}K{vb[*k^@4")
    assert marked.removed(9).key == marked.key
    assert marked.removed(9, data_change=False).to_fields()["extendedFileMetadata"] is True
