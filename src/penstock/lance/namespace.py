"""A partitioned namespace: one logical table over many Lance datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.lance.format.dataset_store import DatasetStore, require_lance
from penstock.lance.format.definition import NamespaceDefinition, new_definition
from penstock.lance.format.field_ids import with_field_ids
from penstock.lance.format.manifest import Manifest
from penstock.lance.format.schema_conversion import arrow_field, arrow_schema, arrow_type, namespace_columns
from penstock.lance.namespace_maintenance import NamespaceMaintenance
from penstock.lance.reading.leaf_scan import pushed_implication
from penstock.lance.reading.listings import PARTITION_SCHEMA, VERSION_SCHEMA, partition_rows, version_rows
from penstock.lance.writing import schema_evolution
from penstock.lance.writing.creation import check_namespace_name, create_namespace
from penstock.lance.writing.deletes import delete_rows
from penstock.lance.writing.row_writes import write_rows
from penstock.spark.explanation import Explanation
from penstock.spark.local_rows import local_frame
from penstock.spark.schemas import SchemaLike
from penstock.spark.session import prepare
from penstock.spark.stores import prepare_store
from penstock.spark.versions import chosen_version
from penstock.spark.write_job import Distribution
from penstock.storage.options import StorageOptions, options_for, options_on_trial
from penstock.storage.progress import titled


class Namespace(NamespaceMaintenance):
    """One partitioned namespace in a directory, made by `penstock.lance.create` or `open`.

    Every method that writes returns the namespace's new version, and changes nothing where it raises an error. All of
    them raise NotFoundError once the namespace is gone, InvalidError where its properties cannot be understood,
    and those that read or write rows UnsupportedError where a column has a type that Spark does not have.
    """

    @property
    def schema(self) -> T.StructType:
        """The columns, as Spark shows them.

        Returns:
            Spark's schema: vectors are arrays, float16 is float, unsigned integers are the next wider type.

        Raises:
            NotFoundError: The namespace is gone.
            UnsupportedError: Spark does not have the type of a column.
        """
        return self._scan().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, in the types that new leaves keep them in.

        Returns:
            Arrow's schema, which can say more than Spark's.

        Raises:
            NotFoundError: The namespace is gone.
        """
        return pa.schema([item.remove_metadata() for item in self._definition().schema])

    @property
    def partitioned_by(self) -> list[str]:
        """The partition fields.

        Returns:
            Their texts, as `create` takes them: `["country", "bucket(4, city)"]`.

        Raises:
            NotFoundError: The namespace is gone.
        """
        definition = self._definition()
        return [
            field.transform.describe(", ".join(definition.source(number).name for number in field.sources))
            for field in definition.fields
        ]

    def read(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """Read the rows of all leaves, now or as of a version or a time.

        Leaves are chosen while Spark plans a query: its filters leave out those that cannot hold a matching row.

        Args:
            version: A version of the namespace, as `versions()` lists them.
            timestamp: A time, whose newest version is read; one without a zone is in the Spark session's.

        Returns:
            A DataFrame of the namespace's columns. A query of it raises NotFoundError where another program has deleted
            a leaf or cleaned up its version to read, and InvalidError where nobody can tell which columns a leaf has. A
            value that is none of its column's type is an error of Spark's, which names the column, leaf and value.

        Raises:
            NotFoundError: There is no such version, or none at that time, or `timestamp` is no time.
            InvalidError: Both `version` and `timestamp` are given.
            UnsupportedError: Spark does not have the type of a column.
        """
        return self._scan(chosen_version(self._spark, version, timestamp, self._version_at)).frame()

    @titled("append")
    def append(self, frame: DataFrame, *, distribution: Distribution = "auto") -> int:
        """Add rows; columns go by name, and those that are not given are NULL.

        Args:
            frame: The rows.
            distribution: How rows go to the tasks that write them: "none" leaves them as they come, "partition" brings
                the rows of a leaf together by a shuffle, "auto" chooses.

        Returns:
            The namespace's new version.

        Raises:
            InvalidError: The DataFrame has a column that the namespace does not have, lacks one that takes no NULL, or
                has a value that does not fit; or a leaf lacks one of the columns (see `align`).
            UnsupportedError: The namespace is partitioned by a function that Penstock does not know.
            ConflictError: Another writer has changed the namespace or a leaf meanwhile; run again.
            NotFoundError: A leaf to write to is gone.
        """
        return write_rows(self._manifest, self._scan(), frame, "append", distribution)

    @titled("overwrite")
    def overwrite(self, frame: DataFrame, *, distribution: Distribution = "auto") -> int:
        """Put rows in place of all that are there. Leaves take the columns that the namespace has now.

        Args:
            frame: The rows; columns go by name, and those that are not given are NULL.
            distribution: How rows go to the tasks that write them, as for `append`.

        Returns:
            The namespace's new version. Old versions keep the old rows.

        Raises:
            InvalidError: The DataFrame has a column that the namespace does not have, lacks one that takes no NULL, or
                has a value that does not fit.
            UnsupportedError: The namespace is partitioned by a function that Penstock does not know.
            ConflictError: Another writer has changed the namespace or a leaf meanwhile; run again.
            NotFoundError: A leaf to write to is gone.
        """
        return write_rows(self._manifest, self._scan(), frame, "overwrite", distribution, replace_all=True)

    @titled("delete")
    def delete(self, where: str | SparkColumn) -> int | None:
        """Delete the rows that a predicate is true for. Leaves that go as a whole are not read.

        Args:
            where: The predicate, as SQL text or a column expression.

        Returns:
            The namespace's new version, or None where there are no such rows.

        Raises:
            ConflictError: Another writer has changed the namespace or a leaf meanwhile, or another program has added
                rows to a leaf that would go as a whole, which `adopt` shows; run again.
            NotFoundError: A leaf is gone.
            InvalidError: A leaf has a value that is none of its column's type.
            pyspark.errors.AnalysisException: Spark does not understand the predicate.
        """
        return delete_rows(self._manifest, self._scan(), where)

    def add_column(self, column: str | pa.Field) -> int:
        """Add a column, which is NULL in the rows that are there.

        Args:
            column: Its name and type, `"note STRING"`, or an Arrow field.

        Returns:
            The namespace's new version.

        Raises:
            InvalidError: The column takes no NULL, its name is taken or one that Lance cannot keep, or the text is not
                one column.
            UnsupportedError: Lance or Spark does not have the type.
            ConflictError: Another writer has changed the namespace meanwhile; run again.
        """
        item = arrow_field(column)
        return self._evolve(lambda old: schema_evolution.add_column(old, item), "add column", item.name)

    def drop_column(self, name: str) -> int:
        """Hide a column; its values stay in the leaves until they are rewritten.

        Args:
            name: The column's name.

        Returns:
            The namespace's new version.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The namespace is partitioned by the column, or has no other.
            ConflictError: Another writer has changed the namespace meanwhile; run again.
        """
        return self._evolve(lambda old: schema_evolution.drop_column(old, name), "drop column", name)

    def rename_column(self, name: str, new: str) -> int:
        """Give a column another name; leaves and the names of partitions stay as they are.

        Args:
            name: The column's name.
            new: Its new name.

        Returns:
            The namespace's new version.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The new name is taken, or one that Lance cannot keep.
            ConflictError: Another writer has changed the namespace meanwhile; run again.
        """
        return self._evolve(lambda old: schema_evolution.rename_column(old, name, new), "rename column", name)

    def set_type(self, name: str, kind: str | T.DataType | pa.DataType) -> int:
        """Widen a column's type; leaves stay as they are.

        Args:
            name: The column's name.
            kind: A Spark type, its name, or an Arrow type.

        Returns:
            The namespace's new version.

        Raises:
            NotFoundError: There is no such column.
            InvalidError: The type does not hold every value of the old one, or values of a partition column could have
                other partitions with it.
            UnsupportedError: Lance or Spark does not have the type.
            ConflictError: Another writer has changed the namespace meanwhile; run again.
        """
        wanted = arrow_type(kind)
        return self._evolve(lambda old: schema_evolution.set_type(old, name, wanted), "set type", name)

    def partitions(self, *, version: int | None = None) -> DataFrame:
        """List the leaves.

        Args:
            version: A version of the namespace; without one, as it is now.

        Returns:
            A DataFrame with a row for each leaf: its object id, location and partition values, the version of it that
            is read, and the rows and bytes that it is known to hold.

        Raises:
            NotFoundError: There is no such version.
        """
        return local_frame(self._spark, partition_rows(self._manifest, self.name, version), PARTITION_SCHEMA)

    def versions(self) -> DataFrame:
        """List the versions that Penstock made, the oldest first; `read(version=...)` takes any of them.

        Returns:
            A DataFrame with a row for each version: its number, its time, what made it, and a summary as JSON.

        Raises:
            NotFoundError: The directory has no manifest any more.
        """
        return local_frame(self._spark, version_rows(self._manifest, self.name), VERSION_SCHEMA)

    def explain(self, predicate: str) -> Explanation:
        """Tell which leaves a query with a predicate reads, and what leaves the others out; no leaf is opened.

        Args:
            predicate: The predicate, as SQL text.

        Returns:
            The numbers of leaves that are read and left out, and by which partition fields. `print` shows it.

        Raises:
            NotFoundError: The namespace is gone.
            pyspark.errors.AnalysisException: Spark does not understand the predicate.
        """
        scan = self._scan()
        implication = pushed_implication(scan, predicate)
        kept = len(scan.pruner.kept(scan.leaves, implication))
        reasons = scan.pruner.reasons(scan.leaves, implication)
        return Explanation(predicate, len(scan.leaves), kept, reasons, unit="leaves")

    def _evolve(self, change: Callable[[NamespaceDefinition], NamespaceDefinition], operation: str, column: str) -> int:
        scan = self._scan()
        new = change(scan.definition)
        namespace_columns(self._spark, new.schema)  # refuses types that Spark does not have
        return schema_evolution.commit_definition(self._manifest, scan, new, operation, column)


@options_on_trial()
def create(
    root: str,
    name: str,
    schema: SchemaLike,
    *,
    partitioned_by: Sequence[str],
    storage_options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> Namespace:
    """Make a partitioned namespace in a directory, which becomes a Lance directory namespace if it is none yet.

    Args:
        root: The directory.
        name: The namespace's name. It can be a path, `db$events`: the namespaces on the way are made too.
        schema: The columns: Spark's DDL or `StructType`, or an Arrow schema, which can say more:
            `pa.list_(pa.float32(), 128)` is a vector.
        partitioned_by: The partition fields: columns, or `bucket(N, c)`, `truncate(W, c)`, `hash(c, ...)`, `year(c)` to
            `hour(c)`.
        storage_options: What Lance needs to reach the directory, such as credentials; see `penstock.attach`.
        spark: The session that reads and writes; the running one, or a new local one, without it.

    Returns:
        The namespace, which is empty.

    Raises:
        InvalidError: The name is taken, inside of a table or another partitioned namespace, or one that Lance cannot
            keep; the schema is no list of columns, or has column names that Lance cannot keep; there is no partition
            field, one is there twice, cannot be understood, or does not go with the type of its column.
        NotFoundError: A partition field is made of a column that the schema does not have.
        UnsupportedError: Lance is not installed; Lance or Spark does not have a type; values of a partition column have
            no text or hash; or the session is none that Penstock can use.
    """
    require_lance()
    session = prepare(spark)
    check_namespace_name(name)
    arrow = arrow_schema(schema)
    schema_evolution.check_column_names(list(arrow))
    own = with_field_ids(arrow)
    definition = new_definition(own, namespace_columns(session, own), partitioned_by)
    store = _store(session, root, storage_options)
    create_namespace(store, name, definition)
    return Namespace(Manifest(store), name, session)


@options_on_trial()
def open_namespace(
    root: str, name: str, *, storage_options: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> Namespace:
    """Open a partitioned namespace, of ours or of any other writer.

    Args:
        root: The directory.
        name: The namespace's name, or its path, `db$events`.
        storage_options: What Lance needs to reach the directory, such as credentials; see `penstock.attach`.
        spark: The session that reads and writes; the running one, or a new local one, without it.

    Returns:
        The namespace.

    Raises:
        NotFoundError: The directory is no Lance namespace with a manifest, or has no namespace of this name.
        InvalidError: The namespace is not partitioned, or its properties cannot be understood.
        UnsupportedError: Lance is not installed, the namespace's schema has a type that is not understood, or the
            session is none that Penstock can use.
    """
    require_lance()
    session = prepare(spark)
    return Namespace(Manifest(_store(session, root, storage_options)), name, session)


def _store(spark: SparkSession, root: str, storage_options: Mapping[str, str] | None) -> DatasetStore:
    """The store of a namespace; PyArrow reaches it with what it knows of Lance's options."""
    prepare_store(spark, root, StorageOptions.known_in(storage_options), reads_there=False)
    return DatasetStore.at(root, {**options_for(root), **(storage_options or {})})
