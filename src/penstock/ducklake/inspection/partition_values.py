"""Names the places of partition keys, and looks up their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.id_lists import id_lists
from penstock.ducklake.catalog.objects import column_versions, columns_at, partition_specs
from penstock.ducklake.model.objects import ColumnVersion, TableInfo
from penstock.ducklake.transaction import Shown
from penstock.partitioning import PartitionSpec
from penstock.schema.columns import Column


@dataclass(frozen=True)
class PartitionValue:
    """One place of a partition's key: the column, what is done with its values, and the text that comes of it."""

    name: str
    transform: str
    value: str | None


@dataclass(frozen=True)
class PartitionKeys:
    """Every partitioning that a table has or had, with the names of its columns."""

    specs: dict[int, PartitionSpec]
    names: dict[int, str]

    @classmethod
    def of(cls, shown: Shown, table: TableInfo) -> PartitionKeys:
        """The keys of a table; columns have the names that a snapshot shows, or the last ones that they had."""
        specs = {spec.partition_id: spec for spec in partition_specs(shown.database, table.id)}
        if not specs:
            return cls({}, {})
        versions = column_versions(shown.database, table.id)
        names = {version.column.id: version.column.name for version in versions}
        return cls(specs, {**names, **dict(_paths(columns_at(versions, shown.at)))})

    @property
    def most_places(self) -> int:
        """How many places the longest key has."""
        return max((len(spec.fields) for spec in self.specs.values()), default=0)

    def values(self, partition_id: int | None, values: Sequence[str | None]) -> tuple[PartitionValue, ...]:
        """The key of a partition, from the values of its places; none of a file without partitions."""
        spec = self.specs.get(partition_id) if partition_id is not None else None
        return tuple(
            PartitionValue(self.names.get(field.column_id, f"column {field.column_id}"), str(field.transform), value)
            for field, value in zip(spec.fields if spec else (), values, strict=False)
        )


def described(spec: PartitionSpec | None, versions: Iterable[ColumnVersion]) -> Iterator[str]:
    """The fields of a partitioning as `create_table` takes them."""
    names = {version.column.id: version.column.name for version in versions}
    for field in spec.fields if spec else ():
        yield field.transform.describe(names.get(field.column_id, f"column {field.column_id}"))


def values_of_files(database: Database, table_id: int, files: Collection[int]) -> dict[int, list[str | None]]:
    """The values of the partitions of some files, in the order of their keys."""
    found: dict[int, list[str | None]] = defaultdict(list)
    for listed in id_lists(files):
        for file_id, value in database.query(
            f"""SELECT data_file_id, partition_value FROM ducklake_file_partition_value
                WHERE table_id = ? AND data_file_id IN ({listed}) ORDER BY data_file_id, partition_key_index""",
            [table_id],
        ):
            found[file_id].append(value)
    return found


def _paths(columns: Iterable[Column], parents: str = "") -> Iterator[tuple[int, str]]:
    for column in columns:
        yield column.id, parents + column.name
        yield from _paths(column.children, f"{parents}{column.name}.")
