"""Defines what a filter implies for the rows it keeps: conditions on single columns, joined by and and or."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.predicates.domains import unlimited
from penstock.predicates.values import Scalar, ValueSet
from penstock.schema.columns import Column


@dataclass(frozen=True)
class Anything:
    """Every row can match."""


@dataclass(frozen=True)
class Nothing:
    """No row can match."""


@dataclass(frozen=True)
class ColumnIn:
    """A matching row has one of these values in this column; `path` is the column's name for people."""

    column: Column
    path: str
    values: ValueSet


@dataclass(frozen=True)
class And:
    """A matching row satisfies all of these; no two of them are conditions on the same column."""

    children: tuple[Implication, ...]


@dataclass(frozen=True)
class Or:
    """A matching row satisfies one of these; no two of them are conditions on the same column."""

    children: tuple[Implication, ...]


Implication = And | Or | ColumnIn | Anything | Nothing


def column_in(column: Column, path: str, values: ValueSet) -> Implication:
    """A condition on one column, simplified; the values are within the column's type."""
    if values.empty:
        return Nothing()
    return Anything() if unlimited(values, column.type) else ColumnIn(column, path, values)


def conjunction(children: Iterable[Implication]) -> Implication:
    """Join implications by and, with one condition a column."""
    flat = [part for child in children for part in (child.children if isinstance(child, And) else (child,))]
    merged = _merged(flat, ValueSet.__and__)
    if Nothing() in merged:
        return Nothing()
    kept = tuple(child for child in merged if child != Anything())
    return (kept[0] if len(kept) == 1 else And(kept)) if kept else Anything()


def disjunction(children: Iterable[Implication]) -> Implication:
    """Join implications by or, with one condition a column."""
    flat = [part for child in children for part in (child.children if isinstance(child, Or) else (child,))]
    merged = _merged(flat, ValueSet.__or__)
    if Anything() in merged:
        return Anything()
    kept = tuple(child for child in merged if child != Nothing())
    return (kept[0] if len(kept) == 1 else Or(kept)) if kept else Nothing()


def mentioned(implication: Implication) -> list[Column]:
    """The columns that there are conditions on."""
    if isinstance(implication, And | Or):
        return [column for child in implication.children for column in mentioned(child)]
    return [implication.column] if isinstance(implication, ColumnIn) else []


def allows(implication: Implication, row: Mapping[int, Scalar]) -> bool:
    """Whether a row can match, by its values by column id; of a column that is left out every value is possible."""
    match implication:
        case And():
            return all(allows(child, row) for child in implication.children)
        case Or():
            return any(allows(child, row) for child in implication.children)
        case ColumnIn():
            return implication.column.id not in row or row[implication.column.id] in implication.values
    return isinstance(implication, Anything)


def size(implication: Implication) -> int:
    """The number of conditions on columns."""
    if isinstance(implication, And | Or):
        return sum(map(size, implication.children))
    return int(isinstance(implication, ColumnIn))


def summary(implication: Implication) -> Implication:
    """A weaker implication of one condition a column, for those too large to test as they are."""
    if not isinstance(implication, And | Or):
        return implication
    parts = [summary(child) for child in implication.children]
    if isinstance(implication, And):
        return conjunction(parts)
    conditions = [_by_column(part) for part in parts if part != Nothing()]
    common = [key for key in conditions[0] if all(key in others for others in conditions)] if conditions else []
    return conjunction(disjunction(others[key] for others in conditions) for key in common)


def _by_column(implication: Implication) -> dict[int, ColumnIn]:
    parts = implication.children if isinstance(implication, And) else (implication,)
    return {part.column.id: part for part in parts if isinstance(part, ColumnIn)}


def _merged(children: list[Implication], merge: Callable[[ValueSet, ValueSet], ValueSet]) -> list[Implication]:
    conditions: dict[int, ColumnIn] = {}
    others: list[Implication] = []
    for child in children:
        if not isinstance(child, ColumnIn):
            others.append(child)
        elif child.column.id in conditions:
            known = conditions[child.column.id]
            conditions[child.column.id] = ColumnIn(known.column, known.path, merge(known.values, child.values))
        else:
            conditions[child.column.id] = child
    return [column_in(one.column, one.path, one.values) for one in conditions.values()] + others
