"""Links the files of an Iceberg table: no row is copied, and columns are found by their field ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from penstock.ducklake.files.name_matching import ForeignFile, MatchingRules
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing.added_files import (
    DescribeJob,
    check_new,
    described_files,
    located_path,
    stage_matched_files,
    unlike,
)
from penstock.ducklake.writing.write_target import WriteTarget
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column, find_column
from penstock.spark.stores import prepare_other_store

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.types import IcebergType, NestedField

_REFUSED = {
    "timestamptz_ns": "instants of nanoseconds",
    "geometry": "geometries as Iceberg keeps them",
    "geography": "geographies",
}
_WAY_OUT = "compact it first (Spark's procedure rewrite_data_files), or read it and append its rows"


def add_iceberg(transaction: Transaction, spark: SparkSession, target: WriteTarget, table: Table) -> None:
    """Stage the live files of the snapshot that an Iceberg table was loaded at."""
    _check_is_iceberg(table)
    where = f"the Iceberg table {'.'.join(table.name())}"
    schema = table.schema()
    ids = _field_ids(schema, target.columns, where, f"{where} and {target.info.full_name}")
    tasks = _tasks(table, where)
    paths = [located_path(task.file.file_path) for task in tasks]
    for path in paths:
        prepare_other_store(spark, path, transaction.catalog.data_path)
    check_new(transaction, target, paths)
    # Iceberg adds and drops columns without touching files; ids tell which are missing, whatever they are called.
    rules = MatchingRules(
        allow_missing=True, ignore_extra_columns=True, hive_partitioning=False, ids=ids, named_ids=_named_ids(table)
    )
    files = described_files(spark, paths, DescribeJob(target.columns, rules))
    fields = {number: schema.find_field(number) for number in ids.values()}
    specs = table.specs()
    for task, file in zip(tasks, files, strict=True):
        in_path = {field.source_id for field in specs[task.file.spec_id].fields if str(field.transform) == "identity"}
        _check_missing(target.columns, file, ids, fields, in_path)
    stage_matched_files(transaction, target, files)


def _check_is_iceberg(table: object) -> None:
    try:
        from pyiceberg.table import Table
    except ImportError:
        raise UnsupportedError("tables of Iceberg are read by pyiceberg; pip install 'penstock[iceberg]'") from None
    if not isinstance(table, Table):
        raise InvalidError(f"{type(table).__name__} is no table of pyiceberg's; catalog.load_table(...) gives one")


def _tasks(table: Table, where: str) -> list[FileScanTask]:
    """The live files; an error where they hold rows that the table does not show, or are no Parquet files."""
    try:
        tasks = list(table.scan().plan_files())
    except ValueError as error:
        raise UnsupportedError(f"{where} cannot be read: {str(error).splitlines()[0]}; {_WAY_OUT}") from None
    for task in tasks:
        if task.delete_files:
            raise UnsupportedError(
                f"{where} has delete files, so that {task.file.file_path} holds rows which it does not show; {_WAY_OUT}"
            )
        if task.file.file_format.value != "PARQUET":
            raise UnsupportedError(
                f"{where} has files that are not Parquet, such as {task.file.file_path}; read it and append its rows"
            )
        if task.file.key_metadata is not None:
            raise UnsupportedError(f"{where} has encrypted files, whose keys DuckLake cannot keep; append its rows")
    return tasks


def _field_ids(schema: Schema, columns: Sequence[Column], where: str, both: str) -> dict[int, int]:
    """The ids in files of the table's columns and their fields; an error where the two schemas differ in names."""
    ids: dict[int, int] = {}

    def level(fields: Sequence[NestedField], own: Sequence[Column], above: str) -> None:
        matched = set()
        for item in fields:
            column = find_column(own, item.name)
            if column is None:
                raise unlike(both, above + item.name, "the DuckLake table")
            matched.add(column.id)
            ids[column.id] = item.field_id
            visit(item.field_type, column, above + item.name)
        for column in own:
            if column.id not in matched:
                raise unlike(both, above + column.name, "the Iceberg table")

    def visit(kind: IcebergType, column: Column, path: str) -> None:
        if str(kind).partition("(")[0] in _REFUSED:
            what = _REFUSED[str(kind).partition("(")[0]]
            raise UnsupportedError(f"column {path!r} of {where} is {kind}: DuckLake has no {what}; append its rows")
        parts = _parts(kind)
        if column.type.name == "struct":
            level(parts, column.children, f"{path}.")
        elif column.type.nested:
            for part, child in zip(parts, column.children, strict=False):
                ids[child.id] = part.field_id
                visit(part.field_type, child, f"{path}.{child.name}")

    level(schema.fields, columns, "")
    return ids


def _parts(kind: IcebergType) -> tuple[NestedField, ...]:
    """What a nested type is made of."""
    from pyiceberg.types import ListType, MapType, StructType

    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return (kind.element_field,)
        case MapType():
            return (kind.key_field, kind.value_field)
    return ()


def _named_ids(table: Table) -> dict[tuple[str, ...], int]:
    """The ids of fields by the paths of their names, for files that have none themselves."""
    found: dict[tuple[str, ...], int] = {}

    def collect(fields: Any, above: tuple[str, ...]) -> None:
        for item in fields:
            for name in item.names:
                if item.field_id is not None:
                    found[*above, name] = item.field_id
                collect(item.fields, (*above, name))

    mapping = table.name_mapping()
    collect(mapping.root if mapping is not None else (), ())
    return found


def _check_missing(
    columns: Sequence[Column],
    file: ForeignFile,
    ids: Mapping[int, int],
    fields: Mapping[int, NestedField],
    in_path: set[int],
) -> None:
    """What a file lacks must be NULL, in Iceberg and here."""
    mapped = {item.column_id for item in file.mapping}
    for column in (item for one in columns for item in one.walk() if item.id not in mapped):
        number = ids[column.id]
        default = fields[number].initial_default
        if number in in_path:
            raise InvalidError(
                f"{file.path} lacks column {column.name!r}, whose value Iceberg takes from the partition; "
                "write the Iceberg table anew, or read it and append its rows"
            )
        if default is not None or column.initial_default is not None:
            raise InvalidError(
                f"{file.path} lacks column {column.name!r}, which reads as {default!r} in Iceberg and would read as "
                f"{column.initial_default!r} here; write the Iceberg table anew, or read it and append its rows"
            )
