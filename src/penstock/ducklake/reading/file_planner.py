"""Chooses the files that a query needs, while Spark plans it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.ducklake.catalog.file_pruning import Condition, Pruning, kept_within, prunings
from penstock.ducklake.catalog.file_zones import Ranges
from penstock.ducklake.catalog.visible_files import FileScope
from penstock.ducklake.model.files import DataFile, FileGroup
from penstock.partitioning import PartitionSpec
from penstock.predicates import implied_by
from penstock.schema.columns import Column
from penstock.spark.file_records import file_records
from penstock.storage.paths import is_local

_UNKNOWN = ["unknown"]  # a filter that implies nothing


@dataclass(frozen=True)
class FilePlanner:
    """Plans the files of one group: filters as JSON in, files and their constants out."""

    scope: FileScope
    specs: Sequence[PartitionSpec]
    group: FileGroup
    columns: Sequence[Column]
    names: Mapping[int, str]  # the names that filters use, where they are not the columns' own
    constants_of: Callable[[DataFile], tuple[object, ...]]
    files: frozenset[int] | None = None  # those of the group that this planner is for; all when None
    without: frozenset[int] = frozenset()  # those that it is not for
    opaque: frozenset[int] = frozenset()  # columns that must not prune
    check: Callable[[], None] = lambda: None  # raises what is wrong with the table's folder

    def __call__(self, filters: str) -> str:
        return self.records(self.keep(filters))

    def records(self, keep: Condition) -> str:
        """The files that a condition keeps, as the index reads them."""
        return file_records(map(self.record, self._files(keep)))

    def record(self, file: DataFile) -> tuple[str, int, tuple[object, ...]]:
        """What the index is told of a file: its path, its size and its constants."""
        return file.path, self._size(file), self.constants_of(file)

    def _size(self, file: DataFile) -> int:
        """As the catalog has it; 0, to be asked for, where another file may have been put under the name.

        Files of stores are not asked: to read one by a wrong size is an error there.
        """
        return 0 if self.group.is_of_others and is_local(file.path) else file.size

    def files_for(self, filters: str) -> list[DataFile]:
        """The files that can hold a row that passes the filters."""
        return self._files(self.keep(filters))

    def _files(self, keep: Condition) -> list[DataFile]:
        self.check()
        kept = self.scope.data_files(self.group, keep)
        return [file for file in kept if (self.files is None or file.id in self.files) and file.id not in self.without]

    def keep(self, filters: str) -> Condition:
        """The condition that is true for the data files that can hold a row that passes the filters."""
        found = self.prunings(filters)
        within = self.scope.zones_left(self.group, found)
        return kept_within(found if within is None else self.prunings(filters, within), within)

    def counts(self, filters: str) -> tuple[int, dict[str, int]]:
        """How many files can hold a row that passes the filters, and how many each reason alone leaves out."""
        kept = self.scope.count(self.group, self.keep(filters))
        found = self.prunings(filters)
        pruned = {}
        for number, pruning in enumerate(found):
            within = self.scope.zones_left(self.group, [pruning])
            ways = found if within is None else self.prunings(filters, within)
            left = self.scope.count(self.group, kept_within([ways[number]], within))
            pruned[pruning.reason] = max(0, self.group.file_count - left)
        return kept, pruned

    def prunings(self, filters: str, within: Ranges | None = None) -> tuple[Pruning, ...]:
        """The reasons that the filters give to leave files out; of some files only, if their ids are given."""
        each = [json.dumps(self.own_names(item)) for item in json.loads(filters)]
        by_id = {item.id: item for column in self.columns for item in column.walk()}
        clear = [column for column in self.columns if column.id not in self.opaque]
        implication = implied_by(each, clear)
        scope = self.scope
        return prunings(
            implication, scope.table_id, self.specs, by_id, scope.database.dialect, within=within, seen=scope.seen,
            is_most=scope.fills_catalog(self.group),
        )  # fmt: skip

    def own_names(self, node: Any) -> Any:
        """A filter with the columns' own names in place of those that the scan asks for them by."""
        return _with_own_names(node, self.columns, self.names)


def _with_own_names(node: Any, columns: Sequence[Column], names: Mapping[int, str]) -> Any:
    """A filter with the columns' own names in place of those that the scan asks for them by."""
    if not names or not isinstance(node, list):
        return node
    if node[0] == "column":
        own = _own_path(node[1:], columns, names)
        return _UNKNOWN if own is None else ["column", *own]
    return [node[0], *(_with_own_names(item, columns, names) for item in node[1:])]


def _own_path(path: Sequence[str], columns: Sequence[Column], names: Mapping[int, str]) -> list[str] | None:
    """The names by which files have columns go before the columns' own, which may be others' names there.

    None where no column is asked for by this path.
    """
    if not path:
        return []
    asked = [column for column in columns if names.get(column.id) == path[0]]
    others = [column for column in columns if column.id not in names and column.name == path[0]]
    found = next(iter(asked + others), None)
    rest = None if found is None else _own_path(path[1:], found.children, names)
    return None if found is None or rest is None else [found.name, *rest]
