"""Writes the joins of a bound plan as Spark SQL, among them those that DuckDB makes of subqueries.

A MARK join adds a column that says whether a row has a match: IN and EXISTS. A SINGLE join adds the one row that
matches: a scalar subquery. Of a DELIM join, the right side is computed for the distinct values of some columns of the
left: a subquery that refers to the query around it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError
from penstock.sql.duckdb_dialect.casts import raised
from penstock.sql.duckdb_dialect.expressions import comparison, type_of
from penstock.sql.duckdb_dialect.laterals import is_numbered, lateral
from penstock.sql.duckdb_dialect.query_texts import Plan, Rows, columns_of, selected

_WORDS = {"INNER": "INNER JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}
_HALVES = {"SEMI": "LEFT SEMI JOIN", "ANTI": "LEFT ANTI JOIN"}
_ALIKE = "COMPARE_NOT_DISTINCT_FROM"


@dataclass(frozen=True)
class Condition:
    """One comparison of a left value with a right one."""

    kind: str
    left: str
    right: str
    type: BoundType

    def text(self, right: str | None = None) -> str:
        """The comparison, with another name for the right value where one is given."""
        return comparison(self.kind, self.left, right or self.right, self.type)


@dataclass(frozen=True)
class Sides:
    """The two sides of a join, and what they are compared by."""

    source: str  # the left side in FROM
    left: Sequence[str]
    right: Rows
    name: str
    conditions: Sequence[Condition]

    @property
    def on(self) -> str:
        """All comparisons."""
        return " AND ".join(condition.text() for condition in self.conditions) or "TRUE"


def joined(plan: Plan, node: Node, true: Collection[int]) -> Rows:
    """A join on comparisons; `true` are columns that have to be true."""
    if node["type"] == "LOGICAL_DELIM_JOIN" and is_numbered(node):
        return lateral(plan, node)
    # Rows of a left side that go anyway may go at once, except where the right side's would stay without them.
    kept = true if node["join_type"] in ("INNER", "LEFT", "MARK", "SINGLE", "SEMI", "ANTI") else ()
    left, name, ours = plan.child(node, 0, kept)
    if node["type"] == "LOGICAL_DELIM_JOIN":
        common = f"_penstock_{plan.alias()}"
        distinct = plan.expressions.texts(node["duplicate_eliminated_columns"], ours)
        with plan.standing_for(Rows(f"{_distinct(distinct)} FROM {common} {name}", len(distinct))):
            right, other, theirs = plan.child(node, 1)
        source, head = f"{common} {name}", f"WITH {common} AS ({left.sql}) "
    else:
        right, other, theirs = plan.child(node, 1)
        source, head = f"({left.sql}) {name}", ""
    conditions = [
        Condition(
            one["comparison"],
            plan.expressions.text(one["left"], ours),
            plan.expressions.text(one["right"], theirs),
            type_of(one["left"]),
        )
        for one in node["conditions"]
    ]
    sides = Sides(source, ours, right, other, conditions)
    rows = _joined(plan, node["join_type"], sides, left.width in true)
    return Rows(head + rows.sql, rows.width)


def any_joined(plan: Plan, node: Node) -> Rows:
    """A join on whatever condition."""
    left, one, ours = plan.child(node, 0)
    right, other, theirs = plan.child(node, 1)
    condition = plan.expressions.text(node["condition"], [*ours, *theirs])
    kind = node["join_type"]
    if kind not in _WORDS | _HALVES:
        raise UntranslatableError(f"a join of the kind {kind} on a condition that is no comparison")
    shown = [*ours, *theirs] if kind in _WORDS else ours
    word = (_WORDS | _HALVES)[kind]
    source = f"({left.sql}) {one} {word} ({right.sql}) {other} ON {condition}"
    return Rows(f"{selected(shown)} FROM {source}", len(shown))


def _distinct(texts: Sequence[str]) -> str:
    return selected(texts).replace("SELECT", "SELECT DISTINCT", 1)


def _joined(plan: Plan, kind: str, sides: Sides, must_match: bool) -> Rows:
    right = f"({sides.right.sql}) {sides.name}"
    if kind in _WORDS:
        shown = [*sides.left, *columns_of(sides.name, sides.right.width)]
        return Rows(f"{selected(shown)} FROM {sides.source} {_WORDS[kind]} {right} ON {sides.on}", len(shown))
    if kind in _HALVES:
        return Rows(
            f"{selected(sides.left)} FROM {sides.source} {_HALVES[kind]} {right} ON {sides.on}", len(sides.left)
        )
    if kind == "MARK" and must_match:
        source = f"{sides.source} LEFT SEMI JOIN {right} ON {sides.on}"
        return Rows(f"{selected([*sides.left, 'TRUE'])} FROM {source}", len(sides.left) + 1)
    if kind == "MARK":
        return _marked(plan, sides)
    if kind == "SINGLE":
        return _single(plan, sides)
    raise UntranslatableError(f"a join of the kind {kind}")


def _keys(sides: Sides, conditions: Sequence[Condition]) -> str:
    return "".join(f", {condition.right} AS k{place}" for place, condition in enumerate(conditions))


def _single(plan: Plan, sides: Sides) -> Rows:
    """The one row that matches, or NULLs: several are an error, as they are in DuckDB."""
    if any(condition.kind != _ALIKE for condition in sides.conditions):
        raise UntranslatableError("a scalar subquery that is compared otherwise than by equality")
    outer = plan.alias()
    keys = [f"k{place}" for place in range(len(sides.conditions))]
    values = ", ".join(f"first(c{place}) AS c{place}" for place in range(sides.right.width))
    rows = f"SELECT {sides.name}.*{_keys(sides, sides.conditions)} FROM ({sides.right.sql}) {sides.name}"
    by = f" GROUP BY {', '.join(keys)}" if keys else " HAVING count(*) > 0"
    grouped = f"SELECT {', '.join([*keys, values, 'count(*) AS n'])} FROM ({rows}){by}"
    many = raised("More than one row returned by a subquery used as an expression")
    found = [f"CASE WHEN {outer}.n > 1 THEN {many} ELSE {c} END" for c in columns_of(outer, sides.right.width)]
    on = " AND ".join(one.text(f"{outer}.k{place}") for place, one in enumerate(sides.conditions)) or "TRUE"
    shown = [*sides.left, *found]
    return Rows(f"{selected(shown)} FROM {sides.source} LEFT JOIN ({grouped}) {outer} ON {on}", len(shown))


def _marked(plan: Plan, sides: Sides) -> Rows:
    """Whether a row has a match: true, false, or NULL where a comparison with NULL might have been one."""
    alike = [condition for condition in sides.conditions if condition.kind == _ALIKE]
    compared = [condition for condition in sides.conditions if condition.kind != _ALIKE]
    if len(compared) > 1 or any(condition.kind != "COMPARE_EQUAL" for condition in compared):
        raise UntranslatableError("a comparison with ANY or ALL rows of a subquery, or of several columns with them")
    ordered = [*alike, *compared]
    match, source = plan.alias(), sides.source
    keys = [f"k{place}" for place in range(len(ordered))]
    rows = f"SELECT 1 AS one{_keys(sides, ordered)} FROM ({sides.right.sql}) {sides.name}"
    found = f"SELECT DISTINCT {', '.join([*keys, 'TRUE AS found'])} FROM ({rows})"
    on = " AND ".join(one.text(f"{match}.k{place}") for place, one in enumerate(ordered)) or "TRUE"
    source += f" LEFT JOIN ({found}) {match} ON {on}"
    mark = f"({match}.found IS NOT NULL)"
    if compared:
        group, last = plan.alias(), f"k{len(alike)}"
        names = keys[: len(alike)]
        counted = f"SELECT {', '.join([*names, 'count(*) AS n', f'count({last}) AS known'])} FROM ({rows})"
        counted += f" GROUP BY {', '.join(names)}" if names else ""
        on = " AND ".join(one.text(f"{group}.k{place}") for place, one in enumerate(alike)) or "TRUE"
        source += f" LEFT JOIN ({counted}) {group} ON {on}"
        unknown = f"{compared[0].left} IS NULL OR {group}.known < {group}.n"
        mark = (
            f"CASE WHEN {match}.found THEN TRUE WHEN coalesce({group}.n, 0L) = 0 THEN FALSE"
            f" WHEN {unknown} THEN CAST(NULL AS BOOLEAN) ELSE FALSE END"
        )
    return Rows(f"{selected([*sides.left, mark])} FROM {source}", len(sides.left) + 1)
