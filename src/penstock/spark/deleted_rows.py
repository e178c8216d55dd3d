"""Tells Spark's reader which rows of a file are deleted: see DeletedPositions.java, which reads it on executors."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock.spark.file_records import file_uri, known_size
from penstock.storage.deletion_vectors import encode_deletion_vector

Format = Literal["parquet", "puffin"]


@dataclass(frozen=True)
class PositionFile:
    """A file with positions of deleted rows. Of a Parquet file those count that snapshots up to `last` deleted."""

    format: Format
    path: str
    size: int
    last: int


def deletes_text(files: Iterable[PositionFile], positions: Sequence[int]) -> str:
    """All that says which rows of one data file are deleted, in lines of words: files, and positions themselves."""
    lines = [f"{file.format} {file_uri(file.path)} {known_size(file.path, file.size)} {file.last}" for file in files]
    if positions or not lines:
        lines.append(f"inlined {b64encode(encode_deletion_vector(np.array(positions, np.int64))).decode()}")
    return "\n".join(lines)
