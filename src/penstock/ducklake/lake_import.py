"""The verbs that bring tables of other systems into a lake."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike

from pyspark.sql import DataFrame

from penstock.ducklake.files.name_matching import MatchingRules
from penstock.ducklake.lake_definition import LakeDefinition
from penstock.ducklake.moving.duckdb_import import Chosen, import_duckdb
from penstock.ducklake.moving.file_tables import FileTable, create_table_from_files
from penstock.ducklake.moving.import_report import REPORT
from penstock.ducklake.table import Table
from penstock.ducklake.writing.added_files import Paths, given_paths
from penstock.ducklake.writing.sort_order import parse_sort_key
from penstock.errors import InvalidError
from penstock.spark.local_rows import local_frame


@dataclass(frozen=True, repr=False, eq=False)
class LakeImport(LakeDefinition):
    """What others have, as tables of this lake."""

    def import_duckdb(
        self,
        path: str | PathLike[str],
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
        [located] = given_paths([path])
        lines = import_duckdb(self._attachment, located, Chosen(schemas, tables), dry_run=dry_run)
        return local_frame(self._attachment.spark, lines, REPORT)

    def create_table_from_files(
        self,
        name: str,
        paths: Paths,
        *,
        copy: bool = False,
        partitioned_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        comment: str | None = None,
        allow_missing: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Table:
        """Makes a table of Parquet files, with the columns that they have.

        Where files have a column in different types, it gets the one that holds the values of all. Directories like
        `region=EU` give a column, of whole numbers, dates, timestamps or text; what they say counts where files have
        the column too.

        The files are linked where they are, as `Table.add_files` does it: they are the lake's from then on, and its
        clean-up may delete them. With `copy`, Spark writes their rows to files of the lake's own, partitioned and
        sorted as the table is, and leaves them alone.

        Args:
            name: The table's name, as `table` takes it.
            paths: Files, folders (all below them that end in `.parquet`, but for what is in folders like `_temporary`),
                or patterns: `/data/2026-*/**/*.parquet`.
            copy: Whether rows are written anew, and not linked.
            partitioned_by: Columns and transforms of them, as `create_table` takes them. A linked file is of a
                partition where its directories give all of these columns.
            sorted_by: Sort keys as in ORDER BY: `ts DESC NULLS LAST`. Linked files stay as they are.
            comment: The table's comment.
            allow_missing: Whether a column that some files lack reads as NULL there.
            hive_partitioning: False takes no values from directories.

        Returns:
            The table.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidError: There is no such file, one is no Parquet file, or two do not go together; it names them.
            UnsupportedError: A file has what DuckLake cannot show.
        """
        given = given_paths(paths)
        if not given:
            raise InvalidError(f"there are no files to make {name} of; name some, or make it with create_table")
        rules = MatchingRules(allow_missing=allow_missing, hive_partitioning=hive_partitioning)
        keys = [parse_sort_key(text) for text in sorted_by]
        create_table_from_files(self._attachment, FileTable(name, given, partitioned_by, keys, comment, copy, rules))
        return self.table(name)
