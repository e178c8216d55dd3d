"""The verbs that bring tables of other systems into a lake."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.ducklake.lake_definition import LakeDefinition
from penstock.ducklake.moving.duckdb_import import Chosen, import_duckdb
from penstock.ducklake.moving.import_report import REPORT
from penstock.spark.local_rows import local_frame


@dataclass(frozen=True, repr=False, eq=False)
class LakeImport(LakeDefinition):
    """What others have, as tables of this lake."""

    def import_duckdb(
        self,
        path: str,
        *,
        schemas: Collection[str] | None = None,
        tables: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> DataFrame:
        """Brings a DuckDB database into the lake: its schemas, tables, views and macros, in one snapshot.

        Spark's tasks read the tables with DuckDB, many at once and large ones in parts; no row visits this program.
        All executors must see the file under its path. Nobody can write to it meanwhile.

        A column whose type DuckLake does not have, or whose values Parquet files would change, gets the first type that
        holds all of its values: ENUM, UNION and BIT become VARCHAR, lists of a fixed size become lists, BIGNUM becomes
        INTEGER, BIGINT, DECIMAL(38,0) or VARCHAR. NOT NULL, comments and most defaults are kept; a generated column
        keeps its values. What a lake does not have is left out: other constraints, indexes, sequences, types, and views
        that would not work there. The report tells of all of it.

        Args:
            path: The DuckDB file, on a disk.
            schemas: The schemas to bring; by default all.
            tables: The tables to bring, as `table` takes their names, without views and macros; by default everything.
            dry_run: Whether nothing is brought, and the report tells what would be.

        Returns:
            A row for each thing: object, kind, action (`brought`, `changed` or `left`), rows (of tables), note (why).

        Raises:
            AlreadyExistsError: The lake has something of the same name; nothing was brought.
            NotFoundError: There is no such file, schema or table.
            InvalidError: The file is open to be written, is no DuckDB database, or has a column of a name that the
                lake cannot have.
            UnsupportedError: The file is encrypted, or not on a disk.
        """
        lines = import_duckdb(self._attachment, path, Chosen(schemas, tables), dry_run=dry_run)
        return local_frame(self._attachment.spark, lines, REPORT)
