"""Answers for views: stored with the dialect that they are in, and shown with the columns that they have now."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.objects import same_name
from penstock.ducklake.catalog.remembered_answers import Moment, RememberedAnswers
from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.names import DEFAULT_SCHEMA
from penstock.ducklake.model.objects import View
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.errors import InvalidError, UnsupportedError
from penstock.spark.java_classes import java_class
from penstock.spark.jvm import query_execution
from penstock.sql.duckdb_dialect.stand_ins import DIALECT as DUCKDB
from penstock.sql.duckdb_dialect.translation import SETTINGS
from penstock.sql.duckdb_queries import check_types, translated_query
from penstock.sql.names import NoSuchSchemaError, one_schema
from penstock.sql.sessions import session_in_lake, set_current
from penstock.sql.shown_objects import ShownObjects
from penstock.sql.used_definitions import UsedDefinitions
from penstock.sql.view_columns import aliases_of

DIALECT = "spark"
# Where the names of a view's text are looked up, if not in its own schema.
_CATALOG_TAG, _NAMESPACE_TAG = "spark.catalog", "spark.namespace"
# The columns of a view's query when it was made: one that is gone is an error, and not the next one's values.
_COLUMNS_TAG = "spark.columns"
_COMMENT = "comment"


class _ChangedError(InvalidError):
    """Raised when another has taken a view's name while its text was translated: the text may be of either."""


