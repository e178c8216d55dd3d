"""DuckDB's functions of dates, times and intervals in Spark's words. An interval is a struct of its three parts."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.sql.duckdb_dialect.casts import in_years
from penstock.sql.duckdb_dialect.constants import constant_text, interval, text
from penstock.sql.duckdb_dialect.functions import Call, Written
from penstock.sql.duckdb_dialect.repeated_values import once

_SECOND, _HOUR, _DAY = 1_000_000, 3_600_000_000, 86_400_000_000
_NAMES = {
    "%a": ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"),
    "%A": ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    "%b": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "%B": (
        *("January", "February", "March", "April", "May", "June", "July"),
        *("August", "September", "October", "November", "December"),
    ),
}


def _named(names: tuple[str, ...], number: str) -> str:
    cases = " ".join(f"WHEN {place} THEN {text(name)}" for place, name in enumerate(names, 1))
    return f"CASE {number} {cases} END"


def _padded(number: str, width: int) -> str:
    return f"lpad(CAST({number} AS STRING), {width}, '0')"


# Parts of a date; {0} is a date or a timestamp.
_DATE_PARTS = {
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "quarter": "quarter({0})",
    "week": "weekofyear({0})",
    "weekofyear": "weekofyear({0})",
    "yearweek": "(extract(YEAROFWEEK FROM {0}) * 100 + weekofyear({0}))",
    "isoyear": "extract(YEAROFWEEK FROM {0})",
    "dayofweek": "(dayofweek({0}) - 1)",
    "weekday": "(dayofweek({0}) - 1)",
    "dow": "(dayofweek({0}) - 1)",
    "isodow": "(weekday({0}) + 1)",
    "dayofyear": "dayofyear({0})",
    "doy": "dayofyear({0})",
    "dayofmonth": "day({0})",
    "century": "((year({0}) + 99) div 100)",
    "decade": "(year({0}) div 10)",
}
_SECONDS = "extract(SECOND FROM {0})"
_TIME_PARTS = {
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "second({0})",
    "millisecond": f"CAST(floor({_SECONDS} * 1000) AS BIGINT)",
    "microsecond": f"CAST({_SECONDS} * 1000000 AS BIGINT)",
}
_ALIASES = {
    **{f"{part}s": part for part in (*_TIME_PARTS, "year", "month", "day", "quarter", "week")},
    **{"y": "year", "mon": "month", "d": "day", "h": "hour", "m": "minute", "s": "second", "min": "minute"},
    **{"yr": "year", "hr": "hour", "sec": "second", "ms": "millisecond", "us": "microsecond"},
}


def _part_named(call: Call) -> str:
    part = constant_text(call.nodes[0])
    if part is None:
        raise call.refused("with a part that is no constant")
    return _ALIASES.get(part.lower(), part.lower())


def _part(call: Call) -> str:
    part, kind = _part_named(call), call.types[1].family
    parts = _DATE_PARTS if kind == "date" else _DATE_PARTS | _TIME_PARTS
    if part not in parts:
        raise call.refused(f"{part!r}")
    made = f"CAST({{}} AS {call.result.spark})"
    return once(call.values[1], lambda v: in_years(v, made.format(parts[part].format(v))))


def _microseconds(value: str) -> str:
    """Microseconds since 1970 of a time without zone."""
    days = f"CAST(datediff(CAST({value} AS DATE), DATE'1970-01-01') AS BIGINT)"
    return (
        f"({days} * {_DAY} + hour({value}) * {_HOUR}L + minute({value}) * {60 * _SECOND}L"
        f" + CAST({_SECONDS.format(value)} * {_SECOND} AS BIGINT))"
    )


def microseconds(value: str, family: str) -> str:
    """Microseconds since 1970 of a time; of a date, of its midnight."""
    if family == "date":
        return f"(CAST(datediff({value}, DATE'1970-01-01') AS BIGINT) * {_DAY})"
    return f"unix_micros({value})" if family == "timestamptz" else _microseconds(value)


_TRUNCATED = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK"}


def _date_trunc(call: Call) -> str:
    part, family = _part_named(call), call.types[1].family
    call.check_zone()
    if family == "timestamptz":
        if part not in (*_TRUNCATED, "day", "hour", "minute", "second"):
            raise call.refused(f"{part!r}")
        return f"date_trunc('{part}', {call.values[1]})"

    def text_of(v: str) -> str:
        if part in _TRUNCATED:
            return f"CAST(trunc(CAST({v} AS DATE), '{_TRUNCATED[part]}') AS {call.result.spark})"
        if part == "day" or (family == "date" and part in ("hour", "minute", "second")):
            return f"CAST(CAST({v} AS DATE) AS {call.result.spark})"
        if part == "hour":
            return f"({v} - make_dt_interval(0, 0, minute({v}), {_SECONDS.format(v)}))"
        if part == "minute":
            return f"({v} - make_dt_interval(0, 0, 0, {_SECONDS.format(v)}))"
        if part == "second":
            return f"({v} - make_dt_interval(0, 0, 0, {_SECONDS.format(v)} - second({v})))"
        raise call.refused(f"{part!r}")

    return once(call.values[1], text_of)


def _units(value: str, part: str, family: str) -> str | None:
    """How many units lie before a time, of those that have the same length, or are of the calendar."""
    match part:
        case "year":
            return f"CAST(year({value}) AS BIGINT)"
        case "quarter":
            return f"(CAST(year({value}) AS BIGINT) * 4 + quarter({value}))"
        case "month":
            return f"(CAST(year({value}) AS BIGINT) * 12 + month({value}))"
        case "day":
            return f"CAST(datediff(CAST({value} AS DATE), DATE'1970-01-01') AS BIGINT)"
    sizes = {"hour": _HOUR, "minute": 60 * _SECOND, "second": _SECOND, "millisecond": 1000, "microsecond": 1}
    if part not in sizes:
        return None
    counted = microseconds(value, family)
    return once(counted, lambda m: f"(({m} - pmod({m}, {sizes[part]}L)) div {sizes[part]}L)")


def _date_diff(call: Call) -> str:
    part, family = _part_named(call), call.types[1].family
    if family == "timestamptz" and part in ("hour", "minute"):
        raise call.refused("of times with a zone")
    if part == "week":  # whole weeks between the days, and not Mondays
        days = f"datediff(CAST({call.values[2]} AS DATE), CAST({call.values[1]} AS DATE))"
        return f"CAST({days} div 7 AS BIGINT)"
    first, last = (once(value, lambda v: _units(v, part, family)) for value in call.values[1:])
    if first is None or last is None:
        raise call.refused(f"{part!r}")
    return f"({last} - {first})"


def _moved(sign: str) -> Callable[[Call], str]:
    """A time that an interval is added to: months first, then days, then the rest."""

    def text_of(call: Call) -> str:
        value, by = call.values
        if call.types[0].family == "interval":
            value, by = by, value
        call.check_zone()
        months, days = "make_ym_interval(0, {i}.months)", "make_dt_interval({i}.days)"
        rest = f"make_dt_interval(0, 0, 0, CAST({{i}}.microseconds AS DECIMAL(18,0)) / {_SECOND})"
        parts = [months, days, rest]
        if call.result.family == "timestamptz" and not _has_one_part(by):
            raise call.refused("of an interval that is not of months, days or time alone")

        def text_of_both(v: str, i: str) -> str:
            moved = f"CAST({v} AS {call.result.spark})"
            return in_years(v, f"({' '.join([moved, *(f'{sign} {part}' for part in parts)])})".replace("{i}", i))

        return once(value, lambda v: once(by, lambda i: text_of_both(v, i)))

    return text_of


def _has_one_part(interval: str) -> bool:
    """Whether an interval is a constant of one part: DuckDB has an order of its own for several."""
    parts = re.findall(r"CAST\((-?\d+) AS", interval)
    return interval.startswith("named_struct(") and len(parts) == 3 and sum(part != "0" for part in parts) <= 1


def _between(call: Call) -> str:
    """The time between two timestamps, in days and the rest."""
    call.check_zone()
    family = call.types[0].family
    last, first = (once(value, lambda v: microseconds(v, family)) for value in call.values)
    return once(
        f"({last} - {first})",
        lambda m: f"CASE WHEN {m} IS NOT NULL THEN {interval('0', f'{m} div {_DAY}L', f'{m} % {_DAY}L')} END",
    )


def _strftime(call: Call) -> str:
    # DuckDB takes the format and the time in either order.
    place = 0 if call.types[0].family != "text" else 1
    format = constant_text(call.nodes[1 - place])
    if format is None:
        raise call.refused("with a format that is no constant")
    is_date = call.types[place].family == "date"

    def text_of(v: str) -> str:
        parts, rest = [], format
        while rest:
            size = 1 if rest[0] != "%" else 3 if rest[:2] == "%-" else 2
            parts.append(_formatted(rest[:size], v, is_date, call))
            rest = rest[size:]
        if not parts:
            raise call.refused("with an empty format")
        joined = f"concat({', '.join(parts)})"
        return f"CASE WHEN {v} IS NOT NULL THEN {in_years(v, joined)} END"

    return once(call.values[place], text_of)


def _formatted(code: str, value: str, is_date: bool, call: Call) -> str:
    if not code.startswith("%"):
        return text(code)
    if code in ("%b", "%B"):
        return _named(_NAMES[code], f"month({value})")
    if code in ("%a", "%A"):
        return _named(_NAMES[code], f"dayofweek({value})")
    hour, minute, second = ("0", "0", "0") if is_date else (f"hour({value})", f"minute({value})", f"second({value})")
    micros = "0" if is_date else f"CAST({_SECONDS.format(value)} * {_SECOND} AS BIGINT) % {_SECOND}"
    numbers = {
        "%Y": (f"year({value})", 4), "%m": (f"month({value})", 2), "%d": (f"day({value})", 2), "%H": (hour, 2),
        "%M": (minute, 2), "%S": (second, 2), "%f": (micros, 6), "%j": (f"dayofyear({value})", 3),
        "%y": (f"(year({value}) % 100)", 2), "%I": (f"(({hour} + 11) % 12 + 1)", 2),
    }  # fmt: skip
    if code == "%%":
        return "'%'"
    if code == "%p":
        return f"CASE WHEN {hour} < 12 THEN 'AM' ELSE 'PM' END"
    if code[0] + code[-1] in numbers:
        number, width = numbers[code[0] + code[-1]]
        if len(code) == 2:
            return _padded(number, width)
        if code in ("%-d", "%-m", "%-H", "%-M", "%-S", "%-I"):
            return f"CAST({number} AS STRING)"
    raise call.refused(f"with {code!r} in its format")


_INTERVALS = {
    "to_years": ("12 * {0}", "0", "0"),
    "to_months": ("{0}", "0", "0"),
    "to_weeks": ("0", "7 * {0}", "0"),
    "to_days": ("0", "{0}", "0"),
    "to_hours": ("0", "0", f"{_HOUR} * {{0}}"),
    "to_minutes": ("0", "0", f"{60 * _SECOND} * {{0}}"),
    "to_microseconds": ("0", "0", "{0}"),
}


def _interval_of(call: Call) -> str:
    parts = _INTERVALS[call.name]
    return once(
        call.values[0],
        lambda v: f"CASE WHEN {v} IS NOT NULL THEN {interval(*(part.format(v) for part in parts))} END",
    )


_MOMENTS = ("date", "timestamp", "timestamptz")
TIMES: dict[str, Written] = {
    **{f"{name}(text,{kind})": _part for name in ("date_part", "datepart") for kind in _MOMENTS},
    **{
        f"{part}({kind})": in_years("{0}", f"CAST({way} AS {{type}})")
        for parts, kinds in ((_DATE_PARTS, _MOMENTS), (_TIME_PARTS, _MOMENTS[1:]))
        for part, way in parts.items()
        for kind in kinds
    },
    **{f"{name}(text,{kind})": _date_trunc for name in ("date_trunc", "datetrunc") for kind in _MOMENTS},
    **{f"{name}(text,{kind},{kind})": _date_diff for name in ("date_diff", "datediff") for kind in _MOMENTS},
    "+(date,int)": in_years("{0}", "date_add({0}, CAST({1} AS INT))"),
    "+(int,date)": in_years("{1}", "date_add({1}, CAST({0} AS INT))"),
    "-(date,int)": in_years("{0}", "date_sub({0}, CAST({1} AS INT))"),
    "-(date,date)": in_years("{0}", in_years("{1}", "CAST(datediff({0}, {1}) AS BIGINT)")),
    **{f"-({kind},{kind})": _between for kind in ("timestamp", "timestamptz")},
    **{f"{sign}({kind},interval)": _moved(sign) for sign in "+-" for kind in _MOMENTS},
    **{f"+(interval,{kind})": _moved("+") for kind in _MOMENTS},
    **{f"date_add({kind},interval)": _moved("+") for kind in _MOMENTS},
    **{f"{name}({kind})": _interval_of for name in _INTERVALS for kind in ("int",)},
    **{f"strftime({kind},text)": _strftime for kind in _MOMENTS},
    **{f"strftime(text,{kind})": _strftime for kind in _MOMENTS},
    **{f"monthname({kind})": lambda call: _named(_NAMES["%B"], f"month({call.values[0]})") for kind in _MOMENTS},
    **{f"dayname({kind})": lambda call: _named(_NAMES["%A"], f"dayofweek({call.values[0]})") for kind in _MOMENTS},
    **{f"last_day({kind})": "last_day(CAST({0} AS DATE))" for kind in _MOMENTS},
    **{
        f"epoch({kind})": lambda call: (
            f"(CAST({once(call.values[0], lambda v: microseconds(v, call.types[0].family))} AS DOUBLE) / 1000000D)"
        )
        for kind in _MOMENTS
    },
    **{
        f"epoch_us({kind})": lambda call: once(call.values[0], lambda v: microseconds(v, call.types[0].family))
        for kind in _MOMENTS
    },
    "make_date(int,int,int)": "make_date(CAST({0} AS INT), CAST({1} AS INT), CAST({2} AS INT))",
    "to_timestamp(double)": "timestamp_micros(CAST(rint({0} * 1000000) AS BIGINT))",
    **{f"{name}()": "current_timestamp()" for name in ("now", "get_current_timestamp", "transaction_timestamp")},
    **{f"{name}()": "current_date()" for name in ("current_date", "today")},
}
