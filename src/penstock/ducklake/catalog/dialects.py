"""Writes, for each catalog database, SQL that reads a value from its text, so that it compares as the value does.

A reading is an SQL expression that is NULL for text which is not a value in the expected form; it never fails. The
expressions hold neither `?` nor `%`, so that any driver's placeholders can be put in.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.schema.types import Order, Type

_INTEGER = "-{0,1}[0-9]+"
_DECIMAL = "-{0,1}[0-9]+([.][0-9]+|)"
_REAL = _DECIMAL + "([eE][-+]{0,1}[0-9]{1,3}|)"
_HEX = "([0-9A-Fa-f][0-9A-Fa-f])*"
_FRACTION = "([.][0-9]+|)"
_DATE = "0000-00-00"
_TIME = "00:00:00"
BEFORE_ALL, AFTER_ALL = " ", ";"  # what infinite times are read as: before and after every digit
GREATEST_REAL = 1.7976931348623157e308  # what infinity is read as, since not every database has one


@dataclass(frozen=True)
class Form:
    """The fixed form of a text of date or time: zeros stand for digits; a fraction may follow, then the suffix."""

    start: str
    fraction: bool = True
    suffix: str = ""

    @property
    def may_be_infinite(self) -> bool:
        """Whether `infinity` and `-infinity` are texts of such times too: of all that have a date."""
        return self.start.startswith(_DATE)

    @property
    def usual_starts(self) -> tuple[str, ...]:
        """What nearly all texts of this form have before the suffix: no fraction, or one of microseconds."""
        return (self.start, f"{self.start}.000000") if self.fraction else (self.start,)

    @property
    def pattern(self) -> str:
        """A regular expression for texts of this form."""
        return self.start.replace("0", "[0-9]") + self.ending

    @property
    def ending(self) -> str:
        """The part of the regular expression for what comes after the start."""
        return (_FRACTION if self.fraction else "") + self.suffix.replace("+", "[+]")


def form(type: Type) -> Form:
    """The form in which texts of dates and times take part: four digits of a positive year."""
    match type.order:
        case Order.DATE:
            return Form(_DATE, fraction=False)
        case Order.TIME:
            return Form(_TIME)
    return Form(f"{_DATE} {_TIME}", suffix="+00" if type.name == "timestamptz" else "")


class Dialect:
    """The readings of one kind of database."""

    text_bound = "?"
    real_bound = "?"
    exact_decimals = True
    sorts_groups = False  # whether GROUP BY sorts all rows, instead of keeping a place for each group
    # What keeps a subquery's expressions from being computed anew wherever they are used: its end, or a column of it.
    fence = ""
    fence_column = ""
    summarizes_first = False  # whether to look at many files at once takes no longer than at each

    def unindexed(self, column: str) -> str:
        """A column whose index is not to be used, where the database would prefer it without knowing better."""
        return column

    def matches(self, text: str, pattern: str) -> str:
        """Whether all of a text matches a regular expression."""
        raise NotImplementedError

    def integer(self, text: str) -> str:
        """An integer."""
        raise NotImplementedError

    def unsigned(self, text: str) -> str:
        """A uint64; see `unsigned_bound` for what it compares with."""
        return self.integer(text)

    def unsigned_bound(self, value: int) -> int | str:
        """The parameter that a uint64 is compared with."""
        return value

    def decimal(self, text: str, type: Type) -> str | None:
        """A decimal rounded to the type's scale, as a promotion to fewer places does; None if there is no way."""
        raise NotImplementedError

    def decimal_bound(self, type: Type) -> str:
        """The SQL of a bound that a decimal compares with, given as its text."""
        raise NotImplementedError

    def number(self, text: str) -> str:
        """A finite decimal or float, approximately."""
        raise NotImplementedError

    def real(self, text: str) -> str:
        """A float, infinite ones as the greatest finite ones."""
        return (
            f"CASE WHEN {text} = 'inf' THEN {GREATEST_REAL!r} WHEN {text} = '-inf' THEN -{GREATEST_REAL!r} "
            f"ELSE {self.number(text)} END"
        )

    def boolean(self, text: str) -> str:
        """A boolean, as 0 or 1."""
        return f"CASE {text} WHEN '1' THEN 1 WHEN 'true' THEN 1 WHEN '0' THEN 0 WHEN 'false' THEN 0 END"

    def text(self, text: str) -> str:
        """Text in the order of its UTF-8 bytes."""
        return text

    def timed(self, text: str, form: Form) -> str:
        """The text of a date or time in this form, which sorts as the times do, infinite ones first and last."""
        ends = {"infinity": AFTER_ALL, "-infinity": BEFORE_ALL} if form.may_be_infinite else {}
        infinite = "".join(f"WHEN {text} = '{name}' THEN '{place}' " for name, place in ends.items())
        return self.text(f"CASE {infinite}WHEN {self.in_form(text, form)} THEN {text} END")

    def in_form(self, text: str, form: Form) -> str:
        """Whether a text has this form."""
        return self.matches(text, form.pattern)

    def hexadecimal(self, text: str) -> str:
        """Hexadecimal text in upper case."""
        return self.text(f"CASE WHEN {self.matches(text, _HEX)} THEN UPPER({text}) END")

    def encoded(self, text: str) -> str:
        """The UTF-8 bytes of a text, as hexadecimal text in upper case."""
        return self.text(f"HEX({text})")


