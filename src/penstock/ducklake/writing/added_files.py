"""Links files of other programs into a table: no row is copied."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from os import PathLike, fspath
from typing import Protocol

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.catalog.commits.staged_added_files import known_mappings, known_paths, link_files
from penstock.ducklake.files.name_matching import ForeignFile, MatchingRules, match_file
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.write_target import WriteTarget
from penstock.errors import InvalidError, PenstockError, UnsupportedError
from penstock.schema.columns import Column, find_column
from penstock.spark.stores import prepare_other_store
from penstock.spark.workers import map_in_workers
from penstock.storage.paths import absolute
from penstock.storage.patterns import named_files

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_MOST_TASKS = 200
_MOST_SHOWN = 5
_RESULT = "told binary"


class LinkableFiles(Protocol):
    """The files of one version of a Delta table, as plain values."""

    @property
    def table_path(self) -> str:
        """Where the Delta table is."""

    @property
    def paths(self) -> Sequence[str]:
        """The absolute paths of the files."""

    @property
    def columns(self) -> T.StructType:
        """The table's columns as its users see them."""

    @property
    def columns_in_files(self) -> T.StructType:
        """The same columns, at every depth under the names that they have in files."""

    @property
    def found_by_id(self) -> bool:
        """Whether files know their columns by ids, so that a name alone does not tell which column is missing."""

    @property
    def have_deletion_vectors(self) -> bool:
        """Whether files hold rows that the table does not show."""

    def partition_column_problems(self) -> str | None:
        """Looks into every file, and reports what is wrong with its partition columns; None where nothing is."""

    def note_link(self, into: str) -> None:
        """Notes in the table's log that a table elsewhere shows these files."""


class LinkableTable(Protocol):
    """A table whose files can be linked: what `penstock.delta` opens."""

    def linkable_files(self) -> LinkableFiles:
        """Returns the files of the newest version."""


@dataclass(frozen=True)
class DescribeJob:
    """Matches files with the table's columns, in a task: paths in, matched files out, or errors that say why not."""

    columns: tuple[Column, ...]
    rules: MatchingRules

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            told = [pickle.dumps(self._described(path)) for path in batch["path"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"told": pa.array(told, pa.binary())})

    def _described(self, path: str) -> ForeignFile | PenstockError:
        try:
            return match_file(path, self.columns, self.rules)
        except PenstockError as error:
            return error


def add_files(
    transaction: Transaction, spark: SparkSession, target: WriteTarget, paths: Sequence[str], rules: MatchingRules
) -> None:
    """Stage files, whose footers Spark's tasks read. Files without rows are left out, as the extension does it."""
    for path in paths:
        prepare_other_store(spark, path, transaction.catalog.data_path)
    located = [file for path in paths for file in named_files(located_path(path))]
    check_new(transaction, target, located)
    files = described_files(spark, located, DescribeJob(target.columns, rules))
    stage_matched_files(transaction, target, files)


def stage_matched_files(transaction: Transaction, target: WriteTarget, files: Sequence[ForeignFile]) -> None:
    """Stage files that are matched with the table's columns."""
    with_rows = [file for file in files if file.record_count]
    if with_rows:
        known = known_mappings(transaction.shown().database, target.info.id)
        link_files(transaction.staging, target.info.id, target.spec, known, with_rows)


def add_delta(transaction: Transaction, spark: SparkSession, target: WriteTarget, table: LinkableTable) -> None:
    """Stage the live files of a Delta table's newest version."""
    source = table.linkable_files()  # one version for all that follows
    where = f"the Delta table {source.table_path}"
    if source.have_deletion_vectors:
        raise UnsupportedError(
            f"{where} has files with deletion vectors, which DuckLake does not know; write those files anew first: "
            "table.overwrite(table.read()), or Delta's REORG TABLE ... APPLY (PURGE)"
        )
    names = _delta_names(source, target.columns, f"{where} and {target.info.full_name}")
    problems = source.partition_column_problems()
    if problems is not None:
        raise InvalidError(
            f"{where} does not hold its partition columns in every file, so nobody else can read them; "
            f"call backfill() on it first: {problems}"
        )
    paths = [located_path(path) for path in source.paths]
    check_new(transaction, target, paths)
    # Delta adds and drops columns without touching files. Where files go by ids, a name alone does not tell.
    lax = not source.found_by_id
    rules = MatchingRules(allow_missing=lax, ignore_extra_columns=True, hive_partitioning=False, names=names)
    files = described_files(spark, paths, DescribeJob(target.columns, rules))
    _check_defaults(target, files)
    # Where Penstock may not write to the table, it may not vacuum it either.
    with suppress(UnsupportedError, PermissionError):
        source.note_link(f"{transaction.catalog.database.location} {target.info.full_name}")
    stage_matched_files(transaction, target, files)


