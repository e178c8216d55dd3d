"""What every namespace has, and the verbs that keep one in order: compact, clean up, align, adopt, check."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from penstock.lance.format.definition import NamespaceDefinition, definition_in
from penstock.lance.format.kept_versions import version_at
from penstock.lance.format.manifest import Manifest
from penstock.lance.reading.leaf_checks import PROBLEM_SCHEMA, leaf_problems, leaves_to_align
from penstock.lance.reading.leaf_scan import LeafScan, open_scan
from penstock.lance.writing.adoption import MissingLeaves, adopt_leaves
from penstock.lance.writing.cleanup import CLEANUP_SCHEMA, check_choice, clean_up
from penstock.lance.writing.compaction import compact_leaves
from penstock.lance.writing.fragment_write_job import ROWS_PER_FILE
from penstock.lance.writing.row_writes import write_rows
from penstock.spark.local_rows import local_frame
from penstock.spark.versions import Age, moment
from penstock.storage.progress import titled


class NamespaceMaintenance:
    """A namespace, and the verbs that keep it small, quick and in order."""

    def __init__(self, manifest: Manifest, name: str, spark: SparkSession) -> None:
        """Open a namespace of a manifest; users call `penstock.lance.open`.

        Args:
            manifest: The manifest of the directory.
            name: The namespace's name, or its path, `db$events`.
            spark: The session that reads and writes.

        Raises:
            NotFoundError: The directory has no manifest, or no namespace of this name.
            InvalidError: The namespace is not partitioned, or its properties cannot be understood.
        """
        self._manifest = manifest
        self._spark = spark
        self._name = name
        self._definition()

    @property
    def name(self) -> str:
        """The namespace's name, or its path, `db$events`."""
        return self._name

    @titled("compact")
    def compact(self, *, rows_per_fragment: int = ROWS_PER_FILE) -> int | None:
        """Put the small fragments of each leaf together, and remove deleted rows from their files.

        Args:
            rows_per_fragment: The number of rows that fragments should have.

        Returns:
            The namespace's new version, or None where there is nothing to do.

        Raises:
            ConflictError: Another writer has changed the rows of a leaf meanwhile; run again.
            NotFoundError: A leaf is gone.
        """
        return compact_leaves(self._manifest, self._scan(), rows_per_fragment)

    def clean_up(
        self, *, older_than: Age | None = None, keep_last: int | None = None, dry_run: bool = False
    ) -> DataFrame:
        """Remove old versions of the namespace, and the files that no other version needs.

        The newest version always stays, and those that stay read as before. Whoever still reads a version that goes
        fails, and so does a write that began with one: it is an error, and is to be run again. Leaves that other
        programs made are left alone, and so are versions that are tagged. The manifest is shared with the other
        partitioned namespaces of the directory: its old versions go once none of these keeps them. A run that was
        stopped is finished by the next.

        Args:
            older_than: The moment that versions are older than, as text or a datetime, or an age as a timedelta; one
                without a zone is in the Spark session's.
            keep_last: How many of the newest versions, as `versions()` lists them, are kept.
            dry_run: Whether nothing is done but to tell what would go.

        Returns:
            A DataFrame with a row for each table of which something was removed: `table` (its object id, or
            `__manifest`), `location`, the numbers of its own `versions`, the number of `files` with rows, deletes and
            indexes, and the `bytes` of all that was removed.

        Raises:
            InvalidError: Not just one of older_than and keep_last was given, or it is no time, or no number of at least
                1. Nothing has changed.
            ConflictError: Another writer has changed the namespace's columns meanwhile, or has taken over; run again.
        """
        check_choice(older_than, keep_last)
        cutoff = None if older_than is None else moment(self._spark, older_than)
        removed = clean_up(self._manifest, self.name, self._definition(), cutoff, keep_last, dry_run)
        return local_frame(self._spark, removed, CLEANUP_SCHEMA)

    def align(self) -> int | None:
        """Rewrite leaves whose columns are not the namespace's, or whose rows may belong elsewhere.

        Every row goes to the leaf of its partition values.

        Returns:
            The namespace's new version, or None where there are no such leaves.

        Raises:
            ConflictError: Another writer has changed one of those leaves meanwhile; run again.
            NotFoundError: A leaf is gone.
            InvalidError: A leaf has a value that is none of its column's type.
            UnsupportedError: The namespace is partitioned by a function that Penstock does not know.
        """
        scan = self._scan()
        leaves = leaves_to_align(scan)
        if not leaves:
            return None
        ids = frozenset(leaf.object_id for leaf in leaves)
        return write_rows(self._manifest, scan, scan.only(leaves).frame(), "align", "auto", replaced=ids)

    def adopt(self, *, missing: MissingLeaves = "error") -> int | None:
        """Show what other programs have written to leaves since Penstock last did.

        Spark's tasks check their rows: a warning tells of those that do not belong in their leaf, which `align` moves.

        Args:
            missing: What is done about leaves whose dataset was deleted: they are an "error", or with "drop" they leave
                the namespace.

        Returns:
            The namespace's new version, or None where there is nothing to show.

        Raises:
            NotFoundError: The dataset of a leaf was deleted, and `missing` is "error".
            InvalidError: `missing` is neither, or nobody can tell which of the namespace's columns those of a leaf are.
            ConflictError: Another writer has changed a leaf meanwhile; run again.
        """
        return adopt_leaves(self._manifest, self._scan(), missing)

    def check(self) -> DataFrame:
        """Find what is wrong with leaves; Spark's tasks read the partition columns of every leaf.

        Problems are leaves that cannot be read, columns that are not the namespace's, versions of other programs that
        are not adopted yet, and rows whose partition values are not the leaf's.

        Returns:
            A DataFrame with a row for each problem: the leaf, the problem, the number of rows where it is about rows,
            and the way out. No row means that all is well.

        Raises:
            NotFoundError: The namespace is gone.
            InvalidError: A leaf has a value in a partition column that is none of its type.
        """
        return local_frame(self._spark, leaf_problems(self._scan()), PROBLEM_SCHEMA)

    def _definition(self) -> NamespaceDefinition:
        return definition_in(self._manifest, self._manifest.state(), self.name)

    def _scan(self, version: int | None = None) -> LeafScan:
        return open_scan(self._spark, self._manifest, self.name, version)

    def _version_at(self, time: datetime) -> int:
        return version_at(self._manifest, self.name, time)