class DuckDBDialect(Dialect):
    """DuckDB, whose TRY_CAST reads what it can."""

    def matches(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    def integer(self, text: str) -> str:
        return f"CASE WHEN {self.matches(text, _INTEGER)} THEN TRY_CAST({text} AS HUGEINT) END"

    def decimal(self, text: str, type: Type) -> str | None:
        return f"CASE WHEN {self.matches(text, _DECIMAL)} THEN TRY_CAST({text} AS DECIMAL(38, {type.scale})) END"

    def decimal_bound(self, type: Type) -> str:
        return f"CAST(? AS DECIMAL(38, {type.scale}))"

    def number(self, text: str) -> str:
        return f"CASE WHEN {self.matches(text, _REAL)} THEN TRY_CAST({text} AS DOUBLE) END"


class SQLiteDialect(Dialect):
    """SQLite, which has no regular expressions, no decimals, and casts what it cannot read to 0."""

    exact_decimals = False
    sorts_groups = True
    fence = "LIMIT -1"
    _DIGITS = 20  # of the greatest uint64

    def unindexed(self, column: str) -> str:
        return f"+{column}"

    def integer(self, text: str) -> str:
        number = f"CAST({text} AS INTEGER)"
        # The first test tells nothing new of a number, and takes a third of the time.
        is_number = f"CAST({number} AS TEXT) = {text} OR (json_valid({text}) AND {text} NOT GLOB '*[^-0-9]*')"
        return f"CASE WHEN {is_number} THEN {number} END"

    def unsigned(self, text: str) -> str:
        digits = f"{text} NOT GLOB '*[^0-9]*' AND length({text}) BETWEEN 1 AND {self._DIGITS}"
        return f"CASE WHEN {digits} THEN substr('{'0' * self._DIGITS}' || {text}, -{self._DIGITS}) END"

    def unsigned_bound(self, value: int) -> int | str:
        return f"{value:0{self._DIGITS}}"

    def decimal(self, text: str, type: Type) -> str | None:
        return self.number(text)

    def decimal_bound(self, type: Type) -> str:
        return "?"

    def number(self, text: str) -> str:
        # JSON that begins with a digit or a minus is a number.
        number = f"json_valid({text}) AND {text} GLOB '[-0-9]*'"
        return f"CASE WHEN {number} AND ABS({text}) <= {GREATEST_REAL!r} THEN CAST({text} AS REAL) END"

    def in_form(self, text: str, form: Form) -> str:
        start = form.start.replace("0", "[0-9]")
        if not form.fraction:
            return f"{text} GLOB '{start}'"
        fixed = len(form.start) + len(".") + len(form.suffix)
        digits = f"substr({text}, {len(form.start) + len('.') + 1}, length({text}) - {fixed})"
        any_fraction = f"{text} GLOB '{start}.[0-9]*{form.suffix}' AND {digits} NOT GLOB '*[^0-9]*'"
        # The usual ones first, which are quicker to tell.
        usual = (f"{text} GLOB '{one.replace('0', '[0-9]')}{form.suffix}'" for one in form.usual_starts)
        return f"({' OR '.join(usual)} OR ({any_fraction}))"

    def hexadecimal(self, text: str) -> str:
        return f"CASE WHEN {text} NOT GLOB '*[^0-9A-Fa-f]*' AND (length({text}) & 1) = 0 THEN upper({text}) END"


class PostgresDialect(Dialect):
    """PostgreSQL, whose casts fail on what they cannot read: every number is a NUMERIC behind a pattern."""

    real_bound = "CAST(? AS NUMERIC)"
    # Volatile, so it is one for each row, but safe for parallel workers: with OFFSET a query has none.
    fence_column = ", clock_timestamp() AS fenced"
    summarizes_first = True
    _LONGEST = 400  # characters of a number; the type itself allows 131072 digits, and then fails

    def matches(self, text: str, pattern: str) -> str:
        return f"{text} ~ '^{pattern}$'"

    def integer(self, text: str) -> str:
        return self._numeric(text, _INTEGER)

    def decimal(self, text: str, type: Type) -> str | None:
        return f"ROUND({self._numeric(text, _DECIMAL)}, {type.scale})"

    def decimal_bound(self, type: Type) -> str:
        return "CAST(? AS NUMERIC)"

    def number(self, text: str) -> str:
        return self._numeric(text, _REAL)

    def in_form(self, text: str, form: Form) -> str:
        # A regular expression takes as long as it is: the usual ones are told by a short one that does not count.
        lengths = (f"{text} LIKE '{one.replace('0', '_')}{form.suffix}'" for one in form.usual_starts)
        separators = dict.fromkeys(form.start.replace("0", ""))
        usual = [
            f"({' OR '.join(lengths)})",
            *(f"STRPOS({text}, '{one}') = {form.start.index(one) + 1}" for one in separators),
            self.matches(text, f"(([{''.join(separators)}]|)[0-9])+" + form.ending),
        ]
        return f"(({' AND '.join(usual)}) OR {self.matches(text, form.pattern)})"

    def text(self, text: str) -> str:
        return f'({text}) COLLATE "C"'

    def encoded(self, text: str) -> str:
        return self.text(f"UPPER(ENCODE(CONVERT_TO({text}, 'UTF8'), 'hex'))")

    def _numeric(self, text: str, pattern: str) -> str:
        readable = f"LENGTH({text}) <= {self._LONGEST} AND {self.matches(text, pattern)}"
        return f"CASE WHEN {readable} THEN CAST({text} AS NUMERIC) END"


class MySQLDialect(Dialect):
    """MySQL and MariaDB, which only warn about what they cannot read, and compare text without regard to case."""

    text_bound = "CAST(CONVERT(? USING utf8mb4) AS BINARY)"
    _MOST_PLACES = 30

    def matches(self, text: str, pattern: str) -> str:
        # $ is also before a last end of line.
        return f"({text} REGEXP '^{pattern}$' AND {text} NOT REGEXP '[[:cntrl:]]')"

    def integer(self, text: str) -> str:
        return f"CASE WHEN {self.matches(text, _INTEGER)} THEN CAST({text} AS DECIMAL(65, 0)) END"

    def decimal(self, text: str, type: Type) -> str | None:
        if type.scale > self._MOST_PLACES:
            return None
        return f"CASE WHEN {self.matches(text, _DECIMAL)} THEN CAST({text} AS DECIMAL(65, {type.scale})) END"

    def decimal_bound(self, type: Type) -> str:
        return f"CAST(? AS DECIMAL(65, {type.scale}))"

    def number(self, text: str) -> str:
        return f"CASE WHEN {self.matches(text, _REAL)} THEN {text} + 0e0 END"

    def text(self, text: str) -> str:
        return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"

    def encoded(self, text: str) -> str:
        return self.text(f"HEX(CONVERT({text} USING utf8mb4))")


DUCKDB = DuckDBDialect()
SQLITE = SQLiteDialect()
POSTGRES = PostgresDialect()
MYSQL = MySQLDialect()
