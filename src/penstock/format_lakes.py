"""The lakes that the format "ducklake" names by its options: each is attached once, and stays so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from penstock.ducklake.lake import DuckLake
from penstock.errors import InvalidError, NotFoundError
from penstock.sql.format_options import ATTACH_OPTIONS, flag
from penstock.sql.registration import lake_named

_SCHEME = "ducklake:"


class FormatLakes:
    """Finds lakes for the sessions of a JVM, by names of their catalogs or by locations."""

    def __init__(self, attach: Callable[..., DuckLake]) -> None:
        self._attach = attach
        self._sessions: list[SparkSession] = []
        self._attached: dict[tuple[object, ...], DuckLake] = {}
        self._lock = threading.Lock()

    def add(self, spark: SparkSession) -> bool:
        """Serve a session too; False for one that is served already."""
        self._sessions = [session for session in self._sessions if not _has_stopped(session)]
        if spark in self._sessions:
            return False
        self._sessions.append(spark)
        return True

    def open(self, lake: str, options: Mapping[str, str], create: bool) -> DuckLake:
        """The lake that options mean; one that does not exist is made for a write."""
        if not lake.startswith(_SCHEME):
            return self._named(lake, options)
        given = _arguments({"create_if_not_exists": str(create), **options})
        key = (lake, *sorted((name, value) for name, value in options.items() if name != "create_if_not_exists"))
        with self._lock:
            found = self._attached.get(key)
            if found is None or _has_stopped(found.spark):
                found = self._attached[key] = self._attach(lake, spark=self._sessions[0], **given)
            return found

    def _named(self, name: str, options: Mapping[str, str]) -> DuckLake:
        found = next(filter(None, (lake_named(session, name) for session in reversed(self._sessions))), None)
        if found is None:
            raise NotFoundError(
                f"{name!r} is neither a lake of this session nor a location; give the name that a lake was attached "
                "with, or ducklake:FILE, ducklake:sqlite:FILE, ducklake:postgres:..., ducklake:mysql:..."
            )
        if options:
            raise InvalidError(f"lake {name} is attached already, and takes no option {', '.join(options)}")
        return found


def _has_stopped(spark: SparkSession) -> bool:
    return spark.sparkContext._jsc is None


def _arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `attach`, from texts."""
    storage = {name: value for name, value in options.items() if name not in ATTACH_OPTIONS}
    arguments = {name: _argument(name, text) for name, text in options.items() if name in ATTACH_OPTIONS}
    return arguments | ({"storage_options": storage} if storage else {})


def _argument(name: str, text: str) -> object:
    kind = ATTACH_OPTIONS[name]
    if kind is bool:
        return flag(name, text, False)
    try:
        return kind(text)
    except ValueError:
        raise InvalidError(f"the option {name} cannot be {text!r}; it takes a number") from None
