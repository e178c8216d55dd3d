"""Defines a table's columns: a tree of fields, each with the id that its Parquet files carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import InvalidError
from penstock.schema.types import Type


@dataclass(frozen=True)
class Column:
    """A column, or a field of a nested one, as one snapshot shows it."""

    id: int
    name: str
    type: Type
    begin_snapshot: int
    nulls_allowed: bool = True
    initial_default: str | None = None
    default_value: str | None = None
    default_value_type: str | None = None
    default_value_dialect: str | None = None
    children: tuple[Column, ...] = ()

    def walk(self) -> Iterator[Column]:
        """The column and all fields below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def field(self, name: str) -> Column | None:
        """The child of this name, by Spark's rule: exact first, then without regard to case."""
        return find_column(self.children, name)


def find_column(columns: Iterable[Column], name: str) -> Column | None:
    """The column of a name, by Spark's rule: exact first, then without regard to case."""
    folded = None
    for column in columns:
        if column.name == name:
            return column
        if folded is None and column.name.lower() == name.lower():
            folded = column
    return folded


def find_path(columns: Iterable[Column], path: Iterable[str]) -> Column | None:
    """The column at a path of names through structs, or None."""
    found: Column | None = None
    level = columns
    for name in path:
        found = find_column(level, name)
        if found is None:
            return None
        level = found.children if found.type.name == "struct" else ()
    return found


def check_names(columns: Sequence[Column], place: str = "the table") -> None:
    """Refuse names, at every depth, that are empty, or taken without regard to case."""
    if not columns:
        raise InvalidError(f"{place} needs at least one column")
    seen: set[str] = set()
    for column in columns:
        check_name(column.name)
        if column.name.lower() in seen:
            raise InvalidError(f"{place} has two columns named {column.name!r} (letters' case does not count)")
        seen.add(column.name.lower())
        if column.type.nested:
            check_names(column.children, f"{column.type} {column.name!r}")


def check_name(name: str) -> None:
    """Refuse a name that no column can have."""
    if not name or "\0" in name:
        raise InvalidError(f"{name!r} cannot be the name of a column; give it at least one character, and no NUL")


def shape(columns: Iterable[Column]) -> list[tuple[object, ...]]:
    """Ids, names and types at every depth: columns with the same shape can store their rows together."""
    return [(column.id, column.name, column.type, *shape(column.children)) for column in columns]
