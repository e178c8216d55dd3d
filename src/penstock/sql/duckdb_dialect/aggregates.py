"""DuckDB's aggregate functions in Spark's words: sums are as wide as DuckDB's, and lists keep their NULLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.sql.duckdb_dialect.bound_types import (
    BoundType,
    Node,
    UntranslatableError,
    bound_type,
    check_equal,
    check_ordered,
)
from penstock.sql.duckdb_dialect.casts import raised
from penstock.sql.duckdb_dialect.constants import text
from penstock.sql.duckdb_dialect.expressions import Expressions, type_of
from penstock.sql.duckdb_dialect.plan_keys import check_keys
from penstock.sql.duckdb_dialect.repeated_values import fresh_name


@dataclass(frozen=True)
class Aggregate:
    """A call of an aggregate: its arguments, what rows it takes and over which window, if any."""

    name: str
    values: Sequence[str]
    types: Sequence[BoundType]
    result: BoundType
    distinct: bool
    filter: str | None
    order: Sequence[tuple[str, bool, bool]]  # value, whether descending, whether NULLs come last
    window: str | None
    data: Node

    def over(self, function: str, condition: str | None = None) -> str:
        """A function of Spark's over the rows of this aggregate, of which a condition chooses more narrowly."""
        conditions = [one for one in (self.filter, condition) if one is not None]
        if conditions and self.window is not None:
            raise self.refused("in a window")
        rows = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        return f"{function}{rows}{'' if self.window is None else f' OVER ({self.window})'}"

    def refused(self, why: str = "") -> UntranslatableError:
        """The error that says what is not translated."""
        kinds = ", ".join(kind.duckdb for kind in self.types)
        return UntranslatableError(f"the aggregate {self.name}({kinds}){': ' + why if why else ''}")


def aggregate_text(node: Node, expressions: Expressions, columns: Sequence[str], window: str | None = None) -> str:
    """An aggregate of a plan, as Spark's text."""
    check_keys(node)
    filters = node.get("filter") or node.get("filters")
    orders = (node.get("order_bys") or {}).get("orders") or node.get("arg_orders") or []
    about = Aggregate(
        node["name"],
        expressions.texts(node["children"], columns),
        [type_of(child) for child in node["children"]],
        bound_type(node["return_type"]),
        node.get("aggregate_type") == "DISTINCT" or bool(node.get("distinct")),
        None if filters is None else expressions.text(filters, columns),
        [_ordered(order, expressions, columns) for order in orders],
        window,
        node.get("function_data") or {},
    )
    if about.name not in _AGGREGATES:
        raise about.refused()
    if window is not None and about.filter is not None:
        about = _without_filter(about)
    if about.distinct and about.name not in _OF_DISTINCT:
        raise about.refused("of distinct values")
    for kind in about.types if about.distinct else ():
        check_equal(kind)
    if about.distinct and window is not None:
        raise about.refused("of distinct values in a window")
    return _AGGREGATES[about.name](about)


def _without_filter(about: Aggregate) -> Aggregate:
    """The same over a window, where Spark takes no filters: values of rows that are left out are NULL."""
    if about.name not in ("count", "count_star", "sum", "avg", "mean", "min", "max", "bool_and", "bool_or"):
        raise about.refused("with a filter, in a window")
    values = [f"CASE WHEN {about.filter} THEN {value} END" for value in about.values or ["1"]]
    return replace(about, values=values, filter=None)


def _ordered(order: Node, expressions: Expressions, columns: Sequence[str]) -> tuple[str, bool, bool]:
    check_ordered(type_of(order["expression"]))
    descending, last = order["type"] == "DESCENDING", order["null_order"] == "NULLS LAST"
    return expressions.text(order["expression"], columns), descending, last


def _words(about: Aggregate) -> str:
    return f"{'DISTINCT ' if about.distinct else ''}{about.values[0]}"


def _count(about: Aggregate) -> str:
    return about.over(f"count({_words(about)})" if about.values else "count(*)")


def _sum(about: Aggregate) -> str:
    kind, value = about.types[0], about.values[0]
    word = "DISTINCT " if about.distinct else ""
    if kind.id in ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN"):
        return f"CAST({about.over(f'sum({word}CAST({value} AS BIGINT))')} AS {about.result.spark})"
    if kind.family in ("int", "unsigned"):
        return f"CAST({about.over(f'sum({word}CAST({value} AS DECIMAL(20,0)))')} AS {about.result.spark})"
    if kind.family in ("float", "double"):
        return about.over(f"sum({word}CAST({value} AS DOUBLE))")
    if kind.family in ("decimal", "huge"):
        return f"CAST({about.over(f'sum({word}{value})')} AS {about.result.spark})"
    raise about.refused()


def _average(about: Aggregate) -> str:
    kind, value = about.types[0], about.values[0]
    word = "DISTINCT " if about.distinct else ""
    if kind.family in ("float", "double"):
        return about.over(f"avg({word}CAST({value} AS DOUBLE))")
    if kind.family not in ("int", "unsigned", "huge", "decimal", "bool"):
        raise about.refused()
    exact = value if kind.family == "decimal" else f"CAST({value} AS DECIMAL(38,0))"
    if kind.family in ("int", "unsigned", "bool"):
        exact = f"CAST({value} AS DECIMAL(20,0))" if kind.family != "bool" else f"CAST(CAST({value} AS INT) AS BIGINT)"
    total, count = about.over(f"sum({word}{exact})"), about.over(f"count({word}{value})")
    return f"try_divide(CAST({total} AS DOUBLE), CAST({count} AS DOUBLE))"


def _extreme(about: Aggregate) -> str:
    check_ordered(about.types[0])
    if len(about.values) > 1:
        raise about.refused("of several values")
    return about.over(f"{about.name}({about.values[0]})")


