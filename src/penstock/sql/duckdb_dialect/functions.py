"""DuckDB's scalar functions in Spark's words, by the families of the types that DuckDB has bound them to.

What is not here is refused: a function of the same name may do something else in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError
from penstock.sql.duckdb_dialect.casts import half_away, in_range, raised
from penstock.sql.duckdb_dialect.constants import constant_number, constant_text, text
from penstock.sql.duckdb_dialect.repeated_values import once


@dataclass(frozen=True)
class Call:
    """A call of a function: the texts of its arguments, what they are in the plan, and the types."""

    name: str
    values: Sequence[str]
    nodes: Sequence[Node]
    types: Sequence[BoundType]
    result: BoundType
    data: Node = field(default_factory=dict)
    fixed_zone: bool = True  # whether the clocks of the session's time zone never change

    @property
    def families(self) -> str:
        """The families of the arguments, as the tables write them."""
        return ",".join(kind.family for kind in self.types)

    def check_zone(self) -> None:
        """Refuse where DuckDB and Spark count otherwise across a change of clocks."""
        if not self.fixed_zone and any(kind.family == "timestamptz" for kind in self.types):
            raise self.refused("in a time zone whose clocks change")

    def refused(self, why: str = "") -> UntranslatableError:
        """The error that says what is not translated."""
        kinds = ", ".join(kind.duckdb for kind in self.types)
        return UntranslatableError(f"{self.name}({kinds}){': ' + why if why else ''}")


Written = str | Callable[[Call], str]


def function_text(call: Call, tables: Sequence[dict[str, Written]]) -> str:
    """A call, as Spark's text."""
    alike = call.types[0].family if call.types else ""
    names = [f"{call.name}({call.families})"]
    if len({kind.family for kind in call.types}) == 1:
        names.append(f"{call.name}({alike}*)")
    for table in tables:
        for name in names:
            if name in table:
                return written(table[name], call)
    raise call.refused()


def written(way: Written, call: Call) -> str:
    """What a way of the tables makes of a call."""
    if not isinstance(way, str):
        return way(call)

    def fill(place: int, values: tuple[str, ...]) -> str:
        if place == len(call.values):
            return way.format(*values, type=call.result.spark, all=", ".join(values))
        again = way.count(f"{{{place}}}") > 1
        value = call.values[place]
        return once(value, lambda v: fill(place + 1, (*values, v))) if again else fill(place + 1, (*values, value))

    return fill(0, ())


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
    if constant_number(call.nodes[1]):
        return f"({value} / {divisor})"

    def text_of(a: str, b: str) -> str:
        sign = f"(CASE WHEN CAST({b} AS STRING) = '-0.0' THEN -1 ELSE 1 END * signum({a}))"
        infinite = f"{sign} * CAST('Infinity' AS {call.result.spark})"
        undefined = f"CAST('NaN' AS {call.result.spark})"
        zero = f"CASE WHEN {a} = 0 OR isnan({a}) THEN {undefined} ELSE CAST({infinite} AS {call.result.spark}) END"
        return f"CASE WHEN {b} <> 0 THEN {a} / {b} WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {zero} END"

    return once(value, lambda a: once(divisor, lambda b: f"({text_of(a, b)})"))


def _whole_division(call: Call) -> str:
    value, divisor = call.values
    if call.result.family in ("float", "double"):
        return once(divisor, lambda b: f"CASE WHEN {b} <> 0 THEN {value} / {b} END")
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


def _like(negated: bool, insensitive: bool) -> Callable[[Call], str]:
    def text_of(call: Call) -> str:
        pattern = constant_text(call.nodes[1])
        # DuckDB's patterns have no escapes: a backslash is one.
        shown = text(pattern.replace("\\", "\\\\")) if pattern is not None else _escaped(call.values[1])
        value = call.values[0]
        if insensitive:
            value, shown = letters("lower", value), letters("lower", shown)
        return f"({value} {'NOT ' if negated else ''}LIKE {shown})"

    return text_of


def _escaped(pattern: str) -> str:
    return f"replace({pattern}, {text(chr(92))}, {text(chr(92) * 2)})"


