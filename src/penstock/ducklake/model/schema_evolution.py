"""Evolves a table's columns without rewriting files: the new columns, and the catalog's rows that say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from penstock.ducklake.model.column_defaults import (
    EXPRESSION,
    NO_DEFAULT,
    Default,
    has_default,
    with_default,
    with_value,
)
from penstock.ducklake.model.reserved_names import RESERVED_NAMES
from penstock.ducklake.model.type_promotions import may_promote, refusal
from penstock.errors import InvalidError, NotFoundError
from penstock.schema.columns import Column, check_name, find_column
from penstock.schema.columns import check_names as check_plain_names

_PART = re.compile(r'"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|([^."`]+)')

Path = str | Sequence[str]
ColumnEdit = Callable[[Column], Column | None]


@dataclass(frozen=True)
class ColumnRow:
    """A row of `ducklake_column`, but for the table and the snapshots."""

    id: int
    order: int
    name: str
    type: str
    parent_id: int | None
    nulls_allowed: bool
    initial_default: str | None
    default_value: str | None
    default_value_type: str | None
    default_value_dialect: str | None


@dataclass(frozen=True)
class Evolution:
    """The columns after a change, the ids whose current rows end with it, and the rows that begin with it.

    The columns keep the `begin_snapshot` they had; new ones have that of the column they were made from.
    """

    columns: tuple[Column, ...]
    ended: tuple[int, ...] = ()
    added: tuple[ColumnRow, ...] = ()


def difference(old: Iterable[Column], new: Iterable[Column]) -> Evolution:
    """What turns one tree of columns into the other; the ids say what is the same column."""
    new = tuple(new)
    before, after = ({row.id: row for row in column_rows(columns)} for columns in (old, new))
    ended = tuple(number for number, row in before.items() if after.get(number) != row)
    added = tuple(row for number, row in after.items() if before.get(number) != row)
    return Evolution(new, ended, added)


def column_rows(columns: Iterable[Column], parent_id: int | None = None) -> Iterator[ColumnRow]:
    """The rows of columns and their fields, parents first."""
    for column in columns:
        yield ColumnRow(
            column.id,
            column.id,
            column.name,
            str(column.type),
            parent_id,
            column.nulls_allowed,
            column.initial_default,
            column.default_value,
            column.default_value_type,
            column.default_value_dialect,
        )
        yield from column_rows(column.children, column.id)


def parse_path(path: Path) -> tuple[str, ...]:
    """Parse a path: `s.a`, `l.element.x`, `m.value.y`; names with dots stand in double quotes or backticks."""
    if not isinstance(path, str):
        return tuple(path)
    names: list[str] = []
    position = 0
    while match := _PART.match(path, position):
        double, back, bare = match.groups()
        if double is not None:
            names.append(double.replace('""', '"'))
        else:
            names.append(back.replace("``", "`") if back is not None else bare.strip())
        position = match.end() + 1
        if match.end() == len(path):
            return tuple(names)
        if path[match.end()] != ".":
            break
    raise InvalidError(f'{path!r} is not a path of column names; write a.b.c, with odd names in double quotes: a."b.c"')


def find_at(columns: Iterable[Column], path: Path) -> Column:
    """The column at a path through structs, lists (`element`) and maps (`key`, `value`)."""
    names = parse_path(path)
    level = tuple(columns)
    for depth, name in enumerate(names):
        found = find_column(level, name)
        if found is None:
            place = f"{_shown(names[:depth])} has no field" if depth else "there is no column"
            known = f"; there are {', '.join(column.name for column in level)}" if level else ""
            raise NotFoundError(f"{place} {name!r}{known}")
        if depth == len(names) - 1:
            return found
        level = found.children
    raise InvalidError("the path of a column is empty; name the column")


def add_column(
    columns: tuple[Column, ...],
    next_id: int,
    parent: Path,
    new: Column,
    *,
    has_rows: bool,
    inlining: bool = True,
) -> Evolution:
    """Add a column to the table (`parent` is ()), or a field to the struct at a path; its ids count from `next_id`."""
    names = parse_path(parent) if parent else ()
    place = _shown((*names, new.name))
    _refuse_in_key(columns, names, f"{place} cannot be added")
    siblings = columns if not names else _struct_at(columns, names, place).children
    _check_free(new.name, siblings, place)
    if not names and inlining:
        _check_reserved(new.name)
    if new.default_value_type == EXPRESSION and new.initial_default is None:
        raise InvalidError(
            f"{place} cannot be added with the default {new.default_value}, which is not constant: the rows that exist "
            "need a value; add the column without it, then set the default for new rows"
        )
    if not new.nulls_allowed:
        _check_not_null(names, new, place, has_rows)
    column = _numbered(new, count(next_id))
    check_names((column,), inlining=False)
    if not names:
        return difference(columns, (*columns, column))
    return _changed(columns, names, lambda struct: replace(struct, children=(*struct.children, column)))


def drop_column(columns: tuple[Column, ...], path: Path, *, in_use: Mapping[int, str] | None = None) -> Evolution:
    """Drop a column or a field with all that is in it; `in_use` says by id why a column must stay."""
    names = parse_path(path)
    place = _shown(names)
    column = find_at(columns, names)
    _refuse_in_key(columns, names[:-1], f"{place} cannot be dropped")
    _check_unused(column, place, in_use or {})
    siblings = columns
    if len(names) > 1:
        siblings = _struct_at(columns, names[:-1], place).children
    if len(siblings) == 1:
        whole = f"struct {_shown(names[:-1])}" if len(names) > 1 else "table"
        raise InvalidError(f"{place} cannot be dropped: it is all that the {whole} has; drop the {whole} instead")
    return _changed(columns, names, lambda _: None)


def rename_column(columns: tuple[Column, ...], path: Path, name: str, *, inlining: bool = True) -> Evolution:
    """Give a column or a field another name."""
    names = parse_path(path)
    place = _shown(names)
    column = find_at(columns, names)
    siblings = columns if len(names) == 1 else _struct_at(columns, names[:-1], place).children
    _check_free(name, (other for other in siblings if other is not column), _shown((*names[:-1], name)))
    if len(names) == 1 and inlining:
        _check_reserved(name)
    return _changed(columns, names, lambda old: replace(old, name=name))


def set_type(
    columns: tuple[Column, ...], next_id: int, path: Path, new: Column, *, in_use: Mapping[int, str] | None = None
) -> Evolution:
    """Promote a column or a field to the type of `new`, whose name and ids do not matter.

    A struct given another struct type gains the fields that it lacks, loses those that the new type lacks, and has the
    others promoted; their order stays.
    """
    names = parse_path(path)
    find_at(columns, names)
    within_key = _key_of(columns, names) is not None
    check_names((new,), inlining=False)
    retyping = _Retyping(count(next_id), in_use or {})
    return _changed(columns, names, lambda old: retyping.retyped(old, new, _shown(names), within_key))


def set_not_null(columns: tuple[Column, ...], path: Path, *, has_nulls: bool) -> Evolution:
    """Forbid NULL in a column; the caller says whether it holds any."""
    names = parse_path(path)
    column = _top_level(columns, names)
    if not column.nulls_allowed:
        raise InvalidError(f"column {_shown(names)} is NOT NULL already")
    if has_nulls:
        raise InvalidError(f"column {_shown(names)} cannot be NOT NULL: it holds NULLs; update or delete those rows")
    return _changed(columns, names, lambda old: replace(old, nulls_allowed=False))


def drop_not_null(columns: tuple[Column, ...], path: Path) -> Evolution:
    """Allow NULL in a column again."""
    names = parse_path(path)
    if _top_level(columns, names).nulls_allowed:
        raise InvalidError(f"column {_shown(names)} has no NOT NULL to drop")
    return _changed(columns, names, lambda old: replace(old, nulls_allowed=True))


def set_default(columns: tuple[Column, ...], path: Path, default: Default) -> Evolution:
    """Change what new rows take; what rows from before the column was added show stays."""
    names = parse_path(path)
    column = with_value(find_at(columns, names), default)
    if column.type.nested and has_default(column):
        raise InvalidError(f"{_shown(names)} is a {column.type}: DuckLake has no defaults for nested types")
    return _changed(columns, names, lambda _: column)


def drop_default(columns: tuple[Column, ...], path: Path) -> Evolution:
    """Let new rows take NULL."""
    return set_default(columns, path, NO_DEFAULT)


def check_names(columns: Sequence[Column], *, inlining: bool = True) -> None:
    """Refuse names that are empty, taken without regard to case, or, where rows may be inlined, reserved."""
    check_plain_names(columns)
    if inlining:
        for column in columns:
            _check_reserved(column.name)


@dataclass(frozen=True)
class _Retyping:
    """Promotes a column and the fields below it to the types of another."""

    ids: Iterator[int]
    in_use: Mapping[int, str]

    def retyped(self, old: Column, new: Column, place: str, within_key: bool) -> Column:
        if old.type.name != new.type.name or not old.type.nested:
            return self._promoted(old, new, place)
        if old.type.name == "struct":
            return replace(old, children=self._fields(old, new, place, within_key))
        pairs = zip(old.children, new.children, strict=True)
        children = (self.retyped(a, b, f"{place}.{a.name}", within_key or a.name == "key") for a, b in pairs)
        return replace(old, children=tuple(children))

    def _promoted(self, old: Column, new: Column, place: str) -> Column:
        if old.type == new.type:
            return old
        if not may_promote(old.type, new.type):
            raise InvalidError(f"the type of {place} cannot be changed: {refusal(old.type, new.type)}")
        return replace(old, type=new.type)

    def _fields(self, old: Column, new: Column, place: str, within_key: bool) -> tuple[Column, ...]:
        kept: dict[int, Column] = {}
        gained: list[Column] = []
        for field in new.children:
            before = old.field(field.name)
            if before is None:
                gained.append(_numbered(with_default(field, NO_DEFAULT), self.ids))
            else:
                kept[before.id] = self.retyped(before, field, f"{place}.{before.name}", within_key)
        lost = [field for field in old.children if field.id not in kept]
        if within_key and (gained or lost):
            raise InvalidError(f"the fields of {place} cannot be added or dropped: they are the key of a map")
        for field in lost:
            _check_unused(field, f"{place}.{field.name}", self.in_use)
        return (*(kept[field.id] for field in old.children if field.id in kept), *gained)


def _numbered(column: Column, ids: Iterator[int]) -> Column:
    number = next(ids)
    return replace(column, id=number, children=tuple(_numbered(child, ids) for child in column.children))


def _changed(columns: tuple[Column, ...], names: tuple[str, ...], change: ColumnEdit) -> Evolution:
    return difference(columns, _replaced(columns, names, change))


def _replaced(columns: tuple[Column, ...], names: tuple[str, ...], change: ColumnEdit) -> tuple[Column, ...]:
    found = find_column(columns, names[0])
    if found is None:
        raise NotFoundError(f"there is no column {names[0]!r}")
    below = names[1:]
    new = replace(found, children=_replaced(found.children, below, change)) if below else change(found)
    return tuple(column for column in (new if old is found else old for old in columns) if column is not None)


def _struct_at(columns: Iterable[Column], names: tuple[str, ...], place: str) -> Column:
    found = find_at(columns, names)
    if found.type.name != "struct":
        way_out = {
            "list": f"; the fields of its elements are at {_shown((*names, 'element'))}",
            "map": f"; the fields of its values are at {_shown((*names, 'value'))}",
        }
        raise InvalidError(
            f"{place} is no field that can be changed: {_shown(names)} is a {found.type}, not a struct"
            + way_out.get(found.type.name, "")
        )
    return found


def _top_level(columns: Iterable[Column], names: tuple[str, ...]) -> Column:
    if len(names) > 1:
        find_at(columns, names)
        raise InvalidError(f"{_shown(names)} is a field: DuckLake has NOT NULL for whole columns only")
    return find_at(columns, names)


def _key_of(columns: Iterable[Column], names: tuple[str, ...]) -> str | None:
    """The path of the map whose key a path enters."""
    level: Iterable[Column] = columns
    for depth, name in enumerate(names):
        found = find_column(level, name)
        if found is None:
            return None
        if found.type.name == "map" and depth + 1 < len(names) and names[depth + 1].lower() == "key":
            return _shown(names[: depth + 1])
        level = found.children
    return None


def _refuse_in_key(columns: Iterable[Column], names: tuple[str, ...], what: str) -> None:
    owner = _key_of(columns, names)
    if owner is not None:
        raise InvalidError(f"{what}: it is part of the key of the map {owner}, and keys must stay distinct")


def _check_free(name: str, siblings: Iterable[Column], place: str) -> None:
    check_name(name)
    taken = find_column(siblings, name)
    if taken is not None:
        raise InvalidError(f"{place} cannot get this name: {taken.name!r} has it (letters' case does not count)")


def _check_reserved(name: str) -> None:
    if name.lower() in RESERVED_NAMES:
        raise InvalidError(
            f"column name {name!r} is reserved by DuckLake for inlined rows; choose another, or set the option "
            "data_inlining_row_limit to 0 first"
        )


def _check_not_null(parent: tuple[str, ...], new: Column, place: str, has_rows: bool) -> None:
    if parent:
        raise InvalidError(f"{place} cannot be NOT NULL: DuckLake has NOT NULL for whole columns only")
    if has_rows and new.initial_default is None:
        raise InvalidError(
            f"column {place} cannot be added as NOT NULL without a default: the table has rows; give it a default"
        )


def _check_unused(column: Column, place: str, in_use: Mapping[int, str]) -> None:
    for item in column.walk():
        if item.id in in_use:
            raise InvalidError(f"{place} cannot be dropped: {in_use[item.id]}")


def _shown(names: Sequence[str]) -> str:
    return ".".join(f'"{name}"' if "." in name else name for name in names)
