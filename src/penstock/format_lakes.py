"""The lakes that the format "ducklake" names by its options: each is attached once, and stays so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.named_lakes.configuration import configuration
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.attach_parameters import ATTACH_PARAMETERS, argument
from penstock.errors import InvalidError, NotFoundError
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
            found = self._registered(lake)
            if found is not None:
                if options:
                    raise InvalidError(f"lake {lake} is attached already, and takes no option {', '.join(options)}")
                return found
            lake = f"{_SCHEME}{_configured(lake)}"
        given = _arguments(options if create else {"create_if_not_exists": "false", **options})
        where = attach_call(lake, {}).uri  # what a name means may change
        key = (where, *sorted((name, value) for name, value in options.items() if name != "create_if_not_exists"))
        with self._lock:
            found = self._attached.get(key)
            if found is None or _has_stopped(found.spark):
                found = self._attached[key] = self._attach(lake, spark=self._sessions[0], **given)
            return found

    def _registered(self, name: str) -> DuckLake | None:
        """The lake that a session knows by a name."""
        return next(filter(None, (lake_named(session, name) for session in reversed(self._sessions))), None)


def _configured(name: str) -> str:
    """A name that the configuration knows."""
    known = configuration()
    if name not in known:
        raise NotFoundError(
            f"{name!r} is neither a lake of this session nor a location; give the name that a lake was attached "
            f"with, or ducklake:FILE, ducklake:sqlite:FILE, ducklake:postgres:..., ducklake:mysql:...; {known.told}"
        )
    return name


def _has_stopped(spark: SparkSession) -> bool:
    return spark.sparkContext._jsc is None


def _arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `attach`, from texts."""
    storage = {name: value for name, value in options.items() if name not in ATTACH_PARAMETERS}
    arguments = {name: argument(name, text) for name, text in options.items() if name in ATTACH_PARAMETERS}
    return arguments | ({"storage_options": storage} if storage else {})
