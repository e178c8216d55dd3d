"""The object ids of namespaces and leaves: `country=US` for one level, `root$country=US$city_bucket=3` for a leaf."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from urllib.parse import unquote

from penstock.partitioning.naming import HIVE_NULL

_SEPARATOR = "$"
_SPECIAL = re.compile(r"[=$/%.\\'\x00-\x1f\x7f]|^ | \Z")  # the namespace client puts names into SQL unquoted
_LONGEST = 200  # bytes; file systems take 255, and writers add suffixes
_SHORT, _LONG = 4, 16  # bytes of hashes


def encode_value(text: str | None) -> str:
    """The name of a partition value, with escapes for what has a meaning in paths or object ids; NULL has its own."""
    if text is None:
        return HIVE_NULL
    if text == HIVE_NULL:
        return _escaped(text[0]) + text[1:]
    return _SPECIAL.sub(lambda match: _escaped(match[0]), text)


def decode_value(name: str) -> str | None:
    """The partition value of a name, None for NULL; any percent-encoding is understood."""
    return None if name == HIVE_NULL else _unescaped(name)


def split_level(name: str) -> tuple[str, str | None]:
    """The field and the value of one level, `field=value`. Raises ValueError for anything else."""
    field, equals, value = name.partition("=")
    if not equals:
        raise ValueError(f"{name!r} is no partition's name: it has no `=`")
    return _unescaped(field), decode_value(value)


def join_object_id(parts: Iterable[str]) -> str:
    """The object id of an object, from the names of its namespaces and its own."""
    return _SEPARATOR.join(parts)


def object_id_parts(object_id: str) -> list[str]:
    """The names of an object's namespaces and its own, from its object id."""
    return object_id.split(_SEPARATOR)


def leaf_directory(object_id: str) -> str:
    """The relative location of a leaf, always the same for the same id: a hash, and the id as far as it fits.

    Where the id does not fit, nothing but the hash tells leaves apart, so it is a long one.
    """
    whole = f"{_digest(object_id, _SHORT)}_{object_id}".encode()
    if len(whole) <= _LONGEST:
        return whole.decode()
    cut = f"{_digest(object_id, _LONG)}_{object_id}".encode()[:_LONGEST]
    return cut.decode(errors="ignore")  # what it ignores is half a character at the end


def _digest(object_id: str, size: int) -> str:
    return blake2b(object_id.encode(), digest_size=size).hexdigest()


def _escaped(character: str) -> str:
    return f"%{ord(character):02X}"


def _unescaped(name: str) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError(f"the escapes in {name!r} are no UTF-8") from error
