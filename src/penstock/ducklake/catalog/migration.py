"""Migrates catalogs of older format versions to the tables and rows of this one."""

from __future__ import annotations

import re
import warnings

from penstock.ducklake.catalog.catalog_tables import FORMAT_VERSION, TABLES
from penstock.ducklake.catalog.creation import column_clause, create_statement
from penstock.ducklake.catalog.databases import Database
from penstock.errors import AttachError, CatalogError

OLDER_VERSIONS = ("0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4")
_BEFORE_SCHEMA_VERSIONS = ("0.1", "0.2", "0.3-dev1")
# Rows of this version are those of 1.0 while some of its tables may still be older: what a migration passes through.
_ROWS_DONE = "0.4-dev1"

_OLD_STATISTICS = "ducklake_file_column_statistics"
# What older rows have in columns that came later, where it is not NULL.
_FILLED = (
    ("ducklake_schema", "path", ""),
    ("ducklake_schema", "path_is_relative", True),
    ("ducklake_table", "path", ""),
    ("ducklake_table", "path_is_relative", True),
    ("ducklake_name_mapping", "is_partition", False),
    ("ducklake_column", "default_value_type", "literal"),
)


def format_version(database: Database) -> str:
    """The version of DuckLake's format that a catalog has."""
    return str(database.value('SELECT "value" FROM ducklake_metadata WHERE "key" = \'version\''))


def migrate(database: Database) -> None:
    """Bring an older catalog to this version; it is migrated whole, or stays as it was and can be migrated again."""
    version = format_version(database)
    if version not in (*OLDER_VERSIONS, FORMAT_VERSION):
        known = ", ".join(OLDER_VERSIONS)
        raise AttachError(f"{database.location} has format version {version}; only {known} can be migrated")
    try:
        if database.transactional_ddl:
            _migrate_at_once(database)
        else:
            _migrate_in_steps(database)
    except CatalogError as error:
        raise AttachError(
            f"{database.location} cannot be migrated from format version {version}: {error.__cause__}"
        ) from error


def _migrate_at_once(database: Database) -> None:
    with database.transaction():
        partial = _partial_files(database)
        # DuckDB cannot alter a table after changing its rows in the same transaction.
        _complete_tables(database)
        _drop_old_column(database)
        _rewrite_rows(database, partial)
        _set_version(database, FORMAT_VERSION)


def _migrate_in_steps(database: Database) -> None:
    """Each DDL statement is a commit of its own: every step can be repeated where the one before was the last."""
    with database.transaction():
        _complete_tables(database)
    with database.transaction():
        _rewrite_rows(database, _partial_files(database))
        _set_version(database, _ROWS_DONE)
    with database.transaction():
        _drop_old_column(database)
    with database.transaction():
        _set_version(database, FORMAT_VERSION)


def _complete_tables(database: Database) -> None:
    present = database.tables("ducklake_")
    if _OLD_STATISTICS in present:
        database.execute(f"ALTER TABLE {_OLD_STATISTICS} RENAME TO ducklake_file_column_stats")
        present.add("ducklake_file_column_stats")
    for table in TABLES.values():
        if table.name not in present:
            database.execute(create_statement(database, table))
            continue
        known = database.columns(table.name)
        for column in table.columns:
            if column.name not in known:
                database.execute(f"ALTER TABLE {table.name} ADD COLUMN {column_clause(database, column)}")


def _partial_files(database: Database) -> dict[int, int]:
    """The last snapshot of each file that holds rows of several, from the text that older versions kept it in."""
    if "partial_file_info" not in database.columns("ducklake_data_file"):
        return {}
    sql = "SELECT data_file_id, partial_file_info FROM ducklake_data_file WHERE partial_file_info IS NOT NULL"
    files: dict[int, str] = dict(database.query(sql))
    newest = {file: re.search(r"partial_max:(\d+)", text) for file, text in files.items()}
    lost = [file for file, match in newest.items() if match is None and files[file]]
    if lost:
        warnings.warn(
            f"{database.location}: {len(lost)} merged files tell their rows' snapshots in a way that no version after "
            "0.3 reads, DuckDB's included; versions of their tables from before the merge now show all their rows",
            stacklevel=2,
        )
    return {file: int(match[1]) for file, match in newest.items() if match}


def _drop_old_column(database: Database) -> None:
    if "partial_file_info" in database.columns("ducklake_data_file"):
        database.execute("ALTER TABLE ducklake_data_file DROP COLUMN partial_file_info")


def _rewrite_rows(database: Database, partial: dict[int, int]) -> None:
    version = format_version(database)
    for table, column, value in _FILLED:
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS NULL", [value])
    for file, newest in partial.items():
        database.execute("UPDATE ducklake_data_file SET partial_max = ? WHERE data_file_id = ?", [newest, file])
    if version == "0.1":
        _name_partition_columns(database)
    _track_schema_versions_by_table(database, version)


def _name_partition_columns(database: Database) -> None:
    """Version 0.1 kept the position of a partition column among the table's columns, not its id."""
    columns: dict[int, list[int]] = {}
    for table, column in database.query(
        """SELECT table_id, column_id FROM ducklake_column WHERE parent_column IS NULL AND end_snapshot IS NULL
           ORDER BY column_order"""
    ):
        columns.setdefault(table, []).append(column)
    keys = database.query(
        "SELECT partition_id, table_id, partition_key_index, column_id FROM ducklake_partition_column"
    )
    for partition, table, index, position in keys:
        ids = columns.get(table, [])
        database.execute(
            "UPDATE ducklake_partition_column SET column_id = ? WHERE partition_id = ? AND partition_key_index = ?",
            [ids[position] if position < len(ids) else None, partition, index],
        )


def _track_schema_versions_by_table(database: Database, version: str) -> None:
    if version in _BEFORE_SCHEMA_VERSIONS and not database.query("SELECT 1 FROM ducklake_schema_versions LIMIT 1"):
        database.execute(
            """INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version)
               SELECT min(snapshot_id), schema_version FROM ducklake_snapshot GROUP BY schema_version"""
        )
    database.execute(
        """INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id)
           SELECT v.begin_snapshot, v.schema_version, t.table_id
           FROM ducklake_schema_versions v, ducklake_table t
           WHERE v.table_id IS NULL AND v.begin_snapshot >= t.begin_snapshot
           AND (t.end_snapshot IS NULL OR v.begin_snapshot <= t.end_snapshot)"""
    )
    database.execute("DELETE FROM ducklake_schema_versions WHERE table_id IS NULL")


def _set_version(database: Database, version: str) -> None:
    database.execute('UPDATE ducklake_metadata SET "value" = ? WHERE "key" = \'version\'', [version])
