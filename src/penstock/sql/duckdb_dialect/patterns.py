"""Regular expressions: those of DuckDB's that Java reads in the same way, and functions of them."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.sql.duckdb_dialect.bound_types import UntranslatableError
from penstock.sql.duckdb_dialect.constants import constant_number, constant_text, text
from penstock.sql.duckdb_dialect.functions import Call, Written

# What RE2 and Java agree on. Classes of letters are ASCII's in both.
_TOKENS = re.compile(
    r"(?P<escape>\\[dDwW.\\+*?()\[\]{}|^$/-])|(?P<space>\\s)|(?P<end>\$)"
    r"|(?P<set>\[\^?(?:\\[dw.\\\]\[^-]|[^\\\]\[&])+\])|(?P<group>\((?:\?:|(?!\?))|\))"
    r"|(?P<repeat>[*+?]\??|\{\d+(?:,\d*)?\}\??)|(?P<other>[.^|]|[^\\\[\](){}*+?|^$])"
)


def java_pattern(pattern: str) -> str:
    """A pattern of DuckDB's for Java: (?d) has a dot stop at line feeds only, and `$` matches at the very end."""
    made, place = "(?d)", 0
    while place < len(pattern):
        token = _TOKENS.match(pattern, place)
        if token is None:
            raise UntranslatableError(f"the regular expression {pattern!r} (at {pattern[place:]!r})")
        part = token.group()
        made += r"\z" if token["end"] else r"[\t\n\f\r ]" if token["space"] else part
        place = token.end()
    return made


def _pattern(call: Call) -> str:
    pattern = constant_text(call.nodes[1])
    if pattern is None:
        raise call.refused("with a pattern that is no constant")
    return java_pattern(pattern)


def _matches(whole: bool, negated: bool = False) -> Callable[[Call], str]:
    def text_of(call: Call) -> str:
        pattern = _pattern(call)
        pattern = rf"(?d)\A(?:{pattern.removeprefix('(?d)')})\z" if whole else pattern
        return f"({call.values[0]} {'NOT ' if negated else ''}RLIKE {text(pattern)})"

    return text_of


def _replaced(call: Call) -> str:
    replacement = constant_text(call.nodes[2])
    options = constant_text(call.nodes[3]) if len(call.nodes) > 3 else ""
    if replacement is None or options not in ("", "g"):
        raise call.refused("with options or a replacement that are not translated")
    java = re.sub(r"\\(\d)", r"$\1", replacement.replace("$", r"\$"))
    if "\\" in java.replace(r"\$", ""):
        raise call.refused(f"with the replacement {replacement!r}")
    pattern = _pattern(call)
    _check_groups(call, pattern, max((int(number) for number in re.findall(r"\\(\d)", replacement)), default=0))
    if re.search(r"\\\d\d", replacement) or re.search(inner_of(pattern), "") is not None:
        raise call.refused("of what may be empty, or by a group of two digits")
    if options == "g":
        return f"regexp_replace({call.values[0]}, {text(pattern)}, {text(java)})"
    inner = pattern.removeprefix("(?d)")
    if re.search(r"\((?!\?)", inner.replace("\\(", "")) or "$" in java.replace(r"\$", ""):
        raise call.refused("of the first match, with groups")
    # The first match alone: what follows it is taken along, and put back.
    return f"regexp_replace({call.values[0]}, {text(f'(?d)(?:{inner})((?s:.*))')}, {text(java + '$1')})"


def _extracted(call: Call) -> str:
    group = constant_number(call.nodes[2]) if len(call.nodes) > 2 else 0
    if not isinstance(group, int) or len(call.nodes) > 3:
        raise call.refused("with names of groups, or options")
    pattern = _pattern(call)
    _check_groups(call, pattern, group)
    return f"regexp_extract({call.values[0]}, {text(pattern)}, {group})"


def inner_of(pattern: str) -> str:
    """A pattern for Java without what was put before it, as Python reads it too."""
    return pattern.removeprefix("(?d)").replace(r"\z", r"\Z")


def _check_groups(call: Call, pattern: str, number: int) -> None:
    """Refuse a group that is not there, and one that may match several times: RE2 and Java keep different matches."""
    if not 0 <= number <= re.compile(inner_of(pattern)).groups:
        raise call.refused(f"of the group {number}, which the pattern does not have")
    if number and re.search(r"\)[*+?{]", pattern):
        raise call.refused("of a group that may match several times")


PATTERNS: dict[str, Written] = {
    "regexp_matches(text,text)": _matches(whole=False),
    "regexp_full_match(text,text)": _matches(whole=True),
    "regexp_replace(text,text,text)": _replaced,
    "regexp_replace(text,text,text,text)": _replaced,
    "regexp_extract(text,text)": _extracted,
    "regexp_extract(text,text,int)": _extracted,
}
