"""Spark's answer to a filter on one row, written without regard to how Penstock reads filters."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1)


class OutOfRangeError(Exception):
    """Python's calendar does not reach this time."""


class Row:
    """One row: a (Spark type, value) for each column path."""

    def __init__(self, values: dict[tuple[str, ...], tuple[str, Any]]) -> None:
        self.values = values

    def matches(self, filters: list[Any]) -> bool:
        return all(self.truth(node) is True for node in filters)

    def truth(self, node: Any) -> bool | None:
        match node[0]:
            case "and":
                answers = [self.truth(child) for child in node[1:]]
                return False if False in answers else None if None in answers else True
            case "or":
                answers = [self.truth(child) for child in node[1:]]
                return True if True in answers else None if None in answers else False
            case "not":
                answer = self.truth(node[1])
                return None if answer is None else not answer
            case "isnull":
                return self.value(node[1])[1] is None
            case "isnotnull":
                return self.value(node[1])[1] is not None
            case "isnan":
                value = self.value(node[1])[1]
                return value is not None and math.isnan(value)
            case "startswith":
                text, prefix = (self.value(side)[1] for side in node[1:])
                return None if text is None or prefix is None else text.encode().startswith(prefix.encode())
            case "in":
                answers = [self.compare("=", node[1], option) for option in node[2:]]
                return True if True in answers else None if None in answers else False
            case "=" | "<" | "<=" | ">" | ">=" | "<=>":
                return self.compare(*node)
            case "unknown":
                return True
        return self.value(node)[1]

    def compare(self, operator: str, left: Any, right: Any) -> bool | None:
        one, other = self.value(left)[1], self.value(right)[1]
        if operator == "<=>":
            return (one is None) == (other is None) and (one is None or sortable(one) == sortable(other))
        if one is None or other is None:
            return None
        first, second = sortable(one), sortable(other)
        return {
            "=": first == second,
            "<": first < second,
            "<=": first <= second,
            ">": first > second,
            ">=": first >= second,
        }[operator]

    def value(self, node: Any) -> tuple[str, Any]:
        match node:
            case ["literal", type, value]:
                return type, from_json(type, value)
            case ["column", *path]:
                return self.values[tuple(path)]
            case ["year", inner]:
                days = self.value(inner)[1]
                return "int", None if days is None else int(
                    np.datetime64(days, "D").astype("datetime64[Y]").astype(int)
                ) + 1970
            case ["cast", target, inner, *zones]:
                type, value = self.value(inner)
                return target, cast(type, target, value, _offset(zones[0]) if zones else UTC)
        raise AssertionError(node)


def cast(source: str, target: str, value: Any, zone: tzinfo) -> Any:
    if value is None or source == target:
        return value
    match source.split("(")[0], target.split("(")[0]:
        case _, "float":
            return float(np.float32(float(value)))
        case _, "double":
            return float(value)
        case _, "decimal":
            return Decimal(value)
        case "date", "timestamp_ntz":
            return value * DAY
        case "timestamp_ntz", "date":
            return value // DAY
        case "date", "timestamp":
            return to_utc(value * DAY, zone)
        case "timestamp", "date":
            return to_local(value, zone) // DAY
        case "timestamp_ntz", "timestamp":
            return to_utc(value, zone)
        case "timestamp", "timestamp_ntz":
            return to_local(value, zone)
    return value


def to_utc(local: int, zone: tzinfo) -> int:
    moment = _datetime(local).replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    return (moment - EPOCH) // timedelta(microseconds=1)


def to_local(utc: int, zone: tzinfo) -> int:
    moment = _datetime(utc).replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _offset(name: str) -> tzinfo:
    if name[0] in "+-":
        hours, minutes = map(int, name.split(":"))
        return timezone(timedelta(hours=hours, minutes=minutes))
    return ZoneInfo(name)


def _datetime(micros: int) -> datetime:
    try:
        moment = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise OutOfRangeError from None
    if not 2 <= moment.year <= 9998:
        raise OutOfRangeError
    return moment


def sortable(value: Any) -> Any:
    """NaN equals itself and is above every number; text sorts by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def from_json(type: str, value: Any) -> Any:
    if value is None:
        return None
    match type.split("(")[0]:
        case "decimal":
            return Decimal(value)
        case "float":
            return float(np.float32(value))
        case "double":
            return float(value)
        case "binary":
            return bytes.fromhex(value)
        case "time":
            return value // 1000
    return value