def _first(about: Aggregate) -> str:
    """The first row's value in the order asked for; without one, any row's."""
    if not about.order:
        return about.over(f"first({about.values[0]})")
    if len(about.order) != 1 or about.window is not None:
        raise about.refused("in an order of several values, or in a window")
    (key, descending, last), value = about.order[0], about.values[0]
    if not last:
        raise about.refused("in an order with NULLs first")
    nulls = f"{key} IS NULL" if not descending else f"{key} IS NOT NULL"
    # A NULL of the order comes after all others: the least of (is it NULL, key), or the greatest of (is it not, key).
    return about.over(f"{'max_by' if descending else 'min_by'}({value}, struct({nulls}, {key}))")


def _any(about: Aggregate) -> str:
    if about.order:
        raise about.refused("in an order")
    return about.over(f"first({about.values[0]}, TRUE)")


def _by(function: str) -> Callable[[Aggregate], str]:
    def text_of(about: Aggregate) -> str:
        if len(about.values) != 2:
            raise about.refused("of several values")
        check_ordered(about.types[1])
        value, key = about.values
        return about.over(f"{function}({value}, {key})", f"({value} IS NOT NULL AND {key} IS NOT NULL)")

    return text_of


def _gathered(about: Aggregate, keep_nulls: bool) -> str:
    """The values as a list, in the order asked for."""
    parts = [about.values[0], *(key for key, _, _ in about.order)]
    fields = ", ".join(f"'col{place}', {part}" for place, part in enumerate(parts, 1))
    row = f"named_struct({fields})"
    found = about.over(f"collect_list({row})", None if keep_nulls else f"({about.values[0]} IS NOT NULL)")
    if about.order:
        found = f"array_sort({found}, {_comparator(about)})"
    name = fresh_name()
    return f"transform({found}, {name} -> {name}.col1)"


def _comparator(about: Aggregate) -> str:
    one, other = fresh_name(), fresh_name()
    branches = []
    for place, (_, descending, last) in enumerate(about.order, 2):
        a, b = f"{one}.col{place}", f"{other}.col{place}"
        after, before = ("1", "-1") if last else ("-1", "1")
        less, more = ("1", "-1") if descending else ("-1", "1")
        branches += [
            f"WHEN {a} IS NULL AND {b} IS NOT NULL THEN {after}",
            f"WHEN {a} IS NOT NULL AND {b} IS NULL THEN {before}",
            f"WHEN {a} < {b} THEN {less}",
            f"WHEN {a} > {b} THEN {more}",
        ]
    return f"({one}, {other}) -> CASE {' '.join(branches)} ELSE 0 END"


def _list(about: Aggregate) -> str:
    found = _gathered(about, keep_nulls=True)
    return f"CAST(CASE WHEN {about.over('count(*)')} > 0 THEN {found} END AS {about.result.spark})"


def _joined(about: Aggregate) -> str:
    separator = about.data.get("separator", ",")
    if about.distinct:
        raise about.refused("of distinct values")
    found = _gathered(about, keep_nulls=False)
    return f"CASE WHEN {about.over(f'count({about.values[0]})')} > 0 THEN array_join({found}, {text(separator)}) END"


def _plain(function: str, families: tuple[str, ...]) -> Callable[[Aggregate], str]:
    def text_of(about: Aggregate) -> str:
        if any(kind.family not in families for kind in about.types):
            raise about.refused()
        return about.over(f"{function}({', '.join(about.values)})")

    return text_of


def _median(about: Aggregate) -> str:
    if about.types[0].family not in ("double", "float", "int", "decimal") or about.result.id != "DOUBLE":
        raise about.refused()
    return about.over(f"percentile({about.values[0]}, 0.5D)")


def _count_if(about: Aggregate) -> str:
    counted = f"CASE WHEN {about.values[0]} THEN 1L WHEN NOT {about.values[0]} THEN 0L END"
    return f"CAST({about.over(f'sum({counted})')} AS {about.result.spark})"


def _spread(function: str) -> Callable[[Aggregate], str]:
    """A measure of DOUBLEs, which DuckDB has none of where they are not finite."""
    plain = _plain(function, ("double",))
    beyond = raised(f"{function} is out of range")

    def text_of(about: Aggregate) -> str:
        found = plain(about)
        return f"CASE WHEN isnan({found}) OR abs({found}) = DOUBLE('Infinity') THEN {beyond} ELSE {found} END"

    return text_of


_OF_DOUBLES = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "covar_pop", "covar_samp")
_AGGREGATES: dict[str, Callable[[Aggregate], str]] = {
    "count": _count,
    "count_star": _count,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extreme,
    "max": _extreme,
    "first": _first,
    "arbitrary": _first,
    "any_value": _any,
    **dict.fromkeys(("arg_max", "max_by", "argmax"), _by("max_by")),
    **dict.fromkeys(("arg_min", "min_by", "argmin"), _by("min_by")),
    **dict.fromkeys(("list", "array_agg"), _list),
    **dict.fromkeys(("string_agg", "group_concat", "listagg"), _joined),
    "bool_and": _plain("bool_and", ("bool",)),
    "bool_or": _plain("bool_or", ("bool",)),
    "bit_and": _plain("bit_and", ("int",)),
    "bit_or": _plain("bit_or", ("int",)),
    "bit_xor": _plain("bit_xor", ("int",)),
    **{name: _spread(name) for name in _OF_DOUBLES},
    "median": _median,
    **dict.fromkeys(("count_if", "countif"), _count_if),
}
_OF_DISTINCT = ("count", "sum", "avg", "mean", "min", "max", "bool_and", "bool_or", "any_value", "first", "arbitrary")
