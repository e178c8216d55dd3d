"""Which leaves can hold a row that passes a filter, by their partition values alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.lance.definition import PartitionField, instants
from penstock.lance.leaves import Leaf, Values
from penstock.model.columns import Column
from penstock.model.types import Order, Type
from penstock.partitioning import Day, Hash, Hour, Month, Transform, Year
from penstock.partitioning.texts import read_text
from penstock.predicates import And, Anything, ColumnIn, Implication, Nothing, Or
from penstock.predicates.calendar import DAY, HOUR, date_of, days_of
from penstock.predicates.values import Scalar, ValueSet, interval

Test = Callable[[Values], bool]
_CALENDAR: dict[type[Transform], tuple[int, int]] = {Month: (1, 12), Day: (1, 31), Hour: (0, 23)}
_PARTS = (Year, Month, Day, Hour)  # the coarsest first


@dataclass(frozen=True)
class Pruner:
    """The partition fields of a namespace, and its columns by id."""

    fields: Sequence[PartitionField]
    columns: Mapping[int, Column]

    def kept(self, leaves: Sequence[Leaf], implication: Implication) -> list[Leaf]:
        """The leaves that can hold a row of which the implication is true."""
        test = self._test(implication)
        return [leaf for leaf in leaves if leaf.values is None or test(leaf.values)]

    def reasons(self, leaves: Sequence[Leaf], implication: Implication) -> dict[str, int]:
        """How many leaves each column's partition fields leave out, by what users call them."""
        columns = {field.sources for field in self.fields}
        found = {}
        for sources in sorted(columns):
            fields = [
                field if field.sources == sources else _untrusted(field) for field in self.fields
            ]  # others say nothing
            pruned = len(leaves) - len(Pruner(fields, self.columns).kept(leaves, implication))
            if pruned:
                names = ", ".join(self.columns[number].name for number in sources)
                own = [field.transform.describe(names) for field in self.fields if field.sources == sources]
                found[", ".join(own)] = pruned
        return found

    def _test(self, implication: Implication) -> Test:
        match implication:
            case Anything():
                return lambda values: True
            case Nothing():
                return lambda values: False
            case Or(children):
                tests = [self._test(child) for child in children]
                return lambda values: any(test(values) for test in tests)
            case And(children):
                tests = [self._test(child) for child in children] + self._of_several(children)
                return lambda values: all(test(values) for test in tests)
            case ColumnIn():
                tests = self._of_column(implication)
                return lambda values: all(test(values) for test in tests)

    def _of_column(self, wanted: ColumnIn) -> list[Test]:
        type = instants(wanted.column.type)
        tests: list[Test] = []
        for place, field in enumerate(self.fields):
            if field.sources != (wanted.column.id,) or not field.trusted:
                continue
            projected = field.transform.project(wanted.values, type)
            if projected is not None:
                null = wanted.values.null or (projected.null and _reaches_ends(wanted.values, type))
                tests.append(_membership(place, projected, field.transform, type, null))
        if type.order in (Order.DATE, Order.TIMESTAMP):
            tests.append(self._span_test(wanted, type))
        return tests

    def _of_several(self, children: Sequence[Implication]) -> list[Test]:
        """Tests of fields made of several columns, each of which has its condition."""
        by_id = {child.column.id: child for child in children if isinstance(child, ColumnIn)}
        tests: list[Test] = []
        for place, field in enumerate(self.fields):
            known = field.trusted and isinstance(field.transform, Hash)
            if not known or len(field.sources) < 2 or not all(number in by_id for number in field.sources):
                continue
            types = [instants(by_id[number].column.type) for number in field.sources]
            projected = field.transform.project_together([by_id[number].values for number in field.sources], types)
            if projected is not None:
                tests.append(_membership(place, projected, field.transform, types[0], projected.null))
        return tests

    def _span_test(self, wanted: ColumnIn, type: Type) -> Test:
        """A test by the time that year, month, day and hour of a leaf make together."""
        places = {
            field.transform.__class__: place
            for place, field in enumerate(self.fields)
            if field.sources == (wanted.column.id,) and field.trusted
        }
        chain = []
        for part in _PARTS:
            if part not in places:
                break
            chain.append(places[part])

        def test(values: Values) -> bool:
            texts = [values[place] for place in chain]
            if not texts or None in texts:
                return True
            try:
                start, end = _span([int(text) for text in texts if text is not None])
            except ValueError:
                return True
            unit = DAY if type.order is Order.DATE else 1
            span = ValueSet.of([interval(start // unit, -(-end // unit), open_high=True)])
            return not (wanted.values & span).empty

        return test


def _reaches_ends(values: ValueSet, type: Type) -> bool:
    """Whether a set holds a time that is no date any more: its calendar parts are NULL."""
    far = 2**31 - 1 if type.order is Order.DATE else 2**63 - 1
    return far in values or -far in values


def _untrusted(field: PartitionField) -> PartitionField:
    return PartitionField(field.name, field.sources, field.transform, trusted=False)


def _membership(place: int, allowed: ValueSet, transform: Transform, type: Type, null: bool) -> Test:
    """Whether a leaf's value, which stands at a place of its key, is one of those; one that cannot be read may be."""
    known: dict[str | None, bool] = {None: null}

    def test(values: Values) -> bool:
        text = values[place]
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
    first, last = _CALENDAR.get(transform.__class__, (value, value))
    if not first <= value <= last and value == value:
        raise ValueError(f"{transform} {text}")
    return value


def _span(parts: Sequence[int]) -> tuple[int, int]:
    """The microseconds of a year, of a month of it, of a day or of an hour."""
    match parts:
        case [year]:
            return days_of(year) * DAY, days_of(year + 1) * DAY
        case [year, month]:
            after = days_of(year + month // 12, month % 12 + 1)
            return _checked(year, month, 1) * DAY, after * DAY
        case [year, month, day]:
            start = _checked(year, month, day)
            return start * DAY, (start + 1) * DAY
    first, last = _CALENDAR[Hour]
    if not first <= parts[3] <= last:
        raise ValueError(f"no hour {parts[3]}")
    start = _checked(parts[0], parts[1], parts[2]) * DAY + parts[3] * HOUR
    return start, start + HOUR


def _checked(year: int, month: int, day: int) -> int:
    """The days of a date that there is."""
    days = days_of(year, month, day) if 1 <= month <= 12 else 0
    if date_of(days) != (year, month, day):
        raise ValueError(f"no date {year}-{month}-{day}")
    return days
