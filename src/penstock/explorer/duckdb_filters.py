"""Reads a predicate of DuckDB's into the filters that choose files, as `penstock.predicates` takes them.

DuckDB binds the predicate to an empty table with the columns, so that names are resolved, casts explicit and constants
computed (also those of `now() - INTERVAL 3 DAYS`). What is not sure to be understood says nothing: all files stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from penstock.errors import InvalidError
from penstock.explorer.query_worker import FilterTask
from penstock.explorer.worker_processes import answered
from penstock.schema.columns import Column, find_path
from penstock.storage.duckdb_sql import duckdb_quoted, duckdb_type

Node = Any
Answer = Callable[[FilterTask, float], Mapping[str, Any]]
UNKNOWN: list[str] = ["unknown"]
_SECONDS = 20.0
_COMPARISONS = {
    "COMPARE_EQUAL": "=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_NOT_DISTINCT_FROM": "<=>",
}  # fmt: skip
_NEGATED = {"COMPARE_NOTEQUAL": "COMPARE_EQUAL", "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM"}
_PREFIXES = ("prefix", "starts_with", "^@")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_DIGITS = 38
# Microseconds in a unit, of types that are kept as a count of it.
_UNITS = {"TIMESTAMP": 1, "TIMESTAMP_MS": 1000, "TIMESTAMP_S": 1_000_000}
# What a column may be cast to without another meaning than in `penstock.predicates`, by the name it has there.
_CAST_TO = {
    "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "DATE": "date",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp",
}  # fmt: skip
_CUT_TOWARDS_1970 = "TIMESTAMP_NS"  # by casts: before it, to a later time
_ZONE = "UTC"  # of the DuckDB that binds


def filters_of(predicate: str, columns: Sequence[Column], answer: Answer = answered, *, table: str = "t") -> list[str]:
    """The filters on a table of that name, each as JSON; an InvalidError where DuckDB does not take the predicate.

    To compute a constant may take long, and much memory: `answer` has a process of its own do it.
    """
    shown = ", ".join(f"{duckdb_quoted(column.name)} {duckdb_type(column)}" for column in columns)
    told = answer(FilterTask(predicate, shown, duckdb_quoted(table)), _SECONDS)
    plan = {"error": True, "error_message": told["error"]} if "error" in told else json.loads(told["plan"])
    if plan["error"]:
        raise InvalidError(f"DuckDB does not take this as a filter: {plan['error_message']}")
    reader = _Reader(columns)
    return [json.dumps(reader.filter(node)) for node in _filters(plan["plans"][0])]


def _filters(plan: Node) -> list[Node]:
    """The parts of the one filter over the table; nothing where a subquery has made another plan of it."""
    while plan["type"] == "LOGICAL_PROJECTION":
        [plan] = plan["children"]
    if plan["type"] != "LOGICAL_FILTER" or [child["type"] for child in plan["children"]] != ["LOGICAL_GET"]:
        return []
    found: list[Node] = plan["expressions"]
    return found


class _Reader:
    """Reads bound expressions over columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def filter(self, node: Node) -> Node:
        match node["type"]:
            case "CONJUNCTION_AND" | "CONJUNCTION_OR" as kind:
                return ["and" if kind == "CONJUNCTION_AND" else "or", *map(self.filter, node["children"])]
            case "OPERATOR_NOT":
                return ["not", self.filter(node["children"][0])]
            case "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL" as kind:
                subject = self.subject(node["children"][0])
                told = subject is not None and not _may_lose_value(subject)
                return ["isnull" if kind == "OPERATOR_IS_NULL" else "isnotnull", subject] if told else UNKNOWN
            case "VALUE_CONSTANT":
                return _literal(node["value"]) or UNKNOWN
            case "COMPARE_IN" | "COMPARE_NOT_IN" as kind:
                subject, *options = node["children"]
                found = ["in", self.subject(subject), *map(self.literal, options)]
                return UNKNOWN if None in found else found if kind == "COMPARE_IN" else ["not", found]
            case kind if kind in _NEGATED:
                return ["not", self.filter({**node, "type": _NEGATED[kind]})]
            case kind if kind in _COMPARISONS:
                return self._comparison(_COMPARISONS[kind], node["left"], node["right"])
            case "BOUND_FUNCTION" if node["name"] in _PREFIXES:
                found = ["startswith", self.subject(node["children"][0]), self.literal(node["children"][1])]
                return UNKNOWN if None in found else found
        return self.subject(node) or UNKNOWN

    def _comparison(self, operator: str, left: Node, right: Node) -> Node:
        if left["type"] == "VALUE_CONSTANT":
            found = [operator, self.literal(left), self.subject(right)]
        else:
            found = [operator, self.subject(left), self.literal(right)]
        if None in found or (operator == "<=>" and any(map(_may_lose_value, found[1:]))):
            return UNKNOWN
        return found

    def literal(self, node: Node) -> Node | None:
        return _literal(node["value"]) if node["type"] == "VALUE_CONSTANT" else None

    def subject(self, node: Node) -> Node | None:
        """A column or field, maybe under a cast or as the year of it."""
        path = self._path(node)
        if path is not None:
            return ["column", *path]
        if node["type"] == "OPERATOR_CAST" and not node["try_cast"]:
            inner, kind = self.subject(node["child"]), _cast_type(node["return_type"])
            if inner is None or kind is None or node["child"]["return_type"]["id"] == _CUT_TOWARDS_1970:
                return None
            return ["cast", kind, inner, _ZONE]
        if node["type"] == "BOUND_FUNCTION" and node["name"] == "year":
            return self._year(node["children"][0])
        return None

    def _year(self, of: Node) -> Node | None:
        inner, kind = self.subject(of), of["return_type"]["id"]
        if inner is None or kind not in ("DATE", *_UNITS):
            return None
        return ["year", inner if kind == "DATE" else ["cast", "date", inner, _ZONE]]

    def _path(self, node: Node) -> list[str] | None:
        """The names from a column down to a field; None of what is neither."""
        if node["type"] == "BOUND_REF":
            path = [node["alias"]]
        elif node["type"] == "BOUND_FUNCTION" and node["name"] == "struct_extract":
            parent, field = node["children"]
            above = self._path(parent)
            if above is None or field["type"] != "VALUE_CONSTANT":
                return None
            path = [*above, field["value"]["value"]]
        else:
            return None
        return path if find_path(self._columns, path) is not None else None


