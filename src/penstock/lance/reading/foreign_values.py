"""Tells what a leaf that another writer named can hold, by every reading of the specification.

The draft counts years "from 1970" in one place and takes "the four-digit year" in another; it does not say how NULL is
spelled, whether names are percent-encoded, what a character is, or where negative numbers and decimals are cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product, takewhile
from urllib.parse import unquote, unquote_plus

from penstock.lance.reading.calendar_spans import (
    CALENDAR_PARTS,
    CALENDAR_RANGES,
    calendar_span,
    holds_infinite_time,
    times_within,
)
from penstock.partitioning import Calendar, Day, Hour, Identity, Month, Transform, Truncate, Year
from penstock.partitioning.texts import read_text
from penstock.predicates.calendar import DAY, HOUR
from penstock.predicates.domains import grid
from penstock.predicates.values import NOT_NULL, Cut, Interval, Scalar, ValueSet
from penstock.schema.types import Order, Type

_NULLS = {"", "null", "none", "nil", "na", "n", "nan", "nat", "undefined", "unknown", "missing", "hivedefaultpartition"}
_MOST_DIGITS = 38
_PUNCTUATION = re.compile(r"[\W_]+")
_REPLACEMENTS = ("\ufffd", "?")  # half a character of UTF-16, as encoders write it
_FIRST_OF_TWO_UNITS = "\U00010000"
_TIMESTAMP = Type("timestamp")
_Reading = int | tuple[int, int]  # a part of the calendar, or the microseconds of what is counted from 1970


def may_hold(transform: Transform, name: str, type: Type, wanted: ValueSet) -> bool:
    """Whether a partition of this name can hold one of the wanted values of its column.

    Parts of the calendar are asked together, by `may_hold_times`; hashes of others tell nothing. NULL can be anywhere:
    a leaf of others may lack the column.
    """
    if wanted.null or not isinstance(transform, Identity | Truncate) or transform.project(wanted, type) is None:
        return True
    held = [one for text in _texts(name) if (one := _held(transform, text, type)) is not None]
    return not held or any(not (one & wanted).empty for one in held)


def may_hold_times(parts: Sequence[tuple[Calendar, str]], type: Type, wanted: ValueSet) -> bool:
    """Whether a leaf can hold one of the wanted times, given its name for each calendar part of their column."""
    if wanted.null:
        return True
    if all(spells_null(name) for _, name in parts):
        return holds_infinite_time(wanted, type)
    times = _times(tuple(parts))
    return not times or any(one.meets(wanted, type) for one in times)  # a name that no reading explains says nothing


def spells_null(name: str) -> bool:
    """Whether a partition's name can be some writer's NULL."""
    return any(_PUNCTUATION.sub("", text).casefold() in _NULLS for text in _texts(name))


def _texts(name: str) -> set[str]:
    """The texts that a name can stand for: itself, and what its escapes say."""
    found = {name}
    for unescape in (unquote, unquote_plus):
        try:
            found.add(unescape(name, errors="strict"))
        except UnicodeDecodeError:
            continue
    return found


def _held(transform: Identity | Truncate, text: str, type: Type) -> ValueSet | None:
    """The values that a partition of this text holds by any reading; None where the text is no partition value."""
    if isinstance(transform, Truncate) and type.order is Order.TEXT:
        return _with_prefix(text, transform.width)
    kind = Type("decimal", _MOST_DIGITS, type.scale) if type.order is Order.DECIMAL else transform.result(type)
    try:
        value = read_text(text, kind)
    except ValueError:
        return None
    if isinstance(transform, Truncate):
        return _near_multiple(value, transform.width, kind)
    return ValueSet.points([value]) if value == value else ValueSet(nan=True)


def _with_prefix(text: str, width: int) -> ValueSet | None:
    """Texts cut to this one, where a character is a code point or a unit of UTF-16; a half one may be left out."""
    units = len(text.encode("utf-16-le", errors="surrogatepass")) // 2
    if len(text) > width:
        return None
    if units < width - 1:
        return ValueSet.points([text])
    if units == width - 1:
        halved = Interval(Cut(text + _FIRST_OF_TWO_UNITS), _after(text))
        return ValueSet.points([text]) | ValueSet.of([halved])
    stem = text[:-1] if text.endswith(_REPLACEMENTS) else text
    return ValueSet.of([Interval(Cut(stem), _after(stem))])


def _after(stem: str) -> Cut | None:
    """Where the texts end that begin so; None where all later ones do."""
    last = stem.rstrip("\U0010ffff")
    return None if not last else Cut(last[:-1] + _next_character(last[-1]))


def _next_character(character: str) -> str:
    after = ord(character) + 1
    return chr(0xE000 if 0xD800 <= after < 0xE000 else after)


def _near_multiple(value: Scalar, width: int, type: Type) -> ValueSet | None:
    """Numbers cut down, or towards zero, to this multiple of a width, which counts ones or digits after the point."""
    steps = grid(type)
    assert steps is not None  # numbers are on one
    number = steps.step(value)
    units = (width * 10**digits for digits in range(steps.scale, -1, -1))
    unit = next((one for one in units if number % one == 0), None)
    if unit is None:
        return None
    first = number if number > 0 else number - unit + 1
    return ValueSet.of([Interval(Cut(steps.value(first)), Cut(steps.value(number + unit)))])


def _readings(part: Calendar, name: str) -> Iterator[_Reading]:
    """What a part's name can mean: a part of the calendar, and a count from 1970."""
    try:
        number = int(unquote(name))
    except ValueError:
        return
    first, last = CALENDAR_RANGES.get(part.__class__, (number, number))
    if first <= number <= last:
        yield number
    match part:
        case Year():
            yield 1970 + number
        case Month():
            yield calendar_span([1970 + number // 12, number % 12 + 1])
        case Day():
            yield number * DAY, (number + 1) * DAY
        case Hour():
            yield number * HOUR, (number + 1) * HOUR


@dataclass(frozen=True)
class _Times:
    """What a leaf's names mean by one reading: times between two moments, if bounded, with parts of the calendar."""

    span: tuple[int, int] | None
    parts: tuple[tuple[Calendar, int], ...]

    def meets(self, wanted: ValueSet, type: Type) -> bool:
        left = wanted if self.span is None else times_within(wanted, self.span, type)
        if left.empty:
            return False
        allowed = [(part.project(left, type), number) for part, number in self.parts]
        return all(numbers is None or number in numbers for numbers, number in allowed)


@lru_cache(maxsize=65_536)
def _times(names: tuple[tuple[Calendar, str], ...]) -> tuple[_Times, ...]:
    """All readings of a leaf's names that there are times for."""
    readings = [list(_readings(part, name)) for part, name in names]
    parts = [part for part, _ in names]
    found = (_combined(parts, choice) for choice in product(*readings))
    return tuple(one for one in found if one is not None and one.meets(NOT_NULL, _TIMESTAMP))


def _combined(parts: Sequence[Calendar], choice: Sequence[_Reading]) -> _Times | None:
    """The times that have all these parts, each taken by one reading; None where there is no such date."""
    numbers = {part: one for part, one in zip(parts, choice, strict=True) if isinstance(one, int)}
    spans = [one for one in choice if not isinstance(one, int)]
    by_kind: dict[type[Transform], Calendar] = {part.__class__: part for part in numbers}
    chain = list(takewhile(lambda kind: kind in by_kind, CALENDAR_PARTS))
    try:
        spans += [calendar_span([numbers[by_kind[kind]] for kind in chain])] if chain else []
    except ValueError:
        return None
    start, end = max((one[0] for one in spans), default=None), min((one[1] for one in spans), default=None)
    if start is not None and end is not None and start >= end:
        return None
    left = tuple((part, number) for part, number in numbers.items() if part.__class__ not in chain)
    return _Times(None if start is None or end is None else (start, end), left)
