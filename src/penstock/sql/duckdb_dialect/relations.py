"""Writes the operators of a bound plan as Spark SQL: each is a query whose columns are c0, c1 and so on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from penstock.sql.duckdb_dialect.aggregates import aggregate_text
from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError, bound_type, check_equal
from penstock.sql.duckdb_dialect.casts import cast_text
from penstock.sql.duckdb_dialect.expressions import Expressions, type_of
from penstock.sql.duckdb_dialect.joins import any_joined, joined
from penstock.sql.duckdb_dialect.plan_keys import check_keys
from penstock.sql.duckdb_dialect.pushed_conditions import pushed
from penstock.sql.duckdb_dialect.query_texts import Rows, columns_of, exploded, selected
from penstock.sql.duckdb_dialect.windows import window_text

ROW_ID = 2**64 - 1  # how a plan says rowid
Relation = Callable[[str, str, str], str]  # Spark's text of a table, by the names of its stand-in


@dataclass
class Relations:
    """Writes one plan."""

    expressions: Expressions
    relation: Relation
    _numbers: Iterator[int] = field(default_factory=count)
    _standing: list[Rows] = field(default_factory=list)  # what the DELIM_GETs of joins around stand for
    _common: dict[int, Rows] = field(default_factory=dict)

    def rows(self, node: Node, true: Collection[int] = ()) -> Rows:
        """The query of an operator. Rows where the columns `true` are not may be missing from it."""
        check_keys(node)
        name = node["type"].removeprefix("LOGICAL_").lower()
        if name in ("comparison_join", "delim_join"):
            return joined(self, node, true)
        write: Callable[[Node], Rows] | None = getattr(self, f"_{name}", None)
        if write is None:
            raise UntranslatableError(f"{name.replace('_', ' ').upper()}")
        return write(node)

    def alias(self) -> str:
        """A name that nothing else in the query has."""
        return f"q{next(self._numbers)}"

    def child(self, node: Node, place: int = 0, true: Collection[int] = ()) -> tuple[Rows, str, list[str]]:
        """A child's query, a name for it, and its columns by that name."""
        rows = self.rows(node["children"][place], true)
        name = self.alias()
        return rows, name, columns_of(name, rows.width)

    @contextmanager
    def standing_for(self, rows: Rows) -> Iterator[None]:
        """Let the DELIM_GETs inside stand for rows."""
        self._standing.append(rows)
        try:
            yield
        finally:
            self._standing.pop()

    def _get(self, node: Node) -> Rows:
        if node["name"] != "seq_scan":
            return self._function(node)
        about = node["function_data"]
        items = []
        for place, column in enumerate(node["column_indexes"]):
            if column["child_indexes"]:
                raise UntranslatableError("a part of a column")
            items.append(f"{self._column(node, column['index'])} AS c{place}")
        source = self.relation(about["catalog"], about["schema"], about["table"])
        return Rows(f"SELECT {', '.join(items) or '1 AS c0'} FROM {source}", len(items))

    @staticmethod
    def _column(node: Node, index: int) -> str:
        if index == ROW_ID:
            return "rowid"
        if index >= len(node["names"]):
            return "1"  # a column of nothing, where only the rows are counted
        kind = bound_type(node["returned_types"][index])
        name = f"`{node['names'][index].replace('`', '``')}`"
        # Spark has these as DOUBLE, which is what files keep of them.
        return cast_text(name, BoundType("DOUBLE"), kind, False) if kind.id in ("HUGEINT", "UHUGEINT") else name

    def _function(self, node: Node) -> Rows:
        name, values = node["name"], node.get("parameters") or []
        if name not in ("range", "generate_series") or node["children"]:
            raise UntranslatableError(f"the table function {name}")
        numbers = [value["value"] for value in values if value["type"]["id"] == "BIGINT" and not value["is_null"]]
        if len(numbers) != len(values) or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] <= 0):
            raise UntranslatableError(f"{name} of other than whole numbers, or downwards")
        start, stop, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        stop += 1 if name == "generate_series" else 0
        if stop >= 2**63:
            raise UntranslatableError(f"{name} to the end of BIGINT")
        return Rows(f"SELECT id AS c0 FROM range({start}, {stop}, {step})", 1)

    def _dummy_scan(self, node: Node) -> Rows:
        return Rows("SELECT 1 AS c0", 1)

    def _empty_result(self, node: Node) -> Rows:
        raise UntranslatableError("a result that DuckDB knows to be empty")

    def _expression_get(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        rows = []
        for expressions in node["expressions"]:
            items = (f"{value} AS c{i}" for i, value in enumerate(self.expressions.texts(expressions, columns)))
            rows.append(f"SELECT {', '.join(items)} FROM ({child.sql}) {name}")
        return Rows(" UNION ALL ".join(rows), len(node["expr_types"]))

    def _projection(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        return Rows(f"{selected(self.expressions.texts(node['expressions'], columns))} FROM ({child.sql}) {name}",
                    len(node["expressions"]))  # fmt: skip

    def _filter(self, node: Node) -> Rows:
        moved = pushed(node)
        if moved is not node:
            return self.rows(moved)
        true = {one["index"] for one in node["expressions"] if one["expression_class"] == "BOUND_REF"}
        child, name, columns = self.child(node, true=true)
        conditions = " AND ".join(self.expressions.texts(node["expressions"], columns))
        shown = [columns[place] for place in node.get("projection_map") or range(child.width)]
        return Rows(f"{selected(shown)} FROM ({child.sql}) {name} WHERE {conditions}", len(shown))

    def _cross_product(self, node: Node) -> Rows:
        left, one, ours = self.child(node, 0)
        right, other, theirs = self.child(node, 1)
        return Rows(f"{selected([*ours, *theirs])} FROM ({left.sql}) {one} CROSS JOIN ({right.sql}) {other}",
                    left.width + right.width)  # fmt: skip

    def _aggregate_and_group_by(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        for group in node["groups"]:
            check_equal(type_of(group))
        groups = self.expressions.texts(node["groups"], columns)
        inner = self.alias()
        keys = [f"{inner}.g{place}" for place in range(len(groups))]
        # By name: a constant to group by would be taken for a column's place.
        added = "".join(f", {group} AS g{place}" for place, group in enumerate(groups))
        source = f"(SELECT {name}.*{added} FROM ({child.sql}) {name}) {inner}"
        texts = [aggregate_text(one, self.expressions, columns_of(inner, child.width)) for one in node["expressions"]]
        width = len(keys) + len(texts) + len(node["grouping_functions"])
        sets = [sorted(one) for one in node["grouping_sets"]]
        if len(sets) < 2 or not keys:
            asked = ["CAST(0 AS BIGINT)" for _ in node["grouping_functions"]]
            by = f" GROUP BY {', '.join(keys)}" if keys else ""
            return Rows(f"{selected([*keys, *texts, *asked])} FROM {source}{by}", width)
        some = [one for one in sets if one]
        written = ", ".join(f"({', '.join(keys[place] for place in one)})" for one in some)
        asked = [_grouping([keys[place] for place in places]) for places in node["grouping_functions"]]
        grouped = f"{selected([*keys, *texts, *asked])} FROM {source} GROUP BY GROUPING SETS ({written})"
        parts = [grouped] if some else []
        # By itself: of no rows, Spark gives none for the set of nothing, and DuckDB one.
        nulls = [f"CAST(NULL AS {type_of(group).spark})" for group in node["groups"]]
        bits = [f"CAST({2 ** len(places) - 1} AS BIGINT)" for places in node["grouping_functions"]]
        parts += [f"{selected([*nulls, *texts, *bits])} FROM {source}" for _ in range(len(sets) - len(some))]
        return Rows(" UNION ALL ".join(f"({part})" for part in parts), width)

    def _window(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        texts = [window_text(one, self.expressions, columns) for one in node["expressions"]]
        return Rows(f"{selected([*columns, *texts])} FROM ({child.sql}) {name}", child.width + len(texts))

    def _order_by(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        order = self.expressions.ordering(node["orders"], columns)
        return Rows(f"SELECT {name}.* FROM ({child.sql}) {name} ORDER BY {order}", child.width)

    def _limit(self, node: Node) -> Rows:
        child, name, _ = self.child(node)
        words = []
        for word, value in (("LIMIT", node["limit_val"]), ("OFFSET", node["offset_val"])):
            if value["type"] == "CONSTANT_VALUE" and value["constant_integer"] < 2**31:
                words.append(f" {word} {value['constant_integer']}")
            elif value["type"] != "UNSET":
                raise UntranslatableError(f"a {word} that is no constant number")
        return Rows(f"SELECT {name}.* FROM ({child.sql}) {name}{''.join(words)}", child.width)

    def _distinct(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        for target in node["distinct_targets"]:
            check_equal(type_of(target))
        targets = self.expressions.texts(node["distinct_targets"], columns)
        if node["distinct_type"] == "DISTINCT":
            if targets != columns:
                raise UntranslatableError("a DISTINCT of other columns than all")
            return Rows(f"SELECT DISTINCT {name}.* FROM ({child.sql}) {name}", child.width)
        orders = (node.get("order_by") or {}).get("orders") or []
        order = self.expressions.ordering(orders, columns) or "NULL"
        place = f"row_number() OVER (PARTITION BY {', '.join(targets)} ORDER BY {order})"
        outer = self.alias()
        numbered = f"SELECT {name}.*, {place} AS place FROM ({child.sql}) {name}"
        kept = columns_of(outer, child.width)
        return Rows(f"{selected(kept)} FROM ({numbered}) {outer} WHERE {outer}.place = 1", child.width)

    def _set_operation(self, node: Node, word: str) -> Rows:
        parts = [self.rows(child) for child in node["children"]]
        # DuckDB makes a UNION of a UNION ALL and a DISTINCT; of the other two the operator itself is one.
        every = " ALL" if node["setop_all"] or word == "UNION" else ""
        joined = f" {word}{every} ".join(f"({self._named(part)})" for part in parts)
        return Rows(joined, parts[0].width)

    def _named(self, rows: Rows) -> str:
        """A query that others can be put beside: in parentheses, with its own order and limit."""
        name = self.alias()
        return f"SELECT {name}.* FROM ({rows.sql}) {name}"

    def _union(self, node: Node) -> Rows:
        return self._set_operation(node, "UNION")

    def _except(self, node: Node) -> Rows:
        return self._set_operation(node, "EXCEPT")

    def _intersect(self, node: Node) -> Rows:
        return self._set_operation(node, "INTERSECT")

    def _any_join(self, node: Node) -> Rows:
        return any_joined(self, node)

    def _delim_get(self, node: Node) -> Rows:
        if not self._standing or self._standing[-1].width != len(node["chunk_types"]):
            raise UntranslatableError("a subquery that refers to several queries around it")
        return self._standing[-1]

    def _materialized_cte(self, node: Node) -> Rows:
        made = self.rows(node["children"][0])
        name = f"_penstock_cte_{node['table_index']}"
        self._common[node["table_index"]] = Rows(f"SELECT * FROM {name}", made.width)
        query = self.rows(node["children"][1])
        return Rows(f"WITH {name} AS ({made.sql}) {self._named(query)}", query.width)

    def _cte_ref(self, node: Node) -> Rows:
        if node["cte_index"] not in self._common:
            raise UntranslatableError("a WITH that refers to itself")
        return self._common[node["cte_index"]]

    def _recursive_cte(self, node: Node) -> Rows:
        if not node["union_all"]:
            raise UntranslatableError("WITH RECURSIVE ... UNION")
        first = self.rows(node["children"][0])
        name = f"_penstock_cte_{node['table_index']}"
        self._common[node["table_index"]] = Rows(f"SELECT * FROM {name}", first.width)
        step = self.rows(node["children"][1])
        columns = ", ".join(f"c{place}" for place in range(first.width))
        both = f"{self._named(first)} UNION ALL {self._named(step)}"
        return Rows(f"WITH RECURSIVE {name} ({columns}) AS ({both}) SELECT * FROM {name}", first.width)

    def _unnest(self, node: Node) -> Rows:
        child, name, columns = self.child(node)
        lists = self.expressions.texts([one["child"] for one in node["expressions"]], columns)
        if any(type_of(one["child"]).id != "LIST" for one in node["expressions"]):
            raise UntranslatableError("an unnest of what is no list")
        elements = [type_of(one["child"]).element for one in node["expressions"]]
        source = f"({child.sql}) {name} LATERAL VIEW {exploded(lists, elements)}"
        values = [f"u.e.e{place}" for place in range(len(lists))] if len(lists) > 1 else ["u.e"]
        return Rows(f"{selected([*columns, *values])} FROM {source}", child.width + len(lists))


def _grouping(keys: Sequence[str]) -> str:
    bits = (f"shiftleft(CAST(grouping({key}) AS BIGINT), {len(keys) - place - 1})" for place, key in enumerate(keys))
    return f"({' + '.join(bits)})"