def given_paths(paths: Paths) -> list[str]:
    """The paths that a user gave, one or many, as texts."""
    try:
        texts = [fspath(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]
    except TypeError:
        raise InvalidError(f"{paths!r} has no paths of files; give texts or pathlib.Path") from None
    if "" in texts:
        raise InvalidError("a path is empty; name a file, a folder or a pattern, and '.' for the current folder")
    return texts


def located_path(path: str) -> str:
    """A path or address of a file as the catalog keeps it."""
    return absolute(path.removeprefix("file://").removeprefix("file:"))


def check_new(transaction: Transaction, target: WriteTarget, paths: Sequence[str]) -> None:
    """Refuse files that the table has already."""
    if not paths:
        return
    shown = transaction.shown()
    seen = known_paths(shown.database, shown.at, target.info.id, target.info.path)
    for path in paths:
        if path in seen:
            raise InvalidError(
                f"{path} is in {target.info.full_name} already, or was named twice; its rows would be there twice: "
                "leave it out"
            )
        seen.add(path)


def described_files(spark: SparkSession, paths: Sequence[str], job: DescribeJob) -> list[ForeignFile]:
    """Let tasks read the footers of files; the answers are in the order of the paths."""
    if not paths:
        return []
    rows = spark.createDataFrame([(path,) for path in paths], "path string").repartition(min(len(paths), _MOST_TASKS))
    told = [pickle.loads(row.told) for row in map_in_workers(rows, job, _RESULT).collect()]
    errors = [answer for answer in told if isinstance(answer, PenstockError)]
    if errors:
        shown = "\n".join(sorted(str(error) for error in errors)[:_MOST_SHOWN])
        more = f"\nand {len(errors) - _MOST_SHOWN} files more" if len(errors) > _MOST_SHOWN else ""
        raise type(errors[0])(f"{shown}{more}\nnothing was added")
    order = {path: place for place, path in enumerate(paths)}
    return sorted(told, key=lambda file: order[file.path])


def _delta_names(source: LinkableFiles, columns: Sequence[Column], both: str) -> dict[int, str]:
    """The names in files of the table's columns; an error where the two schemas do not have the same."""
    names: dict[int, str] = {}

    def level(shown: T.StructType, stored: T.StructType, own: Sequence[Column], above: str) -> None:
        matched = set()
        for item, in_file in zip(shown.fields, stored.fields, strict=True):
            column = find_column(own, item.name)
            if column is None:
                raise unlike(both, above + item.name, "the DuckLake table")
            matched.add(column.id)
            names[column.id] = in_file.name
            visit(item.dataType, in_file.dataType, column, f"{above}{item.name}.")
        for column in own:
            if column.id not in matched:
                raise unlike(both, above + column.name, "the Delta table")

    def visit(shown: T.DataType, stored: T.DataType, column: Column, above: str) -> None:
        match shown, stored:
            case T.StructType(), T.StructType() if column.type.name == "struct":
                level(shown, stored, column.children, above)
            case T.ArrayType(), T.ArrayType() if column.type.name == "list":
                visit(shown.elementType, stored.elementType, column.children[0], above)
            case T.MapType(), T.MapType() if column.type.name == "map":
                visit(shown.keyType, stored.keyType, column.children[0], above)
                visit(shown.valueType, stored.valueType, column.children[1], above)

    level(source.columns, source.columns_in_files, columns, "")
    return names


def unlike(both: str, name: str, without: str) -> InvalidError:
    """The error for two tables that do not have the same columns."""
    return InvalidError(f"{both} need the same columns: {without} has no {name!r}; add it, or drop it from the other")


def _check_defaults(target: WriteTarget, files: Sequence[ForeignFile]) -> None:
    """What a Delta file lacks is NULL there; in DuckLake it is the default that the column was added with."""
    with_default = [item for column in target.columns for item in column.walk() if item.initial_default is not None]
    for file in files if with_default else ():
        mapped = {item.column_id for item in file.mapping}
        for column in islice((item for item in with_default if item.id not in mapped), 1):
            raise InvalidError(
                f"{file.path} lacks column {column.name!r}, which is NULL in the Delta table and would read as "
                f"{column.initial_default!r} here; write the Delta table anew (table.overwrite(table.read())) first"
            )