def _like_escape(call: Call) -> str:
    pattern, escape = constant_text(call.nodes[1]), constant_text(call.nodes[2])
    if pattern is None or escape is None or len(escape) != 1:
        raise call.refused("with a pattern that is no constant")
    made, rest = "", pattern
    while rest:
        if rest[0] == escape:
            if len(rest) == 1:
                raise call.refused("with an escape at the end of the pattern")
            made += "\\" + rest[1] if rest[1] in "%_\\" else rest[1]
            rest = rest[2:]
        else:
            made += "\\\\" if rest[0] == "\\" else rest[0]
            rest = rest[1:]
    negated = "NOT " if call.name.startswith("not_") else ""
    return f"({call.values[0]} {negated}LIKE {text(made)})"


def _substring(call: Call) -> str:
    start = constant_number(call.nodes[1])
    length = constant_number(call.nodes[2]) if len(call.nodes) > 2 else None
    if not isinstance(start, int) or start < 1 or (len(call.nodes) > 2 and (not isinstance(length, int) or length < 0)):
        raise call.refused("with positions that are no constants from 1 on")
    return f"substring({call.values[0]}, {start}{'' if length is None else f', {length}'})"


def _split(call: Call) -> str:
    separator = constant_text(call.nodes[1])
    if separator is None:
        raise call.refused("by what is no constant")
    if not separator:
        raise call.refused("by an empty text")
    # Spark's separators are patterns.
    pattern = "".join(f"[{c}]" if c not in "[]^\\&" else "\\" + c for c in separator)
    return f"split({call.values[0]}, {text(pattern)}, -1)"


# Letters that DuckDB and Java have other pairs for, as Java's patterns write them; the first is known here.
_PAIRS = {"upper": ("ß", "ẞ"), "lower": ("İ", "i")}
_UNLIKE = {
    "upper": "19b 264 1c8a 1f80-1f87 1f90-1f97 1fa0-1fa7 1fb3 1fc3 1ff3 a7cd a7cf a7d3 a7d5 a7db"
    " 10d70-10d85 16ebb-16ed3",
    "lower": "1c89 a7cb-a7cc a7ce a7d2 a7d4 a7da a7dc 10d50-10d65 16ea0-16eb8",
}


def letters(function: str, value: str) -> str:
    """Upper or lower case letter by letter, and only to one letter, as DuckDB does it."""
    known, other = _PAIRS[function]
    ranges = (part.split("-") for part in _UNLIKE[function].split())
    unlike = text(f"[{''.join('-'.join(f'{chr(92)}x{{{end}}}' for end in ends) for ends in ranges)}]")

    def whole(v: str) -> str:
        each = f"CASE WHEN c = '{known}' THEN '{other}' WHEN length({function}(c)) = 1 THEN {function}(c) ELSE c END"
        one_by_one = f"array_join(transform(regexp_extract_all({v}, '(?s)(.)', 1), c -> {each}), '')"
        beyond = raised(f"{function} of a letter that DuckDB has another pair for")
        return (
            f"CASE WHEN {v} RLIKE '^[ -~]*$' THEN {function}({v}) WHEN {v} RLIKE {unlike} THEN {beyond}"
            f" ELSE {one_by_one} END"
        )

    return once(value, whole)


def _ascii_only(function: str) -> str:
    return f"CASE WHEN {{0}} RLIKE '[^ -~]' THEN {raised('of letters beyond ASCII')} ELSE {function} END"


def _most(function: str) -> Callable[[Call], str]:
    return lambda call: call.values[0] if len(call.values) == 1 else f"{function}({', '.join(call.values)})"


def _greatest_families() -> dict[str, Written]:
    kinds = ("int", "huge", "decimal", "double", "float", "text", "date", "timestamp", "timestamptz")
    return {f"{name}({kind}*)": _most(name) for name in ("greatest", "least") for kind in kinds}


# All kinds of spaces, but neither tabs nor ends of lines.
_SPACES = {
    "trim": text(r"^\p{Zs}+|\p{Zs}+\z"),
    "ltrim": text(r"^\p{Zs}+"),
    "rtrim": text(r"\p{Zs}+\z"),
}

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
    "floor(decimal)": "CAST(floor({0}) AS {type})",
    "trunc(double)": lambda call: once(
        call.values[0], lambda v: f"CASE WHEN {v} < 0 THEN {_ceiling(v)} ELSE {_floor(v)} END"
    ),
    "round(double)": lambda call: once(call.values[0], lambda v: f"({half_away(v)})"),
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

