"""Chooses the leaves that can hold a row that passes a filter, by their partition values alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.lance.format.leaves import Leaf, PartitionValues
from penstock.lance.format.partition_fields import PartitionField, transform_type
from penstock.lance.reading.calendar_spans import (
    CALENDAR_PARTS,
    CALENDAR_RANGES,
    calendar_span,
    holds_infinite_time,
    times_within,
)
from penstock.lance.reading.foreign_values import may_hold, may_hold_times
from penstock.partitioning import Calendar, Hash, Transform, Unknown
from penstock.partitioning.texts import read_text
from penstock.predicates import And, Anything, ColumnIn, Implication, Nothing, Or
from penstock.predicates.values import Scalar, ValueSet
from penstock.schema.columns import Column
from penstock.schema.types import Order, Type

LeafTest = Callable[[Leaf], bool]


@dataclass(frozen=True)
class LeafPruner:
    """Prunes leaves by the partition fields of a namespace; `columns` are its columns by id.

    Leaves of ours have just the values that our transforms make; those of others may have been named by any reading.
    """

    fields: Sequence[PartitionField]
    columns: Mapping[int, Column]

    def kept(self, leaves: Sequence[Leaf], implication: Implication) -> list[Leaf]:
        """The leaves that can hold a row of which the implication is true."""
        test = self._test(implication)
        return [leaf for leaf in leaves if leaf.values is None or not leaf.checked or test(leaf)]

    def reasons(self, leaves: Sequence[Leaf], implication: Implication) -> dict[str, int]:
        """The number of leaves that the partition fields of each column leave out, by what users call those fields."""
        columns = {field.sources for field in self.fields}
        found = {}
        for sources in sorted(columns):
            fields = [
                field if field.sources == sources else replace(field, transform=Unknown("")) for field in self.fields
            ]  # others say nothing
            pruned = len(leaves) - len(LeafPruner(fields, self.columns).kept(leaves, implication))
            if pruned:
                names = ", ".join(self.columns[number].name for number in sources)
                own = [field.transform.describe(names) for field in self.fields if field.sources == sources]
                found[", ".join(own)] = pruned
        return found

    def _test(self, implication: Implication) -> LeafTest:
        match implication:
            case Anything():
                return lambda leaf: True
            case Nothing():
                return lambda leaf: False
            case Or(children):
                tests = [self._test(child) for child in children]
                return lambda leaf: any(test(leaf) for test in tests)
            case And(children):
                tests = [self._test(child) for child in children] + self._tests_of_several_columns(children)
                return lambda leaf: all(test(leaf) for test in tests)
            case ColumnIn():
                tests = self._tests_of_column(implication)
                return lambda leaf: all(test(leaf) for test in tests)

    def _tests_of_column(self, wanted: ColumnIn) -> list[LeafTest]:
        type = transform_type(wanted.column.type)
        tests: list[LeafTest] = []
        for place, field in enumerate(self.fields):
            if field.sources != (wanted.column.id,):
                continue
            tests.append(_foreign_name_test(place, field, type, wanted.values))
            projected = field.transform.project(wanted.values, type) if field.trusted else None
            if projected is not None:
                null = wanted.values.null or (projected.null and holds_infinite_time(wanted.values, type))
                tests.append(_membership_test(place, projected, field.transform, type, null))
        if type.order in (Order.DATE, Order.TIMESTAMP):
            tests += [self._span_test(wanted, type), self._foreign_times_test(wanted, type)]
        return tests

    def _tests_of_several_columns(self, children: Sequence[Implication]) -> list[LeafTest]:
        """Tests of fields made of several columns, each of which has its condition."""
        by_id = {child.column.id: child for child in children if isinstance(child, ColumnIn)}
        tests: list[LeafTest] = []
        for place, field in enumerate(self.fields):
            known = field.trusted and isinstance(field.transform, Hash)
            if not known or len(field.sources) < 2 or not all(number in by_id for number in field.sources):
                continue
            types = [transform_type(by_id[number].column.type) for number in field.sources]
            projected = field.transform.project_together([by_id[number].values for number in field.sources], types)
            if projected is not None:
                tests.append(_membership_test(place, projected, field.transform, types[0], projected.null))
        return tests

    def _span_test(self, wanted: ColumnIn, type: Type) -> LeafTest:
        """A test by the time that year, month, day and hour of a leaf make together."""
        places = {
            field.transform.__class__: place
            for place, field in enumerate(self.fields)
            if field.sources == (wanted.column.id,) and field.trusted
        }
        chain = []
        for part in CALENDAR_PARTS:
            if part not in places:
                break
            chain.append(places[part])

        def test(leaf: Leaf) -> bool:
            texts = [_values(leaf)[place] for place in chain]
            if not leaf.is_own or not texts or None in texts:
                return True
            try:
                micros = calendar_span([int(text) for text in texts if text is not None])
            except ValueError:
                return True
            return not times_within(wanted.values, micros, type).empty

        return test

    def _foreign_times_test(self, wanted: ColumnIn, type: Type) -> LeafTest:
        """The same test for leaves that others have named."""
        parts = [
            (field.transform, place)
            for place, field in enumerate(self.fields)
            if field.sources == (wanted.column.id,) and isinstance(field.transform, Calendar)
        ]

        def test(leaf: Leaf) -> bool:
            if leaf.is_own or not parts:
                return True
            return may_hold_times([(part, leaf.raw_values[place]) for part, place in parts], type, wanted.values)

        return test


def _values(leaf: Leaf) -> PartitionValues:
    assert leaf.values is not None  # or it would not be asked
    return leaf.values


def _foreign_name_test(place: int, field: PartitionField, type: Type, wanted: ValueSet) -> LeafTest:
    """Whether a leaf's name, by any reading, lets it hold a wanted value; asked where its value is not surely ours."""
    known: dict[str, bool] = {}

    def test(leaf: Leaf) -> bool:
        if leaf.is_own and field.trusted:
            return True
        name = leaf.raw_values[place]
        if name not in known:
            known[name] = may_hold(field.transform, name, type, wanted)
        return known[name]

    return test


def _membership_test(place: int, allowed: ValueSet, transform: Transform, type: Type, null: bool) -> LeafTest:
    """Whether a leaf's value, which stands at a place of its key, is one of those; one that cannot be read may be."""
    known: dict[str | None, bool] = {None: null}

    def test(leaf: Leaf) -> bool:
        if not leaf.is_own:
            return True
        text = _values(leaf)[place]
        if text not in known:
            try:
                known[text] = _value(str(text), transform, type) in allowed
            except ValueError:
                known[text] = True
        return known[text]

    return test


def _value(text: str, transform: Transform, type: Type) -> Scalar:
    """The partition value of a text; ValueError for numbers of another writer that are no part of a calendar."""
    value = read_text(text, transform.result(type))
    first, last = CALENDAR_RANGES.get(transform.__class__, (value, value))
    if not first <= value <= last and value == value:
        raise ValueError(f"{transform} {text}")
    return value
