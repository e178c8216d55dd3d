"""Decides what a merge does to each row: a join of target and source, and the first clause that applies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.ducklake.changing.change_job import POSITION, SOURCE, SOURCE_NAME, WRITTEN, ChangeResult
from penstock.ducklake.changing.merge_keys import (
    JoinKey,
    SourceSummary,
    join_keys,
    rows_with_repeated_keys,
    source_summary,
    told_join_keys,
)
from penstock.ducklake.changing.placed_rows import are_few, second_pass_pays
from penstock.ducklake.changing.row_places import CLAUSE, MATCHED
from penstock.ducklake.changing.target_rows import ROW, TargetRows
from penstock.ducklake.changing.target_table import TargetTable
from penstock.ducklake.model.schema_evolution import find_at
from penstock.ducklake.reading.scan_columns import FILE
from penstock.ducklake.writing.insert_defaults import default_value
from penstock.errors import InvalidError
from penstock.predicates import implied_by
from penstock.predicates.implication import Anything, Implication
from penstock.schema.columns import Column, find_column
from penstock.spark.column_assignment import assigned_values
from penstock.spark.connect.frames import standing_for
from penstock.spark.connect.sessions import is_connect
from penstock.spark.expressions import check_expressions, is_repeatable, spark_quoted
from penstock.spark.jvm import filter_text, qualified
from penstock.spark.kept_rows import Keep
from penstock.spark.row_widths import row_width
from penstock.spark.types import has_nanoseconds

Case = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
_ONE_FOR_EACH = "nothing was written: leave one source row for each, or add conditions so that only one of them applies"
_BROADCAST_BYTES = 64 * 1024 * 1024
_BROADCAST_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


@dataclass(frozen=True)
class Clause:
    """A clause of a merge: what happens to a row in one case, where the condition is true."""

    case: Case
    action: Action
    values: dict[str, SparkColumn] | None
    condition: SparkColumn | None


@dataclass(frozen=True)
class Merging:
    """A merge into a table: the clauses, in their order, and the rows of both sides."""

    table: str
    columns: tuple[Column, ...]
    clauses: tuple[Clause, ...]
    target: TargetRows
    source: DataFrame  # kept, each row with its number
    on: SparkColumn

    def in_case(self, *cases: Case) -> dict[int, Clause]:
        """The clauses for some cases, each with its number."""
        return {number: clause for number, clause in enumerate(self.clauses) if clause.case in cases}

    @property
    def writes(self) -> bool:
        """Whether rows that are there are written anew."""
        return any(clause.action == "update" for clause in self.clauses)

    @property
    def inserts(self) -> bool:
        """Whether rows of the source are inserted."""
        return bool(self.in_case("not matched"))

    @cached_property
    def _keys(self) -> list[JoinKey]:
        if is_connect(self.source):
            return told_join_keys(self.target.named, self.source, self.on)
        return join_keys(self.target.frame.join(qualified(self.source, SOURCE_NAME), self.on))

    @cached_property
    def _source_summary(self) -> SourceSummary:
        """What the source says about the rows of the table that it can match."""
        needed = self.inserts or not self.in_case("not matched by source")
        return source_summary(qualified(self.source, SOURCE_NAME), self._keys if needed else ())

    def matchable(self) -> Implication:
        """What is true of every row of the table that the source can match, as the catalog can look for such rows."""
        if self._source_summary.possible is None:
            return Anything()
        rows = self.target.named if is_connect(self.source) else self.target.frame
        filters = json.loads(filter_text(rows, self._source_summary.possible))
        # Nanoseconds are cut in what Spark compares.
        exact = [column for column in self.columns if not has_nanoseconds(column)]
        return implied_by([json.dumps(item) for item in filters], exact)

    def _chosen_rows(self) -> DataFrame:
        """The rows of the table that a clause changes or, if rows are inserted, that match; with source and CLAUSE.

        Only files that can match are read, unless there are clauses for rows that do not. A row that two rows of the
        source change comes twice.
        """
        everything = bool(self.in_case("not matched by source"))
        frame, source, summary = self.target.frame, qualified(self.source, SOURCE_NAME), self._source_summary
        rows = frame if everything or summary.possible is None else self.target.where(summary.possible)
        joined = rows.join(self._hinted(source, summary.rows), self.on, "left" if everything else "inner")
        chosen = joined.withColumn(CLAUSE, _chosen(self.in_case("matched", "not matched by source")))
        return chosen.where(
            f"{CLAUSE} IS NOT NULL OR {SOURCE} IS NOT NULL" if self.inserts else f"{CLAUSE} IS NOT NULL"
        )

    def changed_rows(self) -> DataFrame:
        """The rows that a clause changes, as `apply_row_changes` takes them, and which source rows match."""
        rows = self._chosen_rows()
        values = self._updated(rows, alone=self._all_are_updated) if self.writes else []
        return rows.select(*values, ROW, *self._controls())

    def matches(self) -> DataFrame:
        """The `MATCH_COLUMNS` but for the place, and the control columns, of the same rows."""
        told = [F.expr(f"CAST({CLAUSE} AS BIGINT) AS {CLAUSE}"), F.expr(f"{SOURCE} AS {MATCHED}")]
        return self._chosen_rows().select(*told, *self._controls())

    def updated_rows(self, found: TargetRows) -> DataFrame:
        """The new values of rows that were found, with their CLAUSE and MATCHED; and ROW."""
        source = self._hinted(qualified(self.source, SOURCE_NAME), self._source_summary.rows)
        rows = found.frame.join(source, F.col(MATCHED) == F.col(SOURCE))
        return rows.select(*self._updated(rows, alone=len(self._updating) == 1), ROW)

    def finds_first(self, table: TargetTable) -> bool:
        """Whether to find the rows to update by what conditions need, before the rest of them is read."""
        updates = [self.clauses[number] for number in self._updating]
        if not updates or any(clause.case != "matched" for clause in updates):
            return False
        given = [self._values(clause) for clause in updates]
        unchanged = len(self.target.unchanged_by(given))
        if not (are_few(table, self._source_summary.rows) and second_pass_pays(table, unchanged, self.matchable)):
            return False
        both = self.target.named.join(qualified(self.source, SOURCE_NAME))
        return is_repeatable(both.select(*(value for values in given for value in values.values())))

    def _controls(self) -> list[SparkColumn]:
        updating = ", ".join(map(str, self._updating))
        # No function is called: a user may have one of the same name.
        written = f"CASE WHEN {CLAUSE} IN ({updating}) THEN true ELSE false END" if self.writes else "false"
        matched = SOURCE if self.inserts else "CAST(NULL AS BIGINT)"
        return [
            F.expr(text)
            for text in (
                FILE,
                f"CASE WHEN {CLAUSE} IS NOT NULL THEN {POSITION} END AS {POSITION}",
                f"{written} AS {WRITTEN}",
                f"{matched} AS {SOURCE}",
            )
        ]

    @property
    def _updating(self) -> list[int]:
        return [number for number, clause in enumerate(self.clauses) if clause.action == "update"]

    def _updated(self, rows: DataFrame, *, alone: bool) -> list[SparkColumn]:
        """The new values of each column, by the clause that was chosen; `alone` if it is the same for all rows."""
        cases = [
            assigned_values(rows, self.columns, self.target.with_new(self._values(self.clauses[number])))
            for number in self._updating
        ]
        if alone:
            return [value.alias(f"v{i}") for i, value in enumerate(cases[0])]
        return [
            _by_clause(dict(zip(self._updating, values, strict=True))).alias(f"v{i}")
            for i, values in enumerate(zip(*cases, strict=True))
        ]

    @property
    def _all_are_updated(self) -> bool:
        """Whether one clause decides for every row that is looked at."""
        clauses = list(self.in_case("matched", "not matched by source").values())
        always = clauses[0].case == "matched" and clauses[0].condition is None
        return len(clauses) == 1 and (always or not self.inserts)

    def new_rows(self, changed: Sequence[ChangeResult]) -> DataFrame:
        """The source's rows that match nothing, as rows of the table."""
        matched = reduce(DataFrame.union, (one.sources for one in changed))
        clauses = self.in_case("not matched")
        few = self._hinted(matched, sum(one.source_count for one in changed))
        rest = qualified(self.source.join(few, SOURCE, "left_anti"), SOURCE_NAME)
        chosen = rest.withColumn(CLAUSE, _chosen(clauses)).where(F.col(CLAUSE).isNotNull())
        cases = [self._inserted(chosen, clause) for clause in clauses.values()]
        if len(cases) == 1:
            return chosen.select(*(value.alias(f"v{i}") for i, value in enumerate(cases[0])))
        values = [_by_clause(dict(zip(clauses, values, strict=True))) for values in zip(*cases, strict=True)]
        return chosen.select(*(value.alias(f"v{i}") for i, value in enumerate(values)))

    def _inserted(self, rows: DataFrame, clause: Clause) -> list[SparkColumn]:
        given: dict[int, SparkColumn] = {}
        for name, value in self._values(clause).items():
            column = find_column(self.columns, name) or find_at(self.columns, name)
            if column not in self.columns:
                raise InvalidError(f"{name} is a field of a column; an insert gives whole columns")
            given[column.id] = value
        chosen = [column for column in self.columns if column.id in given]
        assigned = dict(
            zip(
                (column.id for column in chosen),
                assigned_values(rows, chosen, [given[column.id] for column in chosen]),
                strict=True,
            )
        )
        spark = rows.sparkSession
        return [assigned[c.id] if c.id in assigned else default_value(spark, c) for c in self.columns]

    def _values(self, clause: Clause) -> dict[str, SparkColumn]:
        """What a clause sets; without a word, all columns of the source by their names."""
        if clause.values is not None:
            return clause.values
        names = [name for name in self.source.columns if name != SOURCE]
        unknown = [name for name in names if find_column(self.columns, name) is None]
        if unknown:
            raise InvalidError(
                f"table {self.table} has no column {unknown[0]!r}, which the source has; "
                f"say which columns to {clause.action}, or drop it from the source"
            )
        return {spark_quoted(name): F.col(f"{SOURCE_NAME}.{spark_quoted(name)}") for name in names}

    def _hinted(self, given: DataFrame, rows: int) -> DataFrame:
        """Rows, to be sent to every task if they are small: those that they are joined with are not shuffled then."""
        width = row_width(given)
        never = str(given.sparkSession.conf.get(_BROADCAST_THRESHOLD)) == "-1"
        return given if never or rows * width > _BROADCAST_BYTES else F.broadcast(given)

    def check_once(self, changed: ChangeResult) -> None:
        """An error if a row of the table was changed twice, where the places of the rows are at hand."""
        if changed.repeats:
            self.refuse_second_matches()
            raise InvalidError(f"rows of the source match the same row of {self.table}; {_ONE_FOR_EACH}")

    def refuse_second_matches(self) -> None:
        """An error if two rows of the source would change the same row of the table."""
        keys, clauses = self._keys, self.in_case("matched", "not matched by source")
        suspects = (
            rows_with_repeated_keys(qualified(self.source, SOURCE_NAME), keys) if self.in_case("matched") else None
        )
        if suspects is None:
            return
        possible = source_summary(suspects, keys).possible
        rows = self.target.frame if possible is None else self.target.where(possible)
        joined = rows.join(qualified(suspects, SOURCE_NAME), self.on).withColumn(CLAUSE, _chosen(clauses))
        shown = F.concat_ws(", ", *(F.concat(F.lit(f"{k.text} = "), k.target.cast("string")) for k in keys))
        again = (
            joined.where(F.col(CLAUSE).isNotNull())
            .groupBy(FILE, POSITION)
            .agg(F.count("*").alias("times"), F.first(shown).alias("key"), F.first(ROW).alias("row"))
            .where("times > 1")
            .orderBy("row")
            .limit(1)
            .collect()
        )
        if again:
            key = again[0].key or f"rowid {again[0].row}"
            raise InvalidError(
                f"{again[0].times} rows of the source match the same row of {self.table} ({key}); {_ONE_FOR_EACH}"
            )


