from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from duckdb_extensions import import_extension
from pyroaring import BitMap64

from penstock.delta.format.deletion_vectors import _z85_decode, deleted_positions, unique_id
from penstock.errors import NotFoundError, PenstockError, UnsupportedError

MAGIC = 1681511377
VECTOR = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")  # the protocol's own example
VECTOR_NAME = "^-aqEH.-t@S}K{vb[*k^"
ROWS = {
    "empty": [],
    "first": [0],
    "sparse": [3, 4, 7, 11, 18, 29],
    "dense": list(range(70_000)),
    "beyond 32 bits": [5, 2**32 - 1, 2**32, 2**32 + 7, 2**40, 2**62],
}


def _bytes(rows: Iterable[int], magic: int = MAGIC) -> bytes:
    bitmap = BitMap64(rows)
    bitmap.run_optimize()
    return struct.pack("<I", magic) + bitmap.serialize()


def _framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def _z85(data: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    data += b"\0" * (-len(data) % 4)
    numbers = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(digits[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("HelloWorld", bytes.fromhex("864fd26fb559f75b")),  # rfc.zeromq.org/spec/32
        ("JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6", bytes.fromhex(  # the same, its 32-byte public key
            "8e0bdd697628b91d8f245587ee95c5b04d48963f79259877b49cd9063aead3b7")),
        ("%nSc0", b"\xff\xff\xff\xff"),
        (VECTOR_NAME, VECTOR.bytes),
    ],
)  # fmt: skip
def test_published_z85(text: str, data: bytes) -> None:
    assert _z85_decode(text) == data
    assert _z85(data) == text


@pytest.mark.parametrize("text", ["Hello~orld", "Hello_orld", "HelloWorl", "%nSc1", "#####", "Hellö"])
def test_what_is_not_z85(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        _z85_decode(text)


def test_unique_ids() -> None:
    assert unique_id("u", "ab^-aqEH.-t@S}K{vb[*k^", 4) == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert unique_id("p", "s3://t/v.bin", 0) == "ps3://t/v.bin@0"
    assert unique_id("i", "wi5b=", None) == "iwi5b="


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_every_storage_type(rows: list[int], tmp_path: Path) -> None:
    table = str(tmp_path / "a table")
    data = _bytes(rows)
    (tmp_path / "a table" / "ab").mkdir(parents=True)
    before = _framed(_bytes([1, 2]))  # a file may hold many vectors
    file = tmp_path / "a table" / "ab" / f"deletion_vector_{VECTOR}.bin"
    file.write_bytes(b"\1" + before + _framed(data) + before)
    offset = 1 + len(before)

    vectors = [
        ("u", "ab" + VECTOR_NAME, offset),
        ("p", quote(str(file)), offset),
        ("p", "file:" + quote(str(file)), offset),
        ("p", "file://" + quote(str(file)), offset),
        ("i", _z85(data), None),
    ]
    for storage_type, path, at in vectors:
        found = deleted_positions(storage_type, path, at, len(data), len(rows), table)
        assert found.dtype == np.int64
        assert found.tolist() == rows


def test_a_vector_without_offset_is_the_first(tmp_path: Path) -> None:
    data = _bytes([7])
    (tmp_path / f"deletion_vector_{VECTOR}.bin").write_bytes(b"\1" + _framed(data))
    assert deleted_positions("u", VECTOR_NAME, None, len(data), 1, f"{tmp_path}/").tolist() == [7]


def test_published_inline_vectors() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # in the tests of delta-kernel-rs
    assert deleted_positions("i", text, None, 44, 6, "s3://mytable").tolist() == [3, 4, 7, 11, 18, 29]
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"  # in the protocol, but not in the format it demands
    with pytest.raises(PenstockError, match="is not a deletion vector"):
        deleted_positions("i", text, None, 40, 6, "s3://mytable")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"\1" + _framed(_bytes([1, 2]))[:-1] + b"?", PenstockError, "checksum"),
        (b"\1" + _framed(_bytes([1, 2], MAGIC - 1)), PenstockError, "is not a deletion vector"),
        (b"\1" + _framed(_bytes([1, 2]))[:-1], PenstockError, "ends inside it"),
        (b"\1" + _framed(_bytes([1, 2]) + b"more"), PenstockError, "bytes where the log says"),
        (b"\1" + _framed(_bytes([1, 2, 3])[: len(_bytes([1, 2]))]), PenstockError, "damaged"),
        (b"\2" + _framed(_bytes([1, 2])), UnsupportedError, "version 02"),
        (b"", UnsupportedError, "version none"),
        (None, NotFoundError, "there is no file"),
    ],
)
def test_a_damaged_file(content: bytes | None, error: type[Exception], message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / f"deletion_vector_{VECTOR}.bin").write_bytes(content)
    with pytest.raises(error, match=message) as raised:
        deleted_positions("u", VECTOR_NAME, 1, len(_bytes([1, 2])), 2, str(tmp_path))
    assert f"u{VECTOR_NAME}@1 of Delta table {tmp_path}" in str(raised.value)


