"""Reads predicates in Spark SQL as far as files can be chosen by them; what is not known says nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

from penstock.spark.connect.sql_tokens import Token, parts, path_of, tokens

# A tree is a list of an operator and trees, ["name", part...] for a column, or a Constant.
Tree = Any
UNKNOWN: Tree = ["unknown"]
_COMPARISONS = {
    "=": "=", "==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<>": "!=", "!=": "!=",
}  # fmt: skip
_NUMBER = re.compile(r"(?i)(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(BD|[LSYDF])?")
_LIKE = re.compile(r"([^%_\\]+)%+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?))?(Z|[+-]\d\d:\d\d)?")
_EPOCH = datetime(1970, 1, 1)
_MOST_INT, _MOST_LONG = 2**31 - 1, 2**63 - 1
_DEEPEST = 50


class Constant(NamedTuple):
    """A constant: its kind, by Spark's names of types, and its value.

    A local time is of kind `local`: what it is an instant of depends on the session. A `text` may be cast.
    """

    kind: str
    value: Any


def read_predicate(text: str) -> Tree:
    """The tree of a predicate.

    Those with comments, with variables of the session (`${x}`) and with a CASE are not read: they have rules of their
    own, and END may be the name of a column too.
    """
    if any(sign in text for sign in ("--", "/*", "${")):
        return UNKNOWN
    found = tokens(text)
    return UNKNOWN if any(token.keyword in ("CASE", "END") for token in found) else _tree(found, 0)


def _tree(found: list[Token], depth: int) -> Tree:
    found = _unwrapped(found)
    if not found or depth > _DEEPEST:
        return UNKNOWN
    either, both = _split(found, "OR"), _split(found, "AND")
    if len(either) > 1:
        return ["or", *(_tree(part, depth + 1) for part in either)]
    if len(both) > 1:
        return ["and", *(_tree(part, depth + 1) for part in both)]
    if found[0].keyword == "NOT" or found[0].text == "!":
        return ["not", _tree(found[1:], depth + 1)]
    return _leaf(found)


def _unwrapped(found: list[Token]) -> list[Token]:
    """Tokens without the brackets around all of them."""
    while len(found) > 1 and found[0].text == "(" and _closing(found) == len(found) - 1:
        found = found[1:-1]
    return found


def _closing(found: Sequence[Token]) -> int | None:
    depth = 0
    for place, token in enumerate(found):
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return place
    return None


def _split(found: Sequence[Token], word: str) -> list[list[Token]]:
    """The parts between words that stand in no brackets; the AND of a BETWEEN is none."""
    pieces: list[list[Token]] = [[]]
    depth, between = 0, 0
    for token in found:
        depth += (token.text == "(") - (token.text == ")")
        between += token.keyword == "BETWEEN" and not depth
        if token.keyword == word and not depth and not (word == "AND" and between):
            pieces.append([])
            continue
        between -= token.keyword == "AND" and not depth and between > 0
        pieces[-1].append(token)
    return pieces


def _leaf(found: list[Token]) -> Tree:
    subject, rest = _subject(found)
    if subject is None:
        return _comparison(found)
    negated = bool(rest) and rest[0].keyword == "NOT"
    tree = _condition(subject, rest[1:] if negated else rest)
    return ["not", tree] if negated and tree != UNKNOWN else tree


def _subject(found: list[Token]) -> tuple[Tree | None, list[Token]]:
    """The column that a leaf begins with, or its year, and what follows."""
    if len(found) > 3 and found[0].keyword == "YEAR" and found[1].text == "(":
        end = _closing(found[1:])
        path = path_of(found[2 : end + 1]) if end else None
        return (["year", ["name", *path]], found[end + 2 :]) if path and end else (None, found)
    count = 1
    while count + 1 < len(found) and found[count].text == ".":
        count += 2
    path = path_of(found[:count])
    following = found[count] if count < len(found) else None
    if path is None or (following is not None and (following.text in "(." or following.kind == "string")):
        return None, found
    return (None, found) if count == 1 and _constant(found[:1]) else (["name", *path], found[count:])


def _condition(subject: Tree, rest: list[Token]) -> Tree:
    words = [token.keyword for token in rest]
    match words:
        case []:
            return subject
        case ["IS", "NULL"]:
            return ["isnull", subject]
        case ["IS", "NOT", "NULL"]:
            return ["not", ["isnull", subject]]
        case ["LIKE", ""]:
            prefix = _LIKE.fullmatch(rest[1].plain_text or "")
            return ["startswith", subject, Constant("text", prefix[1])] if prefix else UNKNOWN
        case ["IN", *_] if rest[1].text == "(" and _closing(rest[1:]) == len(rest) - 2:
            options = [_constant(part) for part in parts(rest[2:-1], ",")]
            return UNKNOWN if None in options else ["in", subject, *options]
        case ["BETWEEN", *_] if "AND" in words:
            middle = words.index("AND")
            low, high = _constant(rest[1:middle]), _constant(rest[middle + 1 :])
            return UNKNOWN if low is None or high is None else ["and", [">=", subject, low], ["<=", subject, high]]
    if rest[0].text in _COMPARISONS:
        path = path_of(rest[1:])
        right = _constant(rest[1:]) or (["name", *path] if path else None)
        return UNKNOWN if right is None else compared(rest[0].text, subject, right)
    return UNKNOWN


def _comparison(found: list[Token]) -> Tree:
    """A constant that is compared with a column, or a constant alone."""
    place = next((place for place, token in enumerate(found) if token.text in _COMPARISONS), None)
    if place is None:
        return _constant(found) or UNKNOWN
    left, (subject, rest) = _constant(found[:place]), _subject(found[place + 1 :])
    return UNKNOWN if left is None or subject is None or rest else compared(found[place].text, left, subject)


def compared(operator: str, left: Tree, right: Tree) -> Tree:
    """A comparison by any of Spark's operators."""
    name = _COMPARISONS[operator]
    return ["not", ["=", left, right]] if name == "!=" else [name, left, right]


