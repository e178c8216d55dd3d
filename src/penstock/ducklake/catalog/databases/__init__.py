"""Opens metadata databases; every engine has a module."""

from __future__ import annotations

from penstock.ducklake.catalog.databases.base import ConnectOptions, Database, Row
from penstock.ducklake.catalog.location import Location

__all__ = ["ConnectOptions", "Database", "Row", "connect"]


def connect(location: Location, options: ConnectOptions) -> Database:
    """Open a metadata database. Drivers are imported here so that only those in use must be installed."""
    match location.engine:
        case "sqlite":
            from penstock.ducklake.catalog.databases.sqlite import SqliteDatabase

            return SqliteDatabase(location, options)
        case "postgres":
            from penstock.ducklake.catalog.databases.postgres import PostgresDatabase

            return PostgresDatabase(location, options)
        case "mysql":
            from penstock.ducklake.catalog.databases.mysql import MysqlDatabase

            return MysqlDatabase(location, options)
        case _:
            from penstock.ducklake.catalog.databases.duckdb import DuckdbDatabase

            return DuckdbDatabase(location, options)
