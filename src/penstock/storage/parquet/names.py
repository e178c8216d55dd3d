"""Names files: version 7 UUIDs, of which those of one write begin alike."""

from __future__ import annotations

import secrets
import time
from uuid import UUID

DUCKLAKE_PREFIX = "ducklake-"
# The time in milliseconds and 18 random bits; 56 are left to tell the files of a write apart.
_SHARED_CHARACTERS = 21
_OWN_BITS = 56


def uuid7() -> UUID:
    """A UUID that sorts by the time it was made (RFC 9562, version 7)."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


def new_write_id() -> str:
    """What the UUIDs of all files of a new write begin with."""
    return str(uuid7())[:_SHARED_CHARACTERS]


def new_file_name(write_id: str, suffix: str = "", extension: str = "parquet", *, prefix: str = DUCKLAKE_PREFIX) -> str:
    """A name that no other file has."""
    digits = write_id.replace("-", "") + f"{secrets.randbits(_OWN_BITS):014x}"
    return f"{prefix}{UUID(digits)}{suffix}.{extension}"


def is_of_write(path: str, write_id: str) -> bool:
    """Whether a file is one that a write made."""
    return write_id in path.rpartition("/")[2]
