"""A partitioned namespace: one logical table over many Lance datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.errors import NotFoundError
from penstock.lance.commits.leaf_records import BYTES, ROWS
from penstock.lance.format.definition import Definition, new_definition, read_definition
from penstock.lance.format.field_ids import numbered
from penstock.lance.format.leaves import leaf_of, leaves_of
from penstock.lance.format.manifest import Entry, Manifest, State
from penstock.lance.format.schemas import arrow_field, arrow_schema, arrow_type, columns_for
from penstock.lance.format.store import Store, require_lance
from penstock.lance.reading.leaf_checks import REPORT, findings, leaves_to_align
from penstock.lance.reading.leaf_scan import Scan, pushed
from penstock.lance.writing import schema_evolution
from penstock.lance.writing.adoption import Missing, adopt, as_of
from penstock.lance.writing.compaction import compact
from penstock.lance.writing.creation import check_name, create_namespace
from penstock.lance.writing.deletes import delete_rows
from penstock.lance.writing.statements import change_definition, write_rows
from penstock.lance.writing.write_job import ROWS_PER_FILE
from penstock.spark.explanation import Explanation
from penstock.spark.schemas import SchemaLike
from penstock.spark.session import prepare
from penstock.spark.versions import chosen_version
from penstock.spark.write_job import Distribution

_PARTITIONS = "leaf string, location string, partition map<string,string>, version bigint, rows bigint, bytes bigint"
_VERSIONS = "version bigint, timestamp timestamp, operation string, summary string"


class Namespace:
    """One partitioned namespace in a directory. Every verb that writes returns the namespace's new version."""

    def __init__(self, manifest: Manifest, name: str, spark: SparkSession) -> None:
        self._manifest = manifest
        self._spark = spark
        self.name = name
        self._definition_at(manifest.state())

    @property
    def schema(self) -> T.StructType:
        """The columns, as Spark shows them."""
        return self._scan().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns in the types that new leaves keep them in."""
        return pa.schema([item.remove_metadata() for item in self._definition().schema])

    @property
    def partitioned_by(self) -> list[str]:
        """The partition fields, as `create` takes them."""
        definition = self._definition()
        return [
            field.transform.describe(", ".join(definition.source(number).name for number in field.sources))
            for field in definition.fields
        ]

    def read(self, *, version: int | None = None, timestamp: str | datetime | None = None) -> DataFrame:
        """The rows of all leaves, now or as of a version or a time. Leaves are chosen while Spark plans a query."""
        return self._scan(chosen_version(self._spark, version, timestamp, self._manifest.version_at)).frame()

    def append(self, frame: DataFrame, *, distribution: Distribution = "auto") -> int:
        """Add rows; columns go by name, and those that are not given are NULL."""
        return write_rows(self._manifest, self._scan(), frame, "append", distribution)

    def overwrite(self, frame: DataFrame, *, distribution: Distribution = "auto") -> int:
        """Put rows in place of all that are there. Leaves take the namespace's columns of now."""
        return write_rows(self._manifest, self._scan(), frame, "overwrite", distribution, alone=True)

    def delete(self, where: str | SparkColumn) -> int | None:
        """Delete the rows that a predicate is true for; None where there are none. Whole leaves are not read."""
        return delete_rows(self._manifest, self._scan(), where)

    def compact(self, *, rows_per_fragment: int = ROWS_PER_FILE) -> int | None:
        """Put small fragments of each leaf together; None where there is nothing to do."""
        return compact(self._manifest, self._scan(), rows_per_fragment)

    def align(self) -> int | None:
        """Rewrite leaves whose columns are not the namespace's, or whose rows may belong elsewhere; None without any.

        Every row goes to the leaf of its partition values.
        """
        scan = self._scan()
        odd = leaves_to_align(scan)
        if not odd:
            return None
        ids = frozenset(leaf.object_id for leaf in odd)
        return write_rows(self._manifest, scan, scan.only(odd).frame(), "align", "auto", replaced=ids)

    def adopt(self, *, missing: Missing = "error") -> int | None:
        """Show what other programs have written to leaves since Penstock last did; None where there is nothing.

        Tasks look at their rows: a warning tells of those that do not belong in their leaf, which `align` moves. Leaves
        whose dataset was deleted are an error; with `missing="drop"` they leave the namespace.
        """
        return adopt(self._manifest, self._scan(), missing)

    def check(self) -> DataFrame:
        """What is wrong with leaves, a row for each problem: unreadable ones, columns that are not the namespace's,
        versions of other programs that are not adopted yet, and rows whose partition values are not the leaf's.

        Tasks read the partition columns of every leaf. No row in the result means that all is well.
        """
        return self._spark.createDataFrame(findings(self._scan()), REPORT)

    def add_column(self, column: str | pa.Field) -> int:
        """Add a column, `"note STRING"` or an Arrow field: NULL in the rows that are there."""
        item = arrow_field(column)
        return self._evolve(lambda old: schema_evolution.add_column(old, item), "add column", item.name)

    def drop_column(self, name: str) -> int:
        """Hide a column; its values stay in the leaves until they are rewritten."""
        return self._evolve(lambda old: schema_evolution.drop_column(old, name), "drop column", name)

    def rename_column(self, name: str, new: str) -> int:
        return self._evolve(lambda old: schema_evolution.rename_column(old, name, new), "rename column", name)

    def set_type(self, name: str, kind: str | T.DataType | pa.DataType) -> int:
        """Widen a column's type: a Spark type, its name, or an Arrow type."""
        wanted = arrow_type(kind)
        return self._evolve(lambda old: schema_evolution.set_type(old, name, wanted), "set type", name)

    def partitions(self, *, version: int | None = None) -> DataFrame:
        """The leaves: their partition values, the version of each that is read, and what it is known to hold."""
        state = self._manifest.state(version)
        definition = self._definition_at(state)
        rows = []
        for entry in state.below(self.name):
            if entry.kind == "table":
                leaf = leaf_of(entry, self.name, definition.fields)
                named = dict(zip((field.key for field in definition.fields), leaf.values or (), strict=False))
                held = (_number(entry, ROWS), _number(entry, BYTES))
                rows.append((leaf.object_id, leaf.location, named, leaf.version, *held))
        return self._spark.createDataFrame(rows, _PARTITIONS)

    def versions(self) -> DataFrame:
        """The versions that Penstock made, the oldest first; `read(version=...)` takes any of them."""
        rows = [
            (
                change.version,
                change.timestamp,
                change.properties["penstock.operation"],
                change.properties["penstock.summary"],
            )
            for change in self._manifest.changes()
            if change.properties.get("penstock.namespace") == self.name
        ]
        return self._spark.createDataFrame(rows, _VERSIONS)

    def explain(self, predicate: str) -> Explanation:
        """Which leaves a query with this predicate reads, and what leaves the others out."""
        scan = self._scan()
        implication = pushed(scan, predicate)
        kept = len(scan.pruner.kept(scan.leaves, implication))
        reasons = scan.pruner.reasons(scan.leaves, implication)
        return Explanation(predicate, len(scan.leaves), kept, reasons, unit="leaves")

    def _evolve(self, change: Callable[[Definition], Definition], operation: str, what: str) -> int:
        scan = self._scan()
        new = change(scan.definition)
        columns_for(self._spark, new.schema)  # refuses types that Spark does not have
        return change_definition(self._manifest, scan, new.properties(), operation, what)

    def _definition(self) -> Definition:
        return self._definition_at(self._manifest.state())

    def _definition_at(self, state: State) -> Definition:
        root = state.entry(self.name)
        if root is None or root.kind != "namespace":
            raise NotFoundError(
                f"{self._manifest.store.root} has no namespace {self.name!r} at version {state.version}; make it with"
                " lance.create"
            )
        return read_definition(self.name, root.properties)

    def _scan(self, version: int | None = None) -> Scan:
        state = self._manifest.state(version)
        definition = self._definition_at(state)
        leaves = leaves_of(state, self.name, definition.fields)
        if version is not None:
            time = self._manifest.time_of(state.version)
            leaves = [leaf if leaf.version is not None else as_of(self._manifest.store, leaf, time) for leaf in leaves]
        sizes = [entry.properties.get(BYTES) for entry in state.below(self.name) if entry.kind == "table"]
        size = {} if None in sizes else {"size": sum(int(size or 0) for size in sizes)}
        columns = columns_for(self._spark, definition.schema)
        return Scan(self._spark, self._manifest.store, self.name, definition, columns, leaves, **size)


def _number(entry: Entry, key: str) -> int | None:
    text = entry.properties.get(key)
    return None if text is None else int(text)


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

    The name can be a path, `db$events`: the namespaces on the way are made too.
    The schema is Spark's DDL or `StructType`, or an Arrow schema, which can say more: `pa.list_(pa.float32(), 128)` is
    a vector. Partition fields are columns or `bucket(N, c)`, `truncate(W, c)`, `hash(c, ...)`, `year(c)` to `hour(c)`.
    """
    require_lance()
    session = prepare(spark)
    check_name(name)
    arrow = arrow_schema(schema)
    schema_evolution.check_names(list(arrow))
    own = numbered(arrow)
    definition = new_definition(own, columns_for(session, own), partitioned_by)
    store = Store.at(root, storage_options)
    create_namespace(store, name, definition)
    return Namespace(Manifest(store), name, session)


def open_namespace(
    root: str, name: str, *, storage_options: Mapping[str, str] | None = None, spark: SparkSession | None = None
) -> Namespace:
    """Open a partitioned namespace, of ours or of any other writer."""
    require_lance()
    return Namespace(Manifest(Store.at(root, storage_options)), name, prepare(spark))