class Views:
    """Questions of LakeRelations and LakeViews about views, and about names that may be views'."""

    def __init__(self, lake: DuckLake, lake_id: str, shown: ShownObjects, used: UsedDefinitions) -> None:
        self._lake, self._id, self._shown, self._used = lake, lake_id, shown, used
        self._thread = threading.local()
        self._views = RememberedAnswers()

    def relation(self, catalog: str, schema: str, name: str) -> str | None:
        """What `view` tells of a name, or else ShownObjects of a table; None where there is neither."""
        while True:
            moment = self._lake._attachment.newest_moment()
            found = self._found(schema, name, moment)
            if found is None:
                return self._shown.newest_table(schema, name, moment)
            with suppress(_ChangedError):
                return self._loaded(found, catalog, None if moment is None else moment.snapshot)

    def views(self, schema: str) -> str:
        """The names of a schema's views."""
        return json.dumps(sorted(view.name for view in self._lake.views() if same_name(view.schema, schema)))

    def is_view(self, name: str) -> bool:
        """Whether a name is a view's in the default schema."""
        return self._found(DEFAULT_SCHEMA, name) is not None

    def view(self, catalog: str, schema: str, name: str) -> str | None:
        """A view's text, where its names are looked up, and its columns; None where there is none."""
        found = self._found(schema, name)
        return None if found is None else self._loaded(found, catalog)

    def view_note(self, schema: str, name: str) -> str | None:
        """What to note of a view for when a query runs."""
        found = self._found(schema, name)
        return None if found is None else self._used.of_view(found, None)

    def _loaded(self, found: View, catalog: str, version: int | None = None) -> str:
        """What is told of a view, which was found at a version."""
        loading: set[int] = self._thread.__dict__.setdefault("loading", set())
        if found.id in loading:
            raise InvalidError(f"view {found.schema}.{found.name} refers to itself")
        loading.add(found.id)  # views in its text are loaded meanwhile, on this thread
        try:
            return json.dumps({**self._described(found, catalog), "note": self._used.of_view(found, version)})
        finally:
            loading.remove(found.id)

    def view_plan(self, catalog: str, schema: str, name: str) -> Any:
        """The analyzed plan of a view's rows, for a Spark whose catalogs have no views; None where there is none."""
        told = self.view(catalog, schema, name)
        if told is None:
            return None
        about = json.loads(told)
        session = session_in_lake(self._lake.spark, catalog, self._id, schema)
        for key, value in about["settings"].items():
            session.conf().set(key, value)
        set_current(self._lake.spark, session, about["catalog"], about["namespace"])
        frame = DataFrame(self._query(session, about["sql"]), self._lake.spark)
        places = _places(about["columns"], frame.columns)
        if None in places:
            gone = about["columns"][places.index(None)]
            raise InvalidError(f"view {schema}.{name}: its query has no column {gone} any more; make the view again")
        own = frame.toDF(*(f"_penstock_{place}" for place in range(len(frame.columns))))
        names = [field["name"] for field in json.loads(about["schema"])["fields"]]
        columns = [F.col(f"_penstock_{place}").alias(alias) for place, alias in zip(places, names, strict=True)]
        return query_execution(own.select(*columns)).analyzed()

    def refuse_view_statements(self) -> None:
        """Say how views are made where Spark has no statements for those of a catalog."""
        raise UnsupportedError(
            f"Spark {self._lake.spark.version} has no CREATE VIEW and DROP VIEW for catalogs, which came with 4.2; use "
            "lake.create_view(...) and lake.drop_view(...): spark.sql reads what they made"
        )

    def _described(self, found: View, catalog: str) -> dict[str, Any]:
        session = session_in_lake(self._lake.spark, catalog, self._id, found.schema)
        if found.dialect.lower() == DUCKDB:
            return self._translated(found, catalog, session)
        if found.dialect.lower() != DIALECT:
            raise UnsupportedError(
                f"view {found.schema}.{found.name} is written in the dialect {found.dialect}, which Penstock does not "
                f"translate: {found.sql}"
            )
        where = [found.tags.get(_CATALOG_TAG) or catalog, found.tags.get(_NAMESPACE_TAG) or found.schema]
        set_current(self._lake.spark, session, where[0], where[1])
        return self._told(found, found.sql, where, self._schema(session, found.sql), {})

    def _translated(self, found: View, catalog: str, session: Any) -> dict[str, Any]:
        """A view of DuckDB's dialect, in Spark's."""
        what = f"view {found.schema}.{found.name}"
        query = f"FROM {quoted_name(found.schema, found.name)}"
        translation = translated_query(self._lake, catalog, session, query, what, shown=found.sql)
        if self._found(found.schema, found.name, self._lake._attachment.newest_moment()) != found:
            raise _ChangedError(f"{what} is being changed; make the query again")
        schema = self._schema(session, translation.sql)
        check_types(self._lake.spark, schema, translation, what)
        return self._told(found, translation.sql, [catalog, found.schema], schema, SETTINGS)

    def _told(
        self, found: View, sql: str, where: Sequence[str], schema: str, settings: Mapping[str, str]
    ) -> dict[str, Any]:
        shape = json.loads(schema)
        names = [field["name"] for field in shape["fields"]]
        stored = found.tags.get(_COLUMNS_TAG)
        if stored is not None:
            names = json.loads(stored)
            shape["fields"] = _fields(shape["fields"], names)
        for field, alias in zip(shape["fields"], aliases_of(found), strict=False):
            field["name"] = alias
        comment = found.tags.get(_COMMENT)
        return {
            "sql": sql,
            "catalog": where[0],
            "namespace": where[1],
            "schema": json.dumps(shape),
            "columns": names,
            "settings": settings,
            "properties": {} if comment is None else {_COMMENT: comment},
        }

    def create_view(self, namespace: str, name: str, sql: str, where: str, schema: str, properties: str) -> None:
        """Store a view of Spark's."""
        self._store(namespace, name, sql, json.loads(where), json.loads(schema), json.loads(properties), False)

    def replace_view(self, namespace: str, name: str, sql: str, where: str, schema: str, properties: str) -> None:
        """Store a view of Spark's in the place of the one that has its name."""
        self._store(namespace, name, sql, json.loads(where), json.loads(schema), json.loads(properties), True)

    def drop_view(self, schema: str, name: str) -> bool:
        """Drop a view, if there is one."""
        if self._found(schema, name) is None:
            return False
        self._lake.drop_view(quoted_name(schema, name))
        return True

    def rename_view(self, schema: str, name: str, namespace: str, new_name: str) -> None:
        """Rename a view within its schema."""
        target = one_schema(namespace) if json.loads(namespace) else schema
        if not same_name(target, schema):
            raise UnsupportedError(f"view {schema}.{name} cannot move to schema {target}; make it there")
        self._lake.rename_view(quoted_name(schema, name), new_name)

    def _store(
        self,
        namespace: str,
        name: str,
        sql: str,
        where: Mapping[str, Any],
        schema: Mapping[str, Any],
        properties: Mapping[str, str],
        replace: bool,
    ) -> None:
        schema_name = one_schema(namespace)
        if not any(same_name(known.name, schema_name) for known in self._lake.schemas()):
            raise NoSuchSchemaError(f"schema {schema_name} does not exist")
        own = where["own"] and [schema_name] == (where["namespace"] or [DEFAULT_SCHEMA])
        tags = {} if own else {_NAMESPACE_TAG: ".".join(where["namespace"])}
        tags |= {} if where["own"] else {_CATALOG_TAG: where["catalog"]}
        tags |= {_COLUMNS_TAG: json.dumps(where["columns"])}
        tags |= {_COMMENT: properties[_COMMENT]} if _COMMENT in properties else {}
        names: Sequence[str] = [field["name"] for field in schema["fields"]]
        full_name = quoted_name(schema_name, name)
        with self._lake._attachment.statement():
            self._lake.create_view(full_name, sql, dialect=DIALECT, column_aliases=names, replace=replace)
            self._lake.set_view_tags(full_name, **tags)
            self.view(where["lake"], schema_name, name)  # one that refers to itself is not stored

    def _schema(self, session: Any, sql: str) -> str:
        return str(self._query(session, sql).schema().json())

    def _query(self, session: Any, sql: str) -> Any:
        """A query, analyzed. Text that is a command is an error here, and not run."""
        query = session.sessionState().sqlParser().parseQuery(sql)
        return java_class(self._lake.spark, "org.apache.spark.sql.classic.Dataset").ofRows(session, query)

    def _found(self, schema: str, name: str, moment: Moment | None = None) -> View | None:
        """The view of a name; when the catalog is at a moment, of the views that it has there."""
        attachment = self._lake._attachment

        def views() -> list[View]:
            shown = attachment.shown(None if moment is None else moment.snapshot)
            return objects.views(shown.database, shown.at, shown.data_path)

        found = views() if moment is None else self._views.answer("views", moment, views, lambda _: True)
        return next((view for view in found if same_name(view.schema, schema) and same_name(view.name, name)), None)


def _fields(found: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The fields of names, of which there may be several; Spark says which of them are gone."""
    places = _places(names, [field["name"] for field in found])
    return [
        {"name": name, "type": "string", "nullable": True, "metadata": {}} if place is None else dict(found[place])
        for name, place in zip(names, places, strict=True)
    ]


def _places(names: Sequence[str], found: Sequence[str]) -> list[int | None]:
    """Where each name stands among those found, each of which is taken once; None where it is gone."""
    left = list(range(len(found)))
    places = []
    for name in names:
        place = next((one for one in left if same_name(found[one], name)), None)
        if place is not None:
            left.remove(place)
        places.append(place)
    return places