TEXTS: dict[str, Written] = {
    "||(text,text)": "concat({0}, {1})",
    "||(list,list)": "concat({0}, {1})",
    "concat(text*)": "concat_ws('', {all})",
    "concat_ws(text*)": lambda call: once(
        call.values[0], lambda v: f"CASE WHEN {v} IS NOT NULL THEN concat_ws({v}, {', '.join(call.values[1:])}) END"
    ),
    **{f"{name}(text)": lambda call: letters("upper", call.values[0]) for name in ("upper", "ucase")},
    **{f"{name}(text)": lambda call: letters("lower", call.values[0]) for name in ("lower", "lcase")},
    **{f"{name}(text)": "CAST(length({0}) AS BIGINT)" for name in ("length", "len", "char_length", "character_length")},
    "strlen(text)": "CAST(octet_length({0}) AS BIGINT)",
    "octet_length(blob)": "CAST(octet_length({0}) AS BIGINT)",
    **{f"{name}(text)": f"regexp_replace({{0}}, {spaces}, '')" for name, spaces in _SPACES.items()},
    "trim(text,text)": "trim(BOTH {1} FROM {0})",
    "ltrim(text,text)": "trim(LEADING {1} FROM {0})",
    "rtrim(text,text)": "trim(TRAILING {1} FROM {0})",
    **{f"{name}(text,int,int)": _substring for name in ("substring", "substr")},
    **{f"{name}(text,int)": _substring for name in ("substring", "substr")},
    "left(text,int)": "CASE WHEN {1} >= 0 THEN substring({0}, 1, CAST({1} AS INT))"
    " WHEN {1} < 0 THEN substring({0}, 1, CAST(greatest(length({0}) + {1}, 0) AS INT)) END",
    "right(text,int)": "CASE WHEN {1} < 0 THEN substring({0}, CAST(1 - {1} AS INT))"
    " WHEN {1} >= 0 THEN substring({0}, CAST(greatest(length({0}) - {1}, 0) + 1 AS INT)) END",
    "replace(text,text,text)": "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END",
    "reverse(text)": _ascii_only("reverse({0})"),
    "repeat(text,int)": "repeat({0}, CAST({1} AS INT))",
    **{
        f"{name}(text,int,text)": f"CASE WHEN {{2}} = '' AND {{1}} > length({{0}}) THEN"
        f" {raised('nothing to pad with')} ELSE {name}({{0}}, CAST({{1}} AS INT), {{2}}) END"
        for name in ("lpad", "rpad")
    },
    **{f"{name}(text,text)": "startswith({0}, {1})" for name in ("starts_with", "prefix", "^@")},
    **{f"{name}(text,text)": "endswith({0}, {1})" for name in ("ends_with", "suffix")},
    "contains(text,text)": "contains({0}, {1})",
    **{f"{name}(text,text)": "CAST(instr({0}, {1}) AS BIGINT)" for name in ("strpos", "instr", "position")},
    **{f"{name}(text,text)": _split for name in ("string_split", "str_split", "split", "string_to_array")},
    "split_part(text,text,int)": "CASE WHEN {2} = 0 THEN '' WHEN {1} = '' THEN CASE WHEN abs({2}) = 1 THEN {0} ELSE ''"
    " END ELSE split_part({0}, {1}, CAST({2} AS INT)) END",
    "md5(text)": "md5({0})",
    "sha256(text)": "sha2({0}, 256)",
    # With the mark of the order of bytes in front, for else a character that looks like one would be taken for it.
    "chr(int)": f"CASE WHEN {{0}} < 0 OR {{0}} > 1114111 OR {{0}} BETWEEN 55296 AND 57343 THEN"
    f" {raised('no character has this number')}"
    " ELSE decode(unhex(concat('0000FEFF', lpad(hex({0}), 8, '0'))), 'UTF-32') END",
    "translate(text,text,text)": "translate({0}, {1}, {2})",
    "~~(text,text)": _like(False, False),
    "!~~(text,text)": _like(True, False),
    "~~*(text,text)": _like(False, True),
    "!~~*(text,text)": _like(True, True),
    "like_escape(text,text,text)": _like_escape,
    "not_like_escape(text,text,text)": _like_escape,
    "error(text)": "raise_error({0})",
}
