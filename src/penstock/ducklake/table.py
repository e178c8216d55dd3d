"""One table of a lake, and the verbs that write its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.ducklake.changing import deletes, overwritten_partitions, updates
from penstock.ducklake.changing.merge_keys import On
from penstock.ducklake.changing.target_rows import as_columns
from penstock.ducklake.changing.target_table import target_table
from penstock.ducklake.merge import Merge
from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.notebook_views import table_html
from penstock.ducklake.readable_table import Nanoseconds, warn_of_nanoseconds
from penstock.ducklake.streaming.stream_definitions import INITIAL, Start, define_stream
from penstock.ducklake.streaming.stream_writer import OutputMode, StreamWriter, Write
from penstock.ducklake.table_links import TableLinks
from penstock.ducklake.transaction import Transaction
from penstock.ducklake.writing import definitions, inserts, table_evolution
from penstock.errors import InvalidError
from penstock.markup import if_possible
from penstock.spark.expressions import as_column
from penstock.spark.write_job import Distribution
from penstock.storage.progress import titled
from penstock.texts import one_line

# A list of tuples, dicts or dataclasses is an Iterable; so are frames of other libraries.
Rows: TypeAlias = DataFrame | pa.Table | pa.RecordBatch | Iterable[Any]


@dataclass(frozen=True)
class Table(TableLinks):
    """A table by name. Each call shows it at the lake's current snapshot, or at the one that is asked for.

    Verbs that change something return the snapshot they made, and None inside a transaction, whose commit makes it.
    Each raises a `NotFoundError` where the table is gone, a `ConflictError` where another writer changed the same
    thing meanwhile, an `InvalidError` where the lake was attached read-only or at a snapshot, and a `CatalogError`
    where its database fails. One that fails leaves no snapshot and no file.
    """

    def __repr__(self) -> str:
        """The table's name and its lake's location."""
        return f"Table({one_line(self.schema_name)}.{one_line(self.name)} of {self._attachment!r})"

    def _repr_html_(self) -> str | None:
        return if_possible(lambda: table_html(self._attachment, self.schema_name, self.name))

    def append(self, df: Rows, *, by_name: bool = False, distribution: Distribution = "auto") -> Snapshot | None:
        """Adds rows: those of a DataFrame, of Arrow, or of the program itself.

        Rows that this program holds, and a DataFrame of such, take no Spark job where they are few. Those that go to
        the catalog (`data_inlining_row_limit`) without a conversion do not touch Spark at all.

        Args:
            df: The rows: a DataFrame; a `pyarrow.Table`, or what gives itself as one (a RecordBatch, a frame of pandas
                or polars); or a list of tuples, of dicts or of dataclasses, of which the last two go by name.
            by_name: Whether columns go by name, with defaults for what is not given; else by position, as SQL's INSERT.
            distribution: How rows come to the tasks that write files: "auto", "none" (every task of the DataFrame
                writes files of its own), or "partition" (a shuffle brings the rows of a partition together).

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: Columns or values do not fit the table's, or a NULL is where none may be.
            UnsupportedError: Spark cannot compute a default, or write a type.
        """
        with self._writing("append") as transaction:
            self._insert(transaction, df, by_name, distribution)
        return transaction.snapshot

    def overwrite(
        self,
        df: Rows,
        *,
        where: str | SparkColumn | None = None,
        by_name: bool = False,
        distribution: Distribution = "auto",
    ) -> Snapshot | None:
        """Puts rows in the place of all rows, or of those that a predicate is true for.

        Args:
            df: The rows, as `append` takes them; a DataFrame may be read from this table.
            where: A predicate, as `delete` takes it; by default all rows go.
            by_name: As for `append`.
            distribution: As for `append`.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: Columns or values do not fit the table's, or a NULL is where none may be.
            UnsupportedError: Spark cannot compute a default, or write a type.
        """
        with self._writing("overwrite") as transaction:
            self._remove(transaction, where)
            self._insert(transaction, df, by_name, distribution)
        return transaction.snapshot

    def overwrite_partitions(
        self, df: DataFrame, *, by_name: bool = False, distribution: Distribution = "auto"
    ) -> Snapshot | None:
        """Puts the rows of a DataFrame in the place of all rows of the partitions that they are in.

        Other partitions stay as they are. Of a table without partitions all rows go.

        Args:
            df: The rows, which may be read from this table.
            by_name: As for `append`.
            distribution: As for `append`.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: Columns or values do not fit the table's, or a NULL is where none may be.
            UnsupportedError: Spark cannot compute a default, or write a type.
        """
        with self._writing("overwrite_partitions") as transaction:
            table = target_table(self._attachment, transaction, self._info(transaction.shown()))
            overwritten_partitions.overwrite_partitions(
                transaction, table, df, by_name=by_name, distribution=distribution
            )
        return transaction.snapshot

    def delete(self, where: str | SparkColumn | None = None) -> Snapshot | None:
        """Deletes the rows that a predicate is true for; without one all rows, which reads nothing.

        Args:
            where: SQL text or a column expression. It may name `rowid`, DuckLake's row id, unless the table has a
                column of that name.

        Returns:
            The snapshot; inside a transaction, None.
        """
        with self._writing("delete") as transaction:
            self._remove(transaction, where)
        return transaction.snapshot

    def update(
        self, values: Mapping[str, str | SparkColumn], where: str | SparkColumn | None = None
    ) -> Snapshot | None:
        """Gives columns new values, in the rows that a predicate is true for or in all.

        Rows keep their identity, which conditions and values call `rowid`.

        Args:
            values: SQL text or column expressions by the names of columns or paths to fields of structs:
                `{"total": "total * 1.1"}`.
            where: A predicate, as `delete` takes it.

        Returns:
            The snapshot; inside a transaction, None.

        Raises:
            InvalidError: There is nothing to set, or a value does not fit its column.
            NotFoundError: There is no such column.
        """
        if not values:
            raise InvalidError(f"nothing to set in {self.schema_name}.{self.name}; give a value for a column")
        with self._writing("update") as transaction:
            table = target_table(self._attachment, transaction, self._info(transaction.shown()))
            condition = None if where is None else as_column(where)
            updates.update(transaction, table, as_columns(values), condition)
        return transaction.snapshot

    def merge(self, source: DataFrame, on: On) -> Merge:
        """Begins a merge: `t.merge(df, on="id").when_matched_update().when_not_matched_insert().execute()`.

        Args:
            source: The rows to merge into the table.
            on: A column that both sides have, or a list of such, by name: rows match where these are equal, as with
                SQL's USING, so that a NULL matches nothing. Any other text, or a column expression, is a condition:
                `on="target.id = source.id AND target.day > source.day"`.

        Returns:
            A merge without clauses, which does nothing before its `execute`.
        """
        return Merge(self._attachment, self.schema_name, self.name, source, on)

    def read_stream(
        self,
        *,
        start: Start = INITIAL,
        changes: bool = False,
        max_snapshots_per_trigger: int | None = None,
        max_rows_per_trigger: int | None = None,
        fail_on_data_loss: bool = True,
        nanoseconds: Nanoseconds | None = None,
    ) -> DataFrame:
        """Gives the table as a stream: the rows that it has, then those that each snapshot inserts.

        An updated row comes again, as it became; deleted rows are not told of, unless `changes` are asked for. The
        stream shows the columns that the table has now, whatever they are called later: it stops where one of them is
        dropped or gets another type. Compactions and flushes make no rows.

        Args:
            start: "initial" for the rows that there are, then what changes; the number of the first snapshot whose
                changes are wanted, or a `Snapshot`; or a time: the first snapshot from then on.
            changes: Whether all changes come, as `changes` tells of them: with the columns snapshot_id, rowid and
                change_type before the table's. The rows of the beginning are inserts.
            max_snapshots_per_trigger: How many snapshots one batch has at most.
            max_rows_per_trigger: About how many rows one batch has at most. A snapshot that has more, or the table as
                it is at the beginning, is split over several batches by row ids.
            fail_on_data_loss: Whether the stream stops where snapshots were expired before it read them. Else it
                passes over them, and gives of what they inserted what is still there.
            nanoseconds: As for `read`.

        Returns:
            A streaming DataFrame.

        Raises:
            NotFoundError: The table, or the snapshot to start at, does not exist.
            InvalidError: A limit is no number from 1.
        """
        attachment = self._attachment
        definition = define_stream(
            attachment,
            self.schema_name,
            self.name,
            start=start,
            changes=changes,
            max_snapshots_per_trigger=max_snapshots_per_trigger,
            max_rows_per_trigger=max_rows_per_trigger,
            fail_on_data_loss=fail_on_data_loss,
            nanoseconds=nanoseconds == "long",
        )
        if nanoseconds is None:
            warn_of_nanoseconds(definition.shown.columns, self.name)
        assert attachment.load_stream is not None  # every lake that was attached has one
        return attachment.load_stream(definition)

    def write_stream(
        self,
        df: DataFrame,
        *,
        checkpoint: str,
        name: str | None = None,
        merge: Callable[[Merge], Merge] | None = None,
        on: On | None = None,
        by_name: bool = False,
        output_mode: OutputMode = "append",
        trigger: Mapping[str, Any] | None = None,
        maintain: int | None = None,
    ) -> StreamingQuery:
        """Starts a stream into the table: each batch is appended, or merged, in one snapshot, and exactly once.

        The number of the last batch is kept in a tag of the table, in the batch's own snapshot: one that is repeated
        after a crash finds it, and does nothing. Of two runs of one stream only one can write. Small batches are kept
        in the catalog, as all small inserts are (`data_inlining_row_limit`). A batch that another writer is in the way
        of is tried again as commits are (`max_retry_count`)::

            table.write_stream(df, checkpoint="/checkpoints/orders", maintain=100)
            table.write_stream(
                df, checkpoint="...", on="id", merge=lambda m: m.when_matched_update().when_not_matched_insert()
            )

        Args:
            df: A streaming DataFrame.
            checkpoint: Where Spark keeps how far the stream has come.
            name: The name that the lake remembers the stream by, unlike that of any other stream into this lake; by
                default the id of its query, which is in the checkpoint.
            merge: Gives a merge its clauses: each batch is merged, as `Table.merge` does, and not appended.
            on: What the rows of a merge match by, as for `Table.merge`.
            by_name: As for `append`.
            output_mode: Spark's: "append"; with "complete", each batch takes the place of all rows, without a merge;
                "update" goes with a merge.
            trigger: When batches run, as `DataStreamWriter.trigger` takes it: `{"availableNow": True}`,
                `{"processingTime": "10 seconds"}`.
            maintain: After so many batches each, the table is maintained as `Lake.checkpoint` does it, in the stream's
                own thread: inlined rows are flushed, small files merged, files with many deletes written anew;
                snapshots expire and old files go as the lake's options say. Where that fails, a warning is logged.

        Returns:
            The running query.

        Raises:
            InvalidError: The DataFrame does not stream, or the arguments do not go together. What is wrong with rows
                stops the query: its `exception()` tells.
        """
        if (merge is None) != (on is None):
            raise InvalidError("a stream that merges takes both: merge, which gives the clauses, and on")
        if output_mode not in ("append", "update", "complete"):
            raise InvalidError(f"output_mode {output_mode!r} is none of append, update, complete")
        if output_mode == "update" and merge is None:
            raise InvalidError('output_mode="update" gives rows again that have changed: give merge and on for them')
        if output_mode == "complete" and merge is not None:
            raise InvalidError(
                'output_mode="complete" takes the place of all rows, and a merge would leave those that match nothing: '
                'leave merge and on out, or take output_mode="update", which gives a merge the rows that have changed'
            )
        if merge is not None and on is not None:
            clauses, matched = merge, on
            writer = self._stream_writer(lambda rows: clauses(self.merge(rows, matched)).execute(), name, maintain)
        else:
            put = self.overwrite if output_mode == "complete" else self.append
            writer = self._stream_writer(lambda rows: put(rows, by_name=by_name), name, maintain)
        self._attachment.check_writable()
        return writer.start(df, checkpoint, output_mode, trigger)

    def _stream_writer(self, write: Write, name: str | None, maintain: int | None) -> StreamWriter:
        return StreamWriter(self._attachment, lambda: self.info, write, name, maintain)

    def truncate(self) -> Snapshot | None:
        """Deletes all rows, by metadata alone.

        Returns:
            The snapshot; inside a transaction, None.
        """
        return self.delete()

    def rename(self, name: str) -> Table:
        """Renames the table within its schema; its files stay where they are.

        Args:
            name: The new name, without a schema.

        Returns:
            The table under its new name.

        Raises:
            InvalidError: The name is taken.
        """
        with self._attachment.statement() as transaction:
            info, inlines = self._info(transaction.shown()), self._inlines()
            definitions.rename_table(transaction, info, name)
            table_evolution.reshape(transaction, info, inlines)
        return Table(self._attachment, self.schema_name, name)

    @contextmanager
    def _writing(self, verb: str) -> Iterator[Transaction]:
        """A statement that may take long, under the name that its progress is shown by."""
        with titled(f"{verb} {self.schema_name}.{self.name}"), self._attachment.statement() as transaction:
            yield transaction

    def _insert(self, transaction: Transaction, rows: Rows, by_name: bool, distribution: Distribution) -> None:
        target = self._target(transaction)
        if isinstance(rows, DataFrame):
            inserts.insert(transaction, target, rows, by_name=by_name, distribution=distribution)
            return
        spark = self._attachment.spark
        inserts.insert_given(transaction, target, rows, spark, by_name=by_name, distribution=distribution)

    def _remove(self, transaction: Transaction, where: str | SparkColumn | None) -> None:
        info = self._info(transaction.shown())
        if where is None:
            removal = deletes.removal_of_all(transaction, info)
        else:
            table = target_table(self._attachment, transaction, info, in_full=False)
            removal = deletes.removal_where(transaction, table, as_column(where))
        deletes.stage_removal(transaction, info, removal)
