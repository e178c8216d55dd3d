"""Names the directories of partitioned files, `name=value` for each field of the spec, as DuckDB's extension does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from penstock.partitioning.specs import PartitionSpec
from penstock.partitioning.transforms import Identity
from penstock.schema.columns import Column

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def directory_names(spec: PartitionSpec, columns: Sequence[Column]) -> tuple[str, ...]:
    """The name of each field's directories, percent-encoded.

    It is the column's name or that of the transform; with the column's name behind it where another field had it first.
    Names that still clash are the extension's own, and it writes no file under them: see `partition_fields`.
    """
    by_id = {column.id: column.name for column in columns}
    only_columns = all(isinstance(field.transform, Identity) for field in spec.fields)
    names: list[str] = []
    for field in spec.fields:
        column = by_id[field.column_id]
        name = field.transform.directory(column)
        taken = name.lower() in {other.lower() for other in names}
        names.append(f"{name}_{column}" if taken and not only_columns else name)
    return tuple(map(_encoded, names))


def directory(names: Iterable[str], values: Iterable[str | None]) -> str:
    """The directory of a file by its `directory_names` and partition values: `region=EU/bucket=3/`."""
    pairs = zip(names, values, strict=True)
    return "".join(f"{name}={HIVE_NULL if value is None else _encoded(value)}/" for name, value in pairs)


def _encoded(text: str) -> str:
    return quote(text, safe="")
