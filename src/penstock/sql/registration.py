"""Registers lakes as catalogs of Spark sessions, under names, and takes them out again."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.lake import DuckLake
from penstock.errors import InvalidError, UnsupportedError
from penstock.spark.connect.sessions import refuse_on_connect
from penstock.spark.java_errors import Py4JError
from penstock.sql.bridge import Answers, catalog_class, load_classes, sql_class
from penstock.sql.evolving_tables import EvolvingTables
from penstock.sql.macros import Macros
from penstock.sql.procedures import Procedures
from penstock.sql.sessions import catalog_settings, forget_catalog, setting
from penstock.sql.shown_objects import ShownObjects
from penstock.sql.streams import KnownStreams, StreamAnswers
from penstock.sql.table_definitions import TableDefinitions
from penstock.sql.table_functions import TableFunctions
from penstock.sql.table_rows import TableRows
from penstock.sql.used_definitions import UsedDefinitions
from penstock.sql.views import Views

_RESERVED = ("spark_catalog", "system", "session")
_doors: WeakKeyDictionary[Attachment, Door] = WeakKeyDictionary()
_lock = threading.Lock()


@dataclass
class Door:
    """The way from Spark to one lake: the number that the JVM knows it by, and where it is registered."""

    lake: DuckLake
    id: str
    evolving: EvolvingTables
    streams: KnownStreams
    registered: list[tuple[SparkSession, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Transactions:
    """Tells the JVM which transaction the threads of a lake's users work for."""

    spark: SparkSession
    lake_id: str

    def begins(self, token: str) -> None:
        """From now on the caller's thread in the JVM, and those that it starts, work for a transaction."""
        sql_class(self.spark, "Lakes").work(self.lake_id, token)

    def ends(self, token: str, committed: bool) -> None:
        """They work for it no more; what Spark has cached of the lake is read again if something was committed."""
        with suppress(Py4JError, AttributeError):  # Spark may have stopped; what is committed stays so
            sql_class(self.spark, "Lakes").work(self.lake_id, None)
            if committed:
                sql_class(self.spark, "LakeCache").refresh(self.spark._jsparkSession, self.lake_id)


def door_to(lake: DuckLake) -> Door:
    """The lake's door, made at the first time: the classes are loaded, and the JVM is told whom to ask."""
    attachment = lake._attachment
    with _lock:
        if attachment not in _doors:
            _check_threads()
            load_classes(lake.spark)
            evolving, number = EvolvingTables(attachment), uuid4().hex
            door = Door(lake, number, evolving, KnownStreams(attachment, number))
            shown = ShownObjects(attachment, evolving)
            definitions = TableDefinitions(lake, shown, evolving)
            used = UsedDefinitions(lake)
            rows = TableRows(lake, door.id, definitions, evolving, used)
            macros = Macros(lake, door.id, used)
            functions = TableFunctions(lake, macros)
            streams = StreamAnswers(door.streams)
            views = Views(lake, door.id, shown, used)
            answering = [shown, definitions, rows, Procedures(lake), functions, views, macros, streams]
            sql_class(lake.spark, "Lakes").register(door.id, Answers(answering, attachment.called_by))
            attachment.answer_spark(Transactions(lake.spark, door.id))
            _doors[attachment] = door
        return _doors[attachment]


def refuse_name_on_connect(spark: SparkSession) -> None:
    """Raise an UnsupportedError on a session of Spark Connect, which has no place for catalogs of ours."""
    way = "call createOrReplaceTempView on what `lake.table(...).read()` gives"
    refuse_on_connect(spark, "a name for the lake in SQL", way)


def register(lake: DuckLake, name: str, spark: SparkSession) -> None:
    """Make the lake a catalog of a session."""
    refuse_name_on_connect(spark)
    present = spark.conf.get(setting(name), None) if _is_name(name) else None
    if not _is_name(name) or name.lower() in _RESERVED or present not in (None, catalog_class(spark)):
        raise InvalidError(
            f"{name!r} cannot be the name of a catalog here; choose one without dots that Spark does not use already"
        )
    door = door_to(lake)
    sql_class(spark, "Installation").into(spark._jsparkSession)
    forget_catalog(spark._jsparkSession, name)
    for key, value in catalog_settings(spark, name, door.id).items():
        spark.conf.set(key, value)
    door.registered.append((spark, name))
    sql_class(spark, "Lakes").name(name, door.id)


def lake_named(spark: SparkSession, name: str) -> DuckLake | None:
    """The lake that a session knows by a name, or None."""
    number = spark.conf.get(f"{setting(name)}.lake", None) if _is_name(name) else None
    return next((door.lake for door in list(_doors.values()) if door.id == number), None)


def unregister_all(lake: DuckLake) -> None:
    """Take a lake out of all sessions that it was registered in, unless another one has taken its name there."""
    door = _doors.pop(lake._attachment, None)
    if door is None:
        return
    for spark, name in door.registered:
        if spark.sparkContext._jsc is None:  # Spark has stopped
            continue
        if spark.conf.get(f"{setting(name)}.lake", None) == door.id:
            _leave(spark, name)
            for key in catalog_settings(spark, name, door.id):
                spark.conf.unset(key)
            forget_catalog(spark._jsparkSession, name)
    if lake.spark.sparkContext._jsc is not None:
        sql_class(lake.spark, "Lakes").forget(door.id)


def _leave(spark: SparkSession, name: str) -> None:
    """Go back to Spark's own catalog, if the lake is the current one.

    Spark makes a catalog to tell its name, and cannot make one whose lake is closed or was never asked for: so this
    comes while the settings are there, and a session whose catalog cannot be made is left as it is.
    """
    manager = spark._jsparkSession.sessionState().catalogManager()
    with suppress(Exception):
        if manager.currentCatalog().name() == name:
            manager.setCurrentCatalog("spark_catalog")


def _is_name(name: str) -> bool:
    return bool(name) and "." not in name and name.isprintable()


def _check_threads() -> None:
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "false":
        raise UnsupportedError(
            "SQL on a lake needs each Python thread to have its own in the JVM, so that it finds the thread's "
            "transaction; unset PYSPARK_PIN_THREAD"
        )