@pytest.mark.parametrize(
    ("storage_type", "text", "size", "cardinality", "message"),
    [
        ("i", _z85(_bytes([1, 2])), len(_bytes([1, 2])), 3, "holds 2 rows where the log says 3"),
        ("i", _z85(_bytes([1, 2]))[:-5], len(_bytes([1, 2])), 2, "bytes where the log says"),
        ("i", _z85(_bytes([1, 2])), 20, 2, "damaged"),
        ("i", _z85(_bytes([1, 2])), 4, 2, "damaged|not a deletion vector"),
        ("i", _z85(_bytes([2**63])), len(_bytes([2**63])), 1, "damaged"),
        ("i", base64.b85encode(b"\xff" * 8).decode(), 8, 1, "is not Z85"),
        ("u", "short", 8, 1, "not the name of a file"),
        ("x", "what", 8, 1, "storage type 'x' is unknown"),
    ],
)
def test_a_damaged_entry_of_the_log(storage_type: str, text: str, size: int, cardinality: int, message: str) -> None:
    with pytest.raises(PenstockError, match=message) as raised:
        deleted_positions(storage_type, text, None, size, cardinality, "s3://lake/t")
    assert f"{storage_type}{text} of Delta table s3://lake/t" in str(raised.value)


@pytest.mark.parametrize("storage_type", ["u", "i", "p"])
def test_what_is_kept_is_what_other_readers_show(storage_type: str, tmp_path: Path) -> None:
    rows, deleted = 5_000, [0, *range(100, 4_000, 7), 4_999]
    data = _bytes(deleted)
    file = tmp_path / f"deletion_vector_{VECTOR}.bin"
    file.write_bytes(b"\1" + _framed(data))
    where: dict[str, object] = {
        "u": {"pathOrInlineDv": VECTOR_NAME, "offset": 1},
        "i": {"pathOrInlineDv": _z85(data)},
        "p": {"pathOrInlineDv": f"file://{file}", "offset": 1},
    }[storage_type]
    vector = {"storageType": storage_type, **where, "sizeInBytes": len(data), "cardinality": len(deleted)}
    _write_table(tmp_path, pa.table({"id": pa.array(range(rows), pa.int64())}), vector)

    offset = vector.get("offset")
    gone = deleted_positions(storage_type, vector["pathOrInlineDv"], offset, len(data), len(deleted), str(tmp_path))
    kept = np.delete(np.arange(rows), gone).tolist()
    import_extension("delta")
    with duckdb.connect() as connection:
        connection.load_extension("delta")
        shown = connection.execute("SELECT id FROM delta_scan(?) ORDER BY id", [str(tmp_path)]).fetchall()
    assert [row[0] for row in shown] == kept
    answer = QueryBuilder().register("t", DeltaTable(str(tmp_path))).execute("SELECT id FROM t ORDER BY id").read_all()
    assert pa.table(answer)["id"].to_pylist() == kept


def _write_table(table: Path, rows: pa.Table, vector: dict[str, object]) -> None:
    pq.write_table(rows, table / "part-0.parquet")
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                      "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}},
        {"metaData": {"id": str(VECTOR), "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                      "schemaString": json.dumps({"type": "struct", "fields": [field]}),
                      "configuration": {"delta.enableDeletionVectors": "true"}, "createdTime": 0}},
        {"add": {"path": "part-0.parquet", "partitionValues": {}, "modificationTime": 0, "dataChange": True,
                 "size": (table / "part-0.parquet").stat().st_size,
                 "stats": json.dumps({"numRecords": rows.num_rows}), "deletionVector": vector}},
    ]  # fmt: skip
    (table / "_delta_log").mkdir()
    text = "\n".join(json.dumps(action) for action in actions)
    (table / "_delta_log" / f"{0:020}.json").write_text(text + "\n")
