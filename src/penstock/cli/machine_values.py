"""Writes values for programs: as JSON has them, and as the fields of CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from penstock.cli.texts import UNSEEN


def json_value(value: Any) -> Any:
    """A value of JSON. What JSON has no type for is text: times in ISO form, exact decimals, NaN, bytes in hex."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Mapping):
        return {_key(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(item) for item in value]
    return str(value)


def _key(key: Any) -> str:
    found = json_value(key)
    return found if isinstance(found, str) else json.dumps(found)


def json_text(value: Any) -> str:
    """JSON in one line of visible characters."""
    text = json.dumps(json_value(value), ensure_ascii=False, allow_nan=False)
    return UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def csv_field(value: Any) -> str:
    """A field of CSV: NULL is empty, and a text that is empty is two quotes."""
    if value is None:
        return ""
    plain = json_value(value)
    if isinstance(plain, bool):
        plain = str(plain).lower()
    text = json_text(plain) if isinstance(plain, dict | list) else str(plain)
    if text and not any(character in text for character in ',"\r\n') and text.strip() == text:
        return text
    return '"' + text.replace('"', '""') + '"'