def _constant(found: Sequence[Token]) -> Constant | None:
    match [token.keyword or token.text for token in found]:
        case ["NULL"]:
            return Constant("null", None)
        case ["TRUE" | "FALSE" as word]:
            return Constant("boolean", word == "TRUE")
        case ["-", _]:
            inner = _constant(found[1:]) if found[1].kind == "number" else None
            return Constant(inner.kind, -inner.value) if inner else None
        case [_] if found[0].kind == "number":
            return _number(found[0].text)
        case [_] if found[0].plain_text is not None:
            return Constant("text", found[0].plain_text)
        case ["DATE", _] if found[1].plain_text is not None:
            days = days_of(found[1].plain_text or "")
            return None if days is None else Constant("date", days)
        case ["TIMESTAMP", _] if found[1].plain_text is not None:
            return time_of(found[1].plain_text or "")
        case ["TIMESTAMP_NTZ", _] if found[1].plain_text is not None:
            local = time_of(found[1].plain_text or "")
            return Constant("timestamp_ntz", local.value) if local and local.kind == "local" else None
    return None


def _number(text: str) -> Constant | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits, exponent, suffix = found[1], found[2], (found[3] or "").upper()
    whole = "." not in digits and not exponent
    if (suffix in ("D", "") and exponent) or suffix == "D":
        return Constant("double", float(digits + (exponent or "")))
    if suffix == "BD" or (suffix == "" and not whole):
        return Constant("decimal", Decimal(digits + (exponent or "")))
    if not whole or suffix == "F":
        return None
    value = int(digits)
    if value > _MOST_LONG:
        return Constant("decimal", Decimal(value)) if not suffix else None
    return Constant("bigint" if value > _MOST_INT or suffix == "L" else "int", value)


def days_of(text: str) -> int | None:
    """The days since 1970 of a date as all write it; None of any other text."""
    try:
        return (date.fromisoformat(text) - _EPOCH.date()).days if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def time_of(text: str) -> Constant | None:
    """The instant of a text with a zone, the local time of one without; None of what may mean something else."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found[1]} {found[2] or '00:00'}")
    except ValueError:
        return None
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    if found[3] is None:
        return Constant("local", micros)
    if found[2] is None:
        return None
    offset = timedelta() if found[3] == "Z" else datetime.strptime(found[3], "%z").tzinfo
    shift = offset if isinstance(offset, timedelta) else _offset(offset)
    return Constant("timestamp", micros - shift // timedelta(microseconds=1))


def _offset(zone: Any) -> timedelta:
    assert isinstance(zone, timezone)
    return zone.utcoffset(None)
