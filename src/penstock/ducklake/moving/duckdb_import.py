"""Brings a DuckDB database into a lake: its schemas, tables, views and macros, in one snapshot."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits import staged_schemas
from penstock.ducklake.model.column_defaults import DIALECT
from penstock.ducklake.model.names import DEFAULT_SCHEMA, parse_table_name
from penstock.ducklake.model.snapshot_changes import quoted_name
from penstock.ducklake.moving.duckdb_macros import LakeMacro, exported_definitions, source_macros
from penstock.ducklake.moving.duckdb_source import DuckDBSource, SourceTable, SourceView, duckdb_source
from penstock.ducklake.moving.import_report import ImportReport, Line
from penstock.ducklake.moving.lake_views import changed_names, view_check
from penstock.ducklake.moving.query_names import SourceNames, lake_query
from penstock.ducklake.moving.row_job import RESULT, RowJob, RowRange
from penstock.ducklake.moving.table_plans import TablePlan, plan_table
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing import definitions
from penstock.ducklake.writing.duckdb_macros import check_macro
from penstock.ducklake.writing.inserts import note_files, stage_written
from penstock.ducklake.writing.write_target import WriteTarget, job_as_is, new_target
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError, PenstockError, UnsupportedError
from penstock.spark.cores import core_count
from penstock.spark.file_tasks import file_writing_job
from penstock.spark.job_progress import Work
from penstock.spark.task_rows import rows_in_tasks
from penstock.spark.workers import map_in_workers
from penstock.spark.write_job import WriteJob, Written, collect_written
from penstock.storage.parquet.names import new_write_id
from penstock.storage.paths import absolute, is_local
from penstock.storage.progress import titled

_TASKS_OF_A_CORE = 4  # tasks, so that one that is done early gets more; each opens the database


@dataclass(frozen=True)
class Chosen:
    """What of a database is brought: what is in some schemas, or some tables alone; None for everything."""

    schemas: Collection[str] | None = None
    tables: Collection[str] | None = None

    def has(self, schema: str) -> bool:
        """Whether what is in a schema is brought."""
        return self.schemas is None or schema.lower() in {name.lower() for name in self.schemas}


@dataclass(frozen=True)
class _Plan:
    """All that is to be made in the lake."""

    schemas: tuple[str, ...]
    tables: tuple[TablePlan, ...]
    macros: tuple[LakeMacro, ...]
    views: tuple[SourceView, ...]


def import_duckdb(attachment: Attachment, path: str, chosen: Chosen, *, dry_run: bool) -> list[Line]:
    """Bring a database, or plan to. Returns a line for each thing that was brought, changed or left."""
    if not dry_run:
        attachment.check_writable()
    located = absolute(path).removeprefix("file://")
    if not is_local(located):
        raise UnsupportedError(f"{path} is not on a disk; copy it to one that all executors see, and import that")
    report = ImportReport()
    with duckdb_source(located) as source:  # which keeps others from writing to it until all tasks have read it
        if source.is_lake():
            raise InvalidError(f'{path} is the catalog of a lake and holds none of its rows; attach("ducklake:{path}")')
        plan = _planned(attachment, source, chosen, report)
        if dry_run:
            _check_free(attachment, plan)
        else:
            with attachment.statement() as transaction:
                _check_free(attachment, plan)
                _create(attachment, transaction, source, plan)
    return report.lines


def _planned(attachment: Attachment, source: DuckDBSource, chosen: Chosen, report: ImportReport) -> _Plan:
    known = (DEFAULT_SCHEMA, *source.schemas())
    all_tables = source.tables()
    tables = _chosen_tables(source, all_tables, chosen, known)
    if chosen.tables is None:
        schemas = tuple(schema for schema in known[1:] if chosen.has(schema))
    else:
        schemas = tuple(dict.fromkeys(table.schema for table in tables if table.schema != DEFAULT_SCHEMA))
    for schema in schemas:
        report.brought((schema,), "schema")
    inlines = {schema: attachment.inlines(attachment.schema_id(schema)) for schema in (DEFAULT_SCHEMA, *schemas)}
    plans = tuple(plan_table(source, table, report, inlines=inlines[table.schema]) for table in tables)
    if chosen.tables is not None:
        return _Plan(schemas, plans, (), ())
    names = source.names()
    macros = _macros(source, chosen, names, report)
    views = _views(source, chosen, names, (known, plans, macros), report)
    for item in source.leftovers():
        if chosen.has(item.schema):
            report.left((item.schema, item.name), item.kind, item.reason)
    return _Plan(schemas, plans, macros, views)


def _chosen_tables(
    source: DuckDBSource, tables: Sequence[SourceTable], chosen: Chosen, known: Sequence[str]
) -> list[SourceTable]:
    named = {tuple(part.lower() for part in parse_table_name(name)): name for name in chosen.tables or ()}
    there = {(table.schema.lower(), table.name.lower()) for table in tables}
    missing = [f"table {name}" for key, name in named.items() if key not in there]
    missing += [f"schema {name}" for name in chosen.schemas or () if name.lower() not in map(str.lower, known)]
    if missing:
        listed = ", ".join(quoted_name(table.schema, table.name) for table in tables) or "none"
        raise NotFoundError(
            f"{source.path} has no {', '.join(missing)}; there are the schemas {', '.join(known)}, the tables {listed}"
        )
    return [
        table
        for table in tables
        if chosen.has(table.schema) and (chosen.tables is None or (table.schema.lower(), table.name.lower()) in named)
    ]


def _macros(source: DuckDBSource, chosen: Chosen, names: SourceNames, report: ImportReport) -> tuple[LakeMacro, ...]:
    found = [macro for macro in source_macros(source) if chosen.has(macro.schema)]
    exported = exported_definitions(source) if found else ""
    brought = []
    for macro in found:
        name, kind = (macro.schema, macro.name), "macro" if macro.kind == "scalar" else "table macro"
        try:
            made = macro.in_lake(source, exported, names)
            check_macro(quoted_name(*name), made.implementations)
        except PenstockError as error:
            report.left(name, kind, str(error))
            continue
        brought.append(made)
        report.brought(name, kind, note="; ".join(made.notes) or None)
    return tuple(brought)


def _views(
    source: DuckDBSource, chosen: Chosen, names: SourceNames,
    lake: tuple[Sequence[str], Sequence[TablePlan], Sequence[LakeMacro]], report: ImportReport,
) -> tuple[SourceView, ...]:  # fmt: skip
    schemas, tables, macros = lake
    views = []
    for view in source.views():
        if chosen.has(view.schema):
            try:
                views.append(replace(view, query=lake_query(view.query, names)))
            except UnsupportedError as error:
                report.left((view.schema, view.name), "view", str(error))
    ways = [(macro.schema, macro.name, macro.implementations) for macro in macros]
    with view_check(schemas, tables, ways) as check:
        working = tuple(check.working(views))
    texts = [(view.name, view.query) for view in working]
    texts += [(macro.name, way.sql) for macro in macros for way in macro.implementations]
    touched = changed_names({table.source.name: table.changed for table in tables if table.changed}, texts)
    for view in working:
        unchecked, columns = check.unchecked.get((view.schema, view.name)), touched.get(view.name.lower())
        notes = [f"not tried: {unchecked}"] if unchecked is not None else []
        notes += ["without the comments of its columns"] if view.has_column_comments else []
        notes += [f"it may compare, sort and compute otherwise than before, by {columns}"] if columns else []
        report.brought((view.schema, view.name), "view", note="; ".join(notes) or None)
    for name, reason in check.broken.items():
        report.left(name, "view", f"it would not work in the lake: {reason}")
    return working


def _check_free(attachment: Attachment, plan: _Plan) -> None:
    """An error, before any row is read, where the lake has something of a name already."""
    shown = attachment.shown()
    where = (shown.database, shown.at, shown.data_path)
    entries = {(table.schema.name.lower(), table.name.lower()) for table in objects.tables(*where)}
    entries |= {(view.schema.lower(), view.name.lower()) for view in objects.views(*where)}
    macros = {(one.schema.lower(), one.name.lower(), one.implementations[0].type) for one in objects.macros(*where)}
    names = [(table.source.schema, table.source.name) for table in plan.tables]
    names += [(view.schema, view.name) for view in plan.views]
    taken = [name for name in names if (name[0].lower(), name[1].lower()) in entries]
    taken += [
        (macro.schema, macro.name)
        for macro in plan.macros
        if (macro.schema.lower(), macro.name.lower(), macro.implementations[0].type) in macros
    ]
    if taken:
        listed = ", ".join(quoted_name(*name) for name in taken)
        raise AlreadyExistsError(
            f"the lake has {listed} already; drop or rename these there, or say which schemas or tables to import"
        )


def _create(attachment: Attachment, transaction: Transaction, source: DuckDBSource, plan: _Plan) -> None:
    """Stage everything; names are looked up once, since to ask a transaction takes all that it has staged."""
    for name in plan.schemas:
        definitions.create_schema(transaction, name, if_not_exists=True)
    shown, staging = transaction.shown(), transaction.staging
    schemas = {schema.name.lower(): schema for schema in objects.schemas(shown.database, shown.at, shown.data_path)}
    options = transaction.options
    targets = []
    for table in plan.tables:
        schema, definition = schemas[table.source.schema.lower()], table.definition
        info = definitions.add_table(
            transaction, schema, table.source.name, definition, comment=table.source.comment, inlines=table.inlines
        )
        targets.append(new_target(transaction, info, definition.columns, options, attachment.options))
    _bring_rows(attachment.spark, transaction, source, list(zip(plan.tables, targets, strict=True)))
    for macro in plan.macros:
        staged_schemas.create_macro(staging, schemas[macro.schema.lower()], macro.name, macro.implementations)
    for view in plan.views:
        schema = schemas[view.schema.lower()]
        number = staged_schemas.create_view(staging, schema, view.name, DIALECT, view.query, view.aliases)
        if view.comment is not None:
            staged_schemas.set_tag(staging, number, "comment", view.comment)


def _bring_rows(
    spark: SparkSession,
    transaction: Transaction,
    source: DuckDBSource,
    tables: Sequence[tuple[TablePlan, WriteTarget]],
) -> None:
    """Let tasks bring the rows of all tables in one job, and stage what they wrote."""
    directory, write_id, cores = transaction.catalog.data_path, new_write_id(), core_count(spark)
    jobs, work = [], []
    for number, (plan, target) in enumerate(tables):
        queries = list(plan.queries(cores))
        job = job_as_is(target)
        held = job.held_rows if len(queries) == 1 else 0
        jobs.append(replace(job, plan=replace(job.plan, write_id=write_id), held_rows=held))
        size = plan.size // max(1, len(queries))
        work += [(size, RowRange(number, query, jobs[number])) for query in queries]
    if not work:
        return
    tasks = min(len(work), cores * _TASKS_OF_A_CORE)
    work.sort(key=lambda each: -each[0])
    dealt = [each for task in range(tasks) for each in work[task::tasks]]  # large ones and small ones to each
    rows = rows_in_tasks(spark, [(bytearray(pickle.dumps(each)),) for _, each in dealt], "range binary", tasks)
    total = sum(plan.row_count for plan, _ in tables)
    with titled("import_duckdb"), file_writing_job(spark, directory, write_id, Work(rows=total)) as files:
        results: dict[int, list[Any]] = defaultdict(list)
        for row in map_in_workers(rows, RowJob(source.path), RESULT).collect():
            results[row.number].append(row)
        written = {number: collect_written(told) for number, told in results.items()}
        folders = {number: tables[number][1].info.path.removeprefix(directory) for number in written}
        files.report(folders[number] + path for number, one in written.items() for path in one.paths)
    for number, one in written.items():
        note_files(transaction, tables[number][1], one)
    for number, table in enumerate(tables):
        _stage(transaction, table, jobs[number], written.get(number, Written()))


def _stage(transaction: Transaction, table: tuple[TablePlan, WriteTarget], job: WriteJob, written: Written) -> None:
    plan, target = table
    if written.row_count != plan.row_count:
        raise PenstockError(
            f"{written.row_count} rows of {plan.name} arrived, and DuckDB counts {plan.row_count}; nothing was imported"
        )
    stage_written(transaction, target, job, written)