def _may_lose_value(subject: Node) -> bool:
    """Whether it may be NULL of a value: infinite times are in no year."""
    return subject[0] == "year" or (subject[0] == "cast" and _may_lose_value(subject[2]))


def _cast_type(kind: Node) -> str | None:
    if kind["id"] == "DECIMAL":
        return f"decimal({kind['type_info']['width']},{kind['type_info']['scale']})"
    return _CAST_TO.get(kind["id"])


def _literal(value: Node) -> Node | None:
    """A constant; None of one whose order is not that of anything known."""
    kind = value["type"]["id"]
    if value["is_null"]:
        return ["literal", "void", None]
    given = value["value"]
    if kind in _WHOLE:
        return _whole(_wide(given))
    if kind in _UNITS or kind == "TIMESTAMP WITH TIME ZONE":
        micros = given * _UNITS.get(kind, 1)
        infinite = not -_MOST < given < _MOST
        return None if infinite else ["literal", "timestamp_ntz" if kind in _UNITS else "timestamp", micros]
    read = _READERS.get(kind)
    return None if read is None else read(value)


def _whole(number: int) -> Node | None:
    if _LEAST <= number <= _MOST:
        return ["literal", "bigint", number]
    return ["literal", f"decimal({_MOST_DIGITS},0)", str(number)] if len(str(abs(number))) <= _MOST_DIGITS else None


def _wide(value: Any) -> int:
    """A number that is kept in two halves where 64 bits do not hold it."""
    return (value["upper"] << 64) + value["lower"] if isinstance(value, dict) else int(value)


def _decimal(value: Node) -> Node:
    info, digits = value["type"]["type_info"], _wide(value["value"])
    text = f"{'-' if digits < 0 else ''}{abs(digits):0{info['scale'] + 1}d}"
    whole, part = (text[: -info["scale"]], text[-info["scale"] :]) if info["scale"] else (text, "")
    return ["literal", f"decimal({info['width']},{info['scale']})", f"{whole}.{part}" if part else whole]


def _uuid(value: Node) -> Node:
    # DuckDB keeps the first bit turned round, so that ids compare as numbers.
    number = (_wide(value["value"]) + (1 << 127)) % (1 << 128)
    return ["literal", "string", str(UUID(int=number))]


def _date(value: Node) -> Node | None:
    days = value["value"]
    return None if abs(days) >= 2**31 - 1 else ["literal", "date", days]


_READERS: dict[str, Callable[[Node], Node | None]] = {
    "BOOLEAN": lambda value: ["literal", "boolean", bool(value["value"])],
    "VARCHAR": lambda value: ["literal", "string", value["value"]],
    "FLOAT": lambda value: ["literal", "float", repr(float(value["value"]))],
    "DOUBLE": lambda value: ["literal", "double", repr(float(value["value"]))],
    "DECIMAL": _decimal,
    "DATE": _date,
    "UUID": _uuid,
}
