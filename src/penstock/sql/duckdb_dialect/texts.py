"""DuckDB's functions of texts in Spark's words: letters have one pair each, and a backslash is no escape."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.duckdb_dialect.casts import raised
from penstock.sql.duckdb_dialect.constants import constant_number, constant_text, text
from penstock.sql.duckdb_dialect.functions import Call, Written
from penstock.sql.duckdb_dialect.repeated_values import once


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


# All kinds of spaces, but neither tabs nor ends of lines.
_SPACES = {
    "trim": text(r"^\p{Zs}+|\p{Zs}+\z"),
    "ltrim": text(r"^\p{Zs}+"),
    "rtrim": text(r"\p{Zs}+\z"),
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
