"""Translates a query of DuckDB's for Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import UnsupportedError
from penstock.spark.expressions import spark_quoted
from penstock.sql.duckdb_dialect.aggregates import aggregate_text
from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError
from penstock.sql.duckdb_dialect.expressions import Expressions, type_of
from penstock.sql.duckdb_dialect.plan_keys import check_keys
from penstock.sql.duckdb_dialect.relations import ROW_ID, Relations
from penstock.sql.duckdb_dialect.stand_ins import Objects, Source, stand_ins

_ARGUMENTS = "_penstock_arguments"

# Settings under which Spark's words mean what is written here.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}


@dataclass(frozen=True)
class Translation:
    """A query in Spark's SQL, and the columns that DuckDB says it has."""

    sql: str
    columns: tuple[tuple[str, BoundType], ...]


def translated(
    sql: str,
    objects: Objects,
    catalog: str,
    zone: str,
    what: str,
    *,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    shown: str | None = None,
) -> Translation:
    """A query of DuckDB's in Spark's SQL; `what` names it in errors, which show its SQL, or `shown` instead."""
    with stand_ins(objects, catalog, zone) as duck:
        ready = duck.bound(sql, args)
        plan = duck.plan(f"SELECT * FROM ({ready}) AS q")
        names = duck.columns(ready)
        try:
            rows = Relations(Expressions(duck.calculate, is_fixed(zone)), duck.relation).rows(plan)
            kinds = [type_of(one) for one in plan["expressions"]]
            items = ", ".join(f"q.c{place} AS {spark_quoted(name)}" for place, name in enumerate(names))
        except UntranslatableError as error:
            raise _refused(what, error, shown or sql) from None
    return Translation(f"SELECT {items} FROM ({rows.sql}) q", tuple(zip(names, kinds, strict=True)))


def is_fixed(zone: str) -> bool:
    """Whether the clocks of a time zone never change."""
    return (
        zone in ("UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT")
        or re.fullmatch(r"(Etc/)?(GMT|UTC)?[+-][\d:]+", zone) is not None
    )


def translated_expression(
    sql: str, arguments: Source, objects: Objects, catalog: str, zone: str, what: str, shown: str
) -> str:
    """An expression of DuckDB's over columns that keep their names; `what` and its SQL, `shown`, are for errors."""
    with stand_ins(objects, catalog, zone) as duck:
        duck.add(_ARGUMENTS, arguments)
        plan = duck.plan(duck.bound(f"SELECT {sql} FROM {_ARGUMENTS}"))
        try:
            return _expression(plan, Expressions(duck.calculate, is_fixed(zone)))
        except UntranslatableError as error:
            raise _refused(what, error, shown) from None


def _expression(plan: Node, expressions: Expressions) -> str:
    """The one expression of a plan that is no more than that; it may be of aggregates."""
    source = plan["children"][0]
    aggregate = source if source["type"] == "LOGICAL_AGGREGATE_AND_GROUP_BY" else None
    if aggregate is not None:
        check_keys(aggregate)
        source = aggregate["children"][0]
    if source["type"] not in ("LOGICAL_GET", "LOGICAL_DUMMY_SCAN") or (aggregate and aggregate["groups"]):
        raise UntranslatableError("a query inside")
    columns = [source["names"][one["index"]] for one in source.get("column_indexes", ()) if one["index"] != ROW_ID]
    if aggregate is not None:
        columns = [aggregate_text(one, expressions, columns) for one in aggregate["expressions"]]
    return expressions.text(plan["expressions"][0], columns)


def _refused(what: str, error: UntranslatableError, sql: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} has {error}, which Penstock does not translate from DuckDB's SQL to Spark's: {sql}"
    )
