"""Reads and writes Puffin deletion vectors as DuckLake has them: one bare `deletion-vector-v1` blob a file."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from penstock.errors import PenstockError
from penstock.storage.filesystems import open_file

_MAGIC = b"\xd1\xd3\x39\x64"
_LENGTH, _CHECKSUM = struct.Struct(">I"), struct.Struct(">I")


def read_deletion_vector(path: str) -> npt.NDArray[np.int64]:
    """The deleted positions in a file, in order."""
    with open_file(path) as file:
        return decode_deletion_vector(file.read(), path)


def encode_deletion_vector(positions: npt.NDArray[np.int64]) -> bytes:
    """The bytes of a file with these deleted positions."""
    bitmap: bytes = BitMap64(positions.tolist()).serialize()
    body = _MAGIC + bitmap
    return _LENGTH.pack(len(body)) + body + _CHECKSUM.pack(zlib.crc32(body))


def decode_deletion_vector(blob: bytes, name: str) -> npt.NDArray[np.int64]:
    """The deleted positions that the bytes of a file hold, in order.

    A file is the big-endian length of magic and bitmap, the magic, a 64-bit roaring bitmap, a CRC of magic and bitmap.
    """
    if len(blob) < 12 or blob[4:8] != _MAGIC:
        raise PenstockError(f"{name} is not a deletion vector: it does not begin as one")
    (length,) = _LENGTH.unpack_from(blob)
    body = blob[4 : 4 + length]
    if len(blob) < 8 + length or zlib.crc32(body) != _CHECKSUM.unpack_from(blob, 4 + length)[0]:
        raise PenstockError(f"{name} is damaged: its checksum does not match its contents")
    positions = BitMap64.deserialize(body[len(_MAGIC) :])
    return np.fromiter(positions, np.int64, len(positions))
