"""DuckDB's arithmetic and functions of numbers in Spark's words: they round, overflow and divide by zero otherwise."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.duckdb_dialect.casts import half_away, in_range, raised
from penstock.sql.duckdb_dialect.constants import constant_number
from penstock.sql.duckdb_dialect.functions import Call, Written
from penstock.sql.duckdb_dialect.repeated_values import once


def _arithmetic(operator: str) -> Callable[[Call], str]:
    def text_of(call: Call) -> str:
        made = f"({f' {operator} '.join(call.values)})"
        if call.result.id == "DECIMAL":
            _check_digits(operator, call)
            return f"CAST({made} AS {call.result.spark})"
        if call.result.family in ("unsigned", "huge"):
            return in_range(f"CAST({made} AS {call.result.spark})", call.result)
        return made

    return text_of


def _check_digits(operator: str, call: Call) -> None:
    """Refuse where Spark would drop digits of the result before it is cast."""
    (p1, s1), (p2, s2) = ((kind.width, kind.scale) for kind in call.types)
    scale = s1 + s2 if operator == "*" else max(s1, s2)
    width = p1 + p2 + 1 if operator == "*" else max(p1 - s1, p2 - s2) + scale + 1
    # Spark keeps six digits after the point, or as many as the digits before it leave.
    if width > 38 and max(38 - (width - scale), min(scale, 6)) < scale:
        raise call.refused("Spark has too few digits for its result")


def _negated(call: Call) -> str:
    return in_range(f"(- {call.values[0]})", call.result)


def _divided(call: Call) -> str:
    value, divisor = call.values
    kind = call.result.spark  # Spark divides FLOATs as DOUBLE
    if constant_number(call.nodes[1]):
        return f"CAST({value} / {divisor} AS {kind})"

    def text_of(a: str, b: str) -> str:
        sign = f"(CASE WHEN CAST({b} AS STRING) = '-0.0' THEN -1 ELSE 1 END * signum({a}))"
        infinite = f"{sign} * CAST('Infinity' AS {call.result.spark})"
        undefined = f"CAST('NaN' AS {call.result.spark})"
        zero = f"CASE WHEN {a} = 0 OR isnan({a}) THEN {undefined} ELSE CAST({infinite} AS {call.result.spark}) END"
        known = f"{a} IS NOT NULL AND {b} IS NOT NULL"
        return f"CASE WHEN {b} <> 0 THEN CAST({a} / {b} AS {kind}) WHEN {known} THEN {zero} END"

    return once(value, lambda a: once(divisor, lambda b: f"({text_of(a, b)})"))


def _whole_division(call: Call) -> str:
    value, divisor = call.values
    if call.result.family in ("float", "double"):
        return once(divisor, lambda b: f"CASE WHEN {b} <> 0 THEN CAST({value} / {b} AS {call.result.spark}) END")
    if call.result.family != "int":
        raise call.refused()
    made = f"CAST({value} div {divisor} AS {call.result.spark})"
    if constant_number(call.nodes[1]):
        return made
    return once(divisor, lambda b: f"CASE WHEN {b} <> 0 THEN CAST({value} div {b} AS {call.result.spark}) END")


def _remainder(call: Call) -> str:
    value, divisor = call.values
    if call.result.family in ("float", "double"):
        if not constant_number(call.nodes[1]):
            raise call.refused("by what is no constant")
        return f"({value} % {divisor})"
    if call.result.family == "decimal":
        raise call.refused()
    least = f"CAST({-(2 ** (_BITS[call.result.id] - 1))} AS {call.result.spark})"
    beyond = f"WHEN {{b}} = -1 AND {value} = {least} THEN {raised('Overflow in division')}"
    known = constant_number(call.nodes[1])
    return once(
        divisor,
        lambda b: f"CASE {beyond.replace('{b}', b) if known is None else ''} WHEN {b} <> 0 THEN {value} % {b} END",
    )


_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}


def _floor(value: str) -> str:
    return once(value, lambda v: f"CASE WHEN rint({v}) > {v} THEN rint({v}) - 1D ELSE rint({v}) END")


def _ceiling(value: str) -> str:
    """By the floor of the negative number: what lies between -1 and 0 becomes -0.0, as it does in C."""
    return once(value, lambda v: f"(- {_floor(f'(- {v})')})")


def _nearest(value: str) -> str:
    return once(value, lambda v: f"({half_away(v)})")


def _of_float(way: Callable[[str], str]) -> Callable[[Call], str]:
    """A whole number next to a FLOAT, by way of DOUBLE, which holds it too."""
    return lambda call: f"CAST({way(f'CAST({call.values[0]} AS DOUBLE)')} AS FLOAT)"


def _rounded(call: Call) -> str:
    """A DOUBLE rounded to digits, by multiplication, as DuckDB does it."""
    digits = constant_number(call.nodes[1])
    if not isinstance(digits, int) or abs(digits) > 22:
        raise call.refused("with digits that are no small constant")
    power = f"1e{abs(digits)}D"
    there, back = ("*", "/") if digits >= 0 else ("/", "*")

    def text_of(v: str) -> str:
        scaled = once(f"({v} {there} {power})", lambda s: f"({half_away(s)})")
        rounded = f"({scaled} {back} {power})"
        # What has become too large is left as it was, or, rounded before the point, is 0.
        kept = v if digits >= 0 else "0D"
        return once(
            rounded, lambda r: f"CASE WHEN isnan({r}) OR abs({r}) = DOUBLE('Infinity') THEN {kept} ELSE {r} END"
        )

    return once(call.values[0], text_of)


def _decimal_rounded(call: Call) -> str:
    digits = constant_number(call.nodes[1])
    if not isinstance(digits, int) or digits < 0:
        raise call.refused("with digits that are no constant from 0 on")
    return f"CAST(round({call.values[0]}, {digits}) AS {call.result.spark})"


def _positive(function: str, message: str, smallest: str) -> str:
    return f"CASE WHEN {{0}} {smallest} 0 THEN {raised(message)} ELSE {function} END"


def _most(function: str) -> Callable[[Call], str]:
    return lambda call: call.values[0] if len(call.values) == 1 else f"{function}({', '.join(call.values)})"


def _greatest_families() -> dict[str, Written]:
    kinds = ("int", "huge", "decimal", "double", "float", "text", "date", "timestamp", "timestamptz")
    return {f"{name}({kind}*)": _most(name) for name in ("greatest", "least") for kind in kinds}


NUMBERS: dict[str, Written] = {
    **{
        f"{operator}({kind},{kind})": _arithmetic(operator)
        for operator in "+-*"
        for kind in ("int", "unsigned", "huge", "decimal", "float", "double")
    },
    **{f"-({kind})": _negated for kind in ("int", "huge", "decimal", "float", "double")},
    **{f"+({kind})": "{0}" for kind in ("int", "huge", "decimal", "float", "double")},
    **{f"/({kind},{kind})": _divided for kind in ("float", "double")},
    **{f"{name}({kind},{kind})": _whole_division for name in ("//", "divide") for kind in ("int", "float", "double")},
    **{f"{name}({kind},{kind})": _remainder for name in ("%", "mod") for kind in ("int", "float", "double", "decimal")},
    **{f"abs({kind})": "abs({0})" for kind in ("int", "huge", "decimal", "float", "double")},
    **{f"sign({kind})": "CAST(signum({0}) AS {type})" for kind in ("int", "huge", "decimal")},
    **{
        f"sign({kind})": "CAST(CASE WHEN isnan({0}) THEN 0 ELSE signum({0}) END AS {type})"
        for kind in ("float", "double")
    },
    **{f"{name}(double)": lambda call: _ceiling(call.values[0]) for name in ("ceil", "ceiling")},
    **{f"{name}(decimal)": "CAST(ceil({0}) AS {type})" for name in ("ceil", "ceiling")},
    "floor(double)": lambda call: _floor(call.values[0]),
    **{
        f"{name}(float)": _of_float(way)
        for name, way in (("floor", _floor), ("ceil", _ceiling), ("ceiling", _ceiling), ("round", _nearest))
    },
    "floor(decimal)": "CAST(floor({0}) AS {type})",
    "trunc(double)": lambda call: once(
        call.values[0], lambda v: f"CASE WHEN {v} < 0 THEN {_ceiling(v)} ELSE {_floor(v)} END"
    ),
    "round(double)": lambda call: _nearest(call.values[0]),
    "round(decimal)": "CAST(round({0}, 0) AS {type})",
    "round(int)": "{0}",
    "round(double,int)": _rounded,
    "round(decimal,int)": _decimal_rounded,
    # In C, 1 to whatever power is 1, and so is -1 to an infinite one.
    **{
        f"{name}(double,double)": "CASE WHEN {1} IS NOT NULL AND ({0} = 1 OR ({0} = -1 AND"
        " abs({1}) = DOUBLE('Infinity'))) THEN 1D ELSE power({0}, {1}) END"
        for name in ("**", "^", "pow", "power")
    },
    "sqrt(double)": _positive("sqrt({0})", "cannot take the square root of a negative number", "<"),
    "exp(double)": "exp({0})",
    "ln(double)": _positive("ln({0})", "cannot take the logarithm of zero or less", "<="),
    "log10(double)": _positive("log10({0})", "cannot take the logarithm of zero or less", "<="),
    "log(double)": _positive("log10({0})", "cannot take the logarithm of zero or less", "<="),
    "log2(double)": _positive("log2({0})", "cannot take the logarithm of zero or less", "<="),
    "cbrt(double)": "cbrt({0})",
    **{
        f"{name}(double)": f"CASE WHEN abs({{0}}) = DOUBLE('Infinity') THEN {raised('input value is out of range')}"
        f" ELSE {name}({{0}}) END"
        for name in ("sin", "cos", "tan")
    },
    **{f"{name}(double)": f"{name}({{0}})" for name in ("atan", "degrees", "radians")},
    "pi()": "pi()",
    **{f"isnan({kind})": "CASE WHEN {0} IS NOT NULL THEN isnan({0}) END" for kind in ("float", "double")},
    "isinf(double)": "(abs({0}) = DOUBLE('Infinity'))",
    "isfinite(double)": "(NOT isnan({0}) AND abs({0}) <> DOUBLE('Infinity'))",
    "&(int,int)": "({0} & {1})",
    "|(int,int)": "({0} | {1})",
    "xor(int,int)": "({0} ^ {1})",
    "~(int)": "(~ {0})",
    **_greatest_families(),
}
