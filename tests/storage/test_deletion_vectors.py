from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from penstock.errors import PenstockError
from penstock.storage.deletion_vectors import decode_deletion_vector, read_deletion_vector

MAGIC = b"\xd1\xd3\x39\x64"


def _blob(positions: set[int]) -> bytes:
    body = MAGIC + BitMap64(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@given(st.sets(st.integers(0, 2**40), max_size=50))
def test_round_trip(positions: set[int]) -> None:
    assert decode_deletion_vector(_blob(positions), "x").tolist() == sorted(positions)


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    blob = bytearray(_blob({1, 2, 3}))
    blob[-6] ^= 1
    damaged, other = tmp_path / "damaged.puffin", tmp_path / "other.puffin"
    damaged.write_bytes(blob)
    other.write_bytes(b"PFA1 something else")
    with pytest.raises(PenstockError, match=r"damaged\.puffin is damaged"):
        read_deletion_vector(str(damaged))
    with pytest.raises(PenstockError, match=r"other\.puffin is not a deletion vector"):
        read_deletion_vector(str(other))
