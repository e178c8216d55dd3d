"""Queries, views and macros of DuckDB's dialect over one lake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.objects import Macro, View
from penstock.errors import InvalidError, UnsupportedError
from penstock.spark.expressions import spark_quoted
from penstock.spark.schemas import columns_of
from penstock.spark.versions import session_time_zone
from penstock.sql.duckdb_dialect.stand_ins import DIALECT, Source, StoredView
from penstock.sql.duckdb_dialect.translation import SETTINGS, Translation, translated
from penstock.sql.shown_objects import find_info
from penstock.sql.view_columns import aliases_of


class LakeObjects:
    """What a lake has, as queries of DuckDB's dialect name it. `session` is that of the JVM's that will run them."""

    def __init__(self, lake: DuckLake, catalog: str, session: Any) -> None:
        self._lake, self._catalog, self._session = lake, catalog, session
        self._attachment: Attachment = lake._attachment
        self._views: list[View] | None = None
        self._macros: list[Macro] | None = None

    def schemas(self) -> list[str]:
        """The names of the schemas."""
        return [schema.name for schema in self._lake.schemas()]

    def macros(self) -> list[Macro]:
        """The macros."""
        if self._macros is None:
            self._macros = self._lake.macros()
        return self._macros

    def view(self, schema: str, name: str) -> StoredView | None:
        """A view of DuckDB's dialect, or None."""
        found = self._view(schema, name)
        if found is None or found.dialect.lower() != DIALECT:
            return None
        return StoredView(found.sql, aliases_of(found))

    def source(self, schema: str, name: str, at: tuple[str, Any] | None) -> Source | None:
        """A table, now or then, or a view of Spark's."""
        if at is None and self._view(schema, name) is not None:
            relation = ".".join(map(spark_quoted, (self._catalog, schema, name)))
            return Source(relation, self._columns(self._session.table(relation).schema()))
        shown = self._attachment.shown(None if at is None else self._version(at))
        info = find_info(shown, schema, name)
        if info is None:
            return None
        columns = objects.columns_at(objects.column_versions(shown.database, info.id), shown.at)
        relation = ".".join(map(spark_quoted, (self._catalog, info.schema.name, info.name)))
        when = "" if at is None else f" VERSION AS OF {shown.at.version}"
        return Source(relation + when, columns)

    def temporary(self, name: str) -> Source | None:
        """A temporary view of the session, or None."""
        found = self._session.sessionState().catalog().getTempView(name)
        if not found.isDefined():
            return None
        return Source(spark_quoted(name), self._columns(self._session.table(spark_quoted(name)).schema()))

    def _view(self, schema: str, name: str) -> View | None:
        if self._views is None:
            self._views = self._lake.views()
        return next((v for v in self._views if same_name(v.schema, schema) and same_name(v.name, name)), None)

    def _columns(self, schema: Any) -> Sequence[Any]:
        return columns_of(self._lake.spark, T.StructType.fromJson(json.loads(str(schema.json()))))

    def _version(self, at: tuple[str, Any]) -> int:
        unit, value = at
        if unit == "VERSION":
            return int(value)
        if not isinstance(value, datetime | str):
            raise InvalidError(f"AT (TIMESTAMP => {value!r}) is no time")
        return self._attachment.snapshot_at(timestamp=value).id


def translated_query(
    lake: DuckLake, catalog: str, session: Any, sql: str, what: str, *,
    args: Mapping[str, Any] | Sequence[Any] | None = None, shown: str | None = None,
) -> Translation:  # fmt: skip
    """A query of DuckDB's over a lake, in Spark's SQL; `shown` is its text in errors, if that is another.

    The session is one of the caller's own, which gets the settings that the SQL is written for.
    """
    for key, value in SETTINGS.items():
        session.conf().set(key, value)
    known = LakeObjects(lake, catalog, session)
    return translated(sql, known, catalog, session_time_zone(lake.spark), what, args=args, shown=shown)


def translated_frame(
    lake: DuckLake,
    catalog: str,
    session: Any,
    sql: str,
    what: str,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
) -> DataFrame:
    """The rows of a query of DuckDB's, in a session of the caller's own."""
    translation = translated_query(lake, catalog, session, sql, what, args=args)
    frame = SparkSession(lake.spark.sparkContext, session).sql(translation.sql)
    check_types(lake.spark, str(frame._jdf.schema().json()), translation, what)
    return frame


def check_types(spark: SparkSession, schema: str, translation: Translation, what: str) -> None:
    """Hold the types that Spark finds against those of DuckDB's: another type would be another meaning."""
    found = [field["type"] for field in json.loads(schema)["fields"]]
    parser = spark._jsparkSession.sessionState().sqlParser()
    for place, (name, kind) in enumerate(translation.columns):
        expected = json.loads(str(parser.parseDataType(kind.spark).json()))
        if _without_nulls(found[place]) != _without_nulls(expected):
            raise UnsupportedError(
                f"column {name} of {what} is a {kind.duckdb} in DuckDB, and {found[place]} in Spark: {translation.sql}"
            )


def _without_nulls(kind: Any) -> Any:
    """A type, as JSON, without what it says about NULLs and comments."""
    if isinstance(kind, dict):
        left_out = ("nullable", "containsNull", "valueContainsNull", "metadata")
        return {key: _without_nulls(value) for key, value in kind.items() if key not in left_out}
    return [_without_nulls(item) for item in kind] if isinstance(kind, list) else kind
