"""Reads the rows of commits and checkpoints, and the actions that they hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.delta.format.actions import Action, from_object
from penstock.errors import PenstockError
from penstock.storage.filesystems import open_file

CHECKPOINT_FIELDS = [  # the parsed partition values and statistics repeat what their texts say
    *("protocol", "metaData", "txn", "domainMetadata", "sidecar.path"),
    *("add.path", "add.partitionValues", "add.size", "add.modificationTime", "add.dataChange", "add.stats", "add.tags"),
    *("add.deletionVector", "add.baseRowId", "add.defaultRowCommitVersion", "add.clusteringProvider"),
]
_BATCH = 4096


def parquet_rows(path: str, fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a checkpoint or a sidecar of one, with some fields of each."""
    with open_file(path) as source, pq.ParquetFile(source) as file:
        for batch in file.iter_batches(_BATCH, columns=list(fields)):
            for kind, structs in zip(batch.schema.names, batch.columns, strict=True):
                yield from ({kind: values} for values in _records(structs.drop_null()))


def _records(structs: pa.StructArray) -> Iterator[dict[str, Any]]:
    """Converts structs without the fields that none of them has: Arrow is slow at making nested Python values."""
    parts = zip(structs.type, structs.flatten(), strict=True)
    columns = {part.name: values for part, values in parts if values.null_count < len(values)}
    rows = zip(*(values.to_pylist(maps_as_pydicts="strict") for values in columns.values()), strict=True)
    return (dict(zip(columns, row, strict=True)) for row in rows)


def json_rows(content: bytes, path: str) -> Iterator[Mapping[str, Any]]:
    """Yields the lines of a commit, or of a checkpoint in JSON; a PenstockError names one that is damaged."""
    for line in content.split(b"\n"):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise PenstockError(f"{path} is damaged: {error} in {line[:80]!r}; restore it") from error


def known_actions(rows: Iterable[Mapping[str, Any]], path: str) -> Iterator[Action]:
    """Yields the actions of rows, without those of unknown kinds; a PenstockError names a row that is damaged."""
    for row in rows:
        try:
            action = from_object(row)
        except (TypeError, AttributeError, ValueError) as error:
            raise PenstockError(f"{path} is damaged: {error} in {str(row)[:80]}; restore it") from error
        if action is not None:
            yield action
