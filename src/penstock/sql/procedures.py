"""Answers CALL: the verbs of a lake under the extension's names, with its parameters and result columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.ducklake.lake import DuckLake
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.table import Table
from penstock.errors import InvalidError, NotFoundError
from penstock.spark.local_rows import local_frame
from penstock.sql.shown_objects import moment_of

SCHEMA = "system"
Given = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure: its name, its type in Spark SQL, and its default there; none is required."""

    name: str
    type: str
    default: str | None = "NULL"


@dataclass(frozen=True)
class Procedure:
    """A procedure: what it says of itself, its parameters, required ones first, and what it does."""

    description: str
    parameters: tuple[Parameter, ...]
    run: Callable[[DuckLake, Given], DataFrame | None]


class Procedures:
    """Questions of LakeCatalog about procedures, and their calls."""

    def __init__(self, lake: DuckLake) -> None:
        self._lake = lake

    def procedures(self) -> str:
        """The names of all."""
        return json.dumps(sorted(PROCEDURES))

    def procedure(self, schema: str, name: str) -> str:
        """What CALL needs to know of one."""
        found = PROCEDURES.get(name.lower()) if schema.lower() == SCHEMA else None
        if found is None:
            known = ", ".join(sorted(PROCEDURES))
            raise NotFoundError(f"there is no procedure {schema}.{name}; in schema {SCHEMA} there are {known}")
        parameters = [[one.name, one.type, one.default] for one in found.parameters]
        return json.dumps({"description": found.description, "parameters": parameters})

    def call(self, name: str, values: Any) -> Any:
        """Do what a procedure does, and give its rows."""
        procedure = PROCEDURES[name.lower()]
        given = {
            one.name: _value(one.type, value)
            for one, value in zip(procedure.parameters, values, strict=True)
            if value is not None
        }
        rows = procedure.run(self._lake, given)
        if rows is None:
            rows = local_frame(self._lake.spark, [], "success boolean")
        return rows._jdf


def _value(kind: str, value: Any) -> Any:
    """A value as Python has it; times come as Spark counts them."""
    if kind == "TIMESTAMP":
        return moment_of(value["micros"])
    return list(value) if kind.startswith("ARRAY") else value


def _maintain(verb: str) -> Callable[[DuckLake, Given], DataFrame]:
    def run(lake: DuckLake, given: Given) -> DataFrame:
        frame: DataFrame = getattr(lake, verb)(**given)
        return frame

    return run


def _flush(lake: DuckLake, given: Given) -> DataFrame:
    return lake.flush_inlined_data(schema=given.get("schema_name"), table=given.get("table_name"))


def _checkpoint(lake: DuckLake, given: Given) -> DataFrame:
    return lake.checkpoint()


def _set_option(lake: DuckLake, given: Given) -> None:
    _check_given("set_option", given, "option", "value")
    table = given.get("table_name")
    lake.set_option(
        given["option"], given["value"], schema=given.get("schema"), table=None if table is None else quoted_name(table)
    )


def _set_commit_message(lake: DuckLake, given: Given) -> None:
    if not lake._attachment.in_transaction:
        raise InvalidError(
            "set_commit_message is for the transaction that a statement is in; begin one: with lake.transaction():"
        )
    with lake._attachment.statement() as transaction:
        transaction.set_commit_message(given.get("author"), given.get("message"), given.get("extra_info"))


def _add_data_files(lake: DuckLake, given: Given) -> None:
    _check_given("add_data_files", given, "table_name", "path")
    table_named(lake, given["table_name"], given.get("schema")).add_files(
        given["path"],
        allow_missing=bool(given.get("allow_missing")),
        ignore_extra_columns=bool(given.get("ignore_extra_columns")),
        hive_partitioning=given.get("hive_partitioning"),
    )


def _check_given(procedure: str, given: Given, *parameters: str) -> None:
    """Spark sees to it that they are given, but not that they are something."""
    missing = [parameter for parameter in parameters if parameter not in given]
    if missing:
        raise InvalidError(f"{procedure} needs {' and '.join(missing)}, and is given NULL")


def table_named(lake: DuckLake, table: str, schema: str | None) -> Table:
    """A table as functions and procedures name it: by its own name and its schema's, or as `lake.table` takes it."""
    return lake.table(table if schema is None else quoted_name(schema, table))


_TABLE, _SCHEMA, _WHERE = Parameter("table_name", "STRING"), Parameter("schema", "STRING"), Parameter("where", "STRING")
_OLDER_THAN, _DRY_RUN = Parameter("older_than", "TIMESTAMP"), Parameter("dry_run", "BOOLEAN", "false")
_CLEANUP = (_OLDER_THAN, Parameter("cleanup_all", "BOOLEAN", "false"), _DRY_RUN)
_OF_TABLES = (Parameter("table", "STRING"), _SCHEMA)

PROCEDURES: dict[str, Procedure] = {
    "flush_inlined_data": Procedure(
        "Writes rows and deletes that the catalog keeps to files", (Parameter("schema_name", "STRING"), _TABLE), _flush
    ),
    "merge_adjacent_files": Procedure(
        "Merges small files into large ones",
        (
            *_OF_TABLES,
            Parameter("min_file_size", "BIGINT"),
            Parameter("max_file_size", "BIGINT"),
            Parameter("max_compacted_files", "INT"),
            _WHERE,
        ),
        _maintain("merge_adjacent_files"),
    ),
    "rewrite_data_files": Procedure(
        "Writes files anew that have lost many of their rows",
        (*_OF_TABLES, Parameter("delete_threshold", "DOUBLE"), _WHERE),
        _maintain("rewrite_data_files"),
    ),
    "expire_snapshots": Procedure(
        "Forgets snapshots",
        (Parameter("versions", "ARRAY<BIGINT>"), _OLDER_THAN, Parameter("keep_last", "INT"), _DRY_RUN),
        _maintain("expire_snapshots"),
    ),
    "cleanup_old_files": Procedure("Deletes files that are scheduled for it", _CLEANUP, _maintain("cleanup_old_files")),
    "delete_orphaned_files": Procedure(
        "Deletes files that no table names", _CLEANUP, _maintain("delete_orphaned_files")
    ),
    "checkpoint": Procedure("Does all of the maintenance", (), _checkpoint),
    "optimize_catalog": Procedure(
        "Makes the indexes that the catalog of many files needs", (), _maintain("optimize_catalog")
    ),
    "set_option": Procedure(
        "Sets an option for the lake, a schema or a table",
        (Parameter("option", "STRING", None), Parameter("value", "STRING", None), _TABLE, _SCHEMA),
        _set_option,
    ),
    "set_commit_message": Procedure(
        "Says who commits this transaction, and why",
        (
            Parameter("author", "STRING", None),
            Parameter("message", "STRING", None),
            Parameter("extra_info", "STRING"),
        ),
        _set_commit_message,
    ),
    "add_data_files": Procedure(
        "Links Parquet files into a table as they are",
        (
            Parameter("table_name", "STRING", None),
            Parameter("path", "STRING", None),
            _SCHEMA,
            Parameter("allow_missing", "BOOLEAN", "false"),
            Parameter("ignore_extra_columns", "BOOLEAN", "false"),
            Parameter("hive_partitioning", "BOOLEAN"),
        ),
        _add_data_files,
    ),
}