def check_merge(table: str, target: TargetRows, source: DataFrame, on: SparkColumn, clauses: Sequence[Clause]) -> None:
    """Raise errors of names and types before anything runs; they tell of no columns but those that the caller knows."""
    given = qualified(source, SOURCE_NAME)
    try:
        both = target.named.join(given, on)
        check_expressions(both)
    except AnalysisException as error:
        if error.getCondition() != "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE":
            raise
        raise InvalidError(
            f"the merge into {table} matches by values that Spark cannot compare, such as maps; "
            "match by other columns, or by parts of these"
        ) from error
    for clause in clauses:
        frame = given if clause.case == "not matched" else both
        values = list((clause.values or {}).values())
        check_expressions(frame.select(*values, *([] if clause.condition is None else [clause.condition])))


def numbered_source(source: DataFrame, keep: Keep) -> DataFrame:
    """Number the source's rows, and keep them: they are looked at several times and must not change."""
    if SOURCE in source.columns:
        raise InvalidError(f"the source has a column {SOURCE}, which is Penstock's own name; rename it")
    kept = keep(source.withColumn(SOURCE, F.monotonically_increasing_id()))
    return standing_for(kept, source) if is_connect(source) else kept


def _chosen(clauses: Mapping[int, Clause]) -> SparkColumn:
    """The number of the first clause that applies, or NULL."""
    matched = F.col(SOURCE).isNotNull()
    cases: list[tuple[SparkColumn, int]] = []
    for number, clause in clauses.items():
        applies = ~matched if clause.case == "not matched by source" else matched
        cases.append((applies if clause.condition is None else applies & clause.condition, number))
    return _when(cases, F.lit(None).cast("int"))


def _by_clause(values: dict[int, SparkColumn]) -> SparkColumn:
    return _when([(F.col(CLAUSE) == number, value) for number, value in values.items()], F.lit(None))


def _when(cases: Sequence[tuple[SparkColumn, Any]], otherwise: SparkColumn) -> SparkColumn:
    if not cases:
        return otherwise
    (first, value), *rest = cases
    start = F.when(first, value)
    return reduce(lambda chain, case: chain.when(case[0], case[1]), rest, start)
