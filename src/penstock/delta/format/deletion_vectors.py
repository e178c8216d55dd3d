"""Reads Delta's deletion vectors, which are in files of the table or inside its log."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from string import ascii_lowercase, ascii_uppercase, digits
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import numpy.typing as npt

from penstock.errors import NotFoundError, PenstockError, UnsupportedError
from penstock.storage.deletion_vectors import decode_deletion_vector
from penstock.storage.filesystems import open_file
from penstock.storage.paths import folder

_VERSION = b"\x01"
_NUMBER = struct.Struct(">I")
_FRAME = 2 * _NUMBER.size
_ENCODED_UUID = 20
_ONE_SLASH = re.compile(r"file:/(?!/)")

_Z85 = digits + ascii_lowercase + ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
_B85 = digits + ascii_uppercase + ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
_Z85_TO_B85 = str.maketrans(_Z85, _B85)


def deleted_positions(
    storage_type: str, path_or_inline: str, offset: int | None, size: int, cardinality: int, table: str
) -> npt.NDArray[np.int64]:
    """Reads the positions of a data file's deleted rows, counted from 0 and in order; `table` is the table's path.

    Every damage that the format lets one see is an error, and so is a vector that holds more or fewer rows than
    `cardinality`: rows are never left out or shown by guess.
    """
    name = f"{unique_id(storage_type, path_or_inline, offset)} of Delta table {table}"
    if storage_type == "i":
        record = _inline(path_or_inline, size, name)
    else:
        record = _stored(_path(storage_type, path_or_inline, table, name), offset, size, name)
    try:
        found = decode_deletion_vector(record, name)
    except (ValueError, IndexError, OverflowError) as error:
        raise PenstockError(f"{name} is damaged: {error}") from error
    if len(found) != cardinality:
        raise PenstockError(f"{name} is damaged: it holds {len(found)} rows where the log says {cardinality}")
    return found


def unique_id(storage_type: str, path_or_inline: str, offset: int | None) -> str:
    """Returns what tells two vectors of one data file apart, in the form that Delta's log replay compares."""
    return f"{storage_type}{path_or_inline}" + ("" if offset is None else f"@{offset}")


def _inline(text: str, size: int, name: str) -> bytes:
    """Decodes a vector inside the log, which has no frame and is filled up to a multiple of four bytes."""
    try:
        data = _z85_decode(text)
    except ValueError as error:
        raise PenstockError(f"{name} is damaged: {error}") from error
    if len(data) < size:
        raise PenstockError(f"{name} is damaged: it has {len(data)} bytes where the log says {size}")
    return _NUMBER.pack(size) + data[:size] + _NUMBER.pack(zlib.crc32(data[:size]))


def _stored(path: str, offset: int | None, size: int, name: str) -> bytes:
    """Reads a vector from a file, with its frame, which is a Puffin deletion vector's: size, bytes, checksum."""
    # The protocol says 0 for an offset that is absent, but there stands the version: the first vector follows it.
    start = len(_VERSION) if offset is None else offset
    try:
        with open_file(path) as file:
            version, record = file.read_at(1, 0), file.read_at(size + _FRAME, start)
    except FileNotFoundError as error:
        raise NotFoundError(f"{name}: there is no file {path}; restore it, or read an older version") from error
    if version != _VERSION:
        raise UnsupportedError(f"{name}: {path} has version {version.hex() or 'none'}; only version 01 is understood")
    if len(record) < size + _FRAME:
        raise PenstockError(f"{name} is damaged: {path} ends inside it")
    (stored,) = _NUMBER.unpack_from(record)
    if stored != size:
        raise PenstockError(f"{name} is damaged: {path} gives it {stored} bytes where the log says {size}")
    return bytes(record)


def _path(storage_type: str, path: str, table: str, name: str) -> str:
    match storage_type:
        case "p":
            return _ONE_SLASH.sub("/", unquote(path))
        case "u":
            prefix, encoded = path[:-_ENCODED_UUID], path[-_ENCODED_UUID:]
            try:
                uuid = UUID(bytes=_z85_decode(encoded))
            except ValueError as error:
                raise PenstockError(f"{name} is damaged: {encoded} is not the name of a file") from error
            return folder(table) + (folder(prefix) if prefix else "") + f"deletion_vector_{uuid}.bin"
        case _:
            raise UnsupportedError(f"{name}: storage type {storage_type!r} is unknown; 'u', 'i' and 'p' are understood")


def _z85_decode(text: str) -> bytes:
    """Decodes Base85 with ZeroMQ's alphabet (`base64.z85decode` from Python 3.13 on)."""
    if len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"{text} is not Z85")
    return base64.b85decode(text.translate(_Z85_TO_B85))
