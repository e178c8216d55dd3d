"""DuckDB's functions of lists, structs and maps in Spark's words: lists count from one, and down from their end."""

from __future__ import annotations

from collections.abc import Callable

from penstock.spark.expressions import spark_quoted
from penstock.sql.duckdb_dialect.bound_types import check_equal, check_ordered
from penstock.sql.duckdb_dialect.constants import constant_number, constant_text, text
from penstock.sql.duckdb_dialect.functions import Call, Written
from penstock.sql.duckdb_dialect.repeated_values import fresh_name, once

_MOST = 2**31 - 1
_USUAL = ("ASC", "NULLS LAST")  # the order of a list that is told none


def _list(call: Call) -> str:
    return f"CAST(array({', '.join(call.values)}) AS {call.result.spark})"


def _packed(call: Call) -> str:
    pairs = (f"{text(name)}, {value}" for (name, _), value in zip(call.result.children, call.values, strict=True))
    return f"CAST(named_struct({', '.join(pairs)}) AS {call.result.spark})"


def _field(call: Call) -> str:
    name = constant_text(call.nodes[1])
    if name is None:
        raise call.refused("with a name that is no constant")
    known = next((known for known, _ in call.types[0].children if known.lower() == name.lower()), name)
    return f"{call.values[0]}.{spark_quoted(known)}"


def _element(call: Call) -> str:
    place = constant_number(call.nodes[1])
    if place == 0:
        return f"CAST(NULL AS {call.result.spark})"
    if place is not None:
        if not isinstance(place, int) or abs(place) > _MOST:
            raise call.refused("with such a place")
        return f"try_element_at({call.values[0]}, {place})"
    return once(
        call.values[1], lambda i: f"CASE WHEN {i} <> 0 THEN try_element_at({call.values[0]}, CAST({i} AS INT)) END"
    )


def _letter(call: Call) -> str:
    place = constant_number(call.nodes[1])
    if not isinstance(place, int) or place < 1:
        raise call.refused("with a position that is no constant from 1 on")
    return f"substring({call.values[0]}, {place}, 1)"


def _slice(call: Call) -> str:
    """A part of a list or a text, from one place to another, both included."""
    first, last = (constant_number(node) for node in call.nodes[1:3])
    if len(call.nodes) != 3 or not isinstance(first, int) or not isinstance(last, int) or first < 1 or last < 0:
        raise call.refused("with places that are no constants from 1 on")
    if call.types[0].family == "text":
        return f"substring({call.values[0]}, {first}, {max(last - first + 1, 0)})"
    return f"slice({call.values[0]}, {first}, {max(last - first + 1, 0)})"


def _contains(call: Call) -> str:
    check_equal(call.types[1])
    value = call.values[1]
    return once(
        call.values[0],
        lambda v: (
            f"CASE WHEN {v} IS NOT NULL AND {value} IS NOT NULL THEN coalesce(array_contains({v}, {value}), FALSE) END"
        ),
    )


def _position(call: Call) -> str:
    check_equal(call.types[1])
    element = fresh_name()
    found = f"transform({call.values[0]}, {element} -> {element} <=> {call.values[1]})"
    return f"CAST(nullif(array_position({found}, TRUE), 0L) AS {call.result.spark})"


def _sorted(call: Call) -> str:
    """A list in the usual order, or in one that two constants say, such as 'DESC' and 'NULLS LAST'."""
    said = [(constant_text(node) or "").upper() for node in call.nodes[1:3]] or _USUAL
    way, nulls = (usual if word == "ORDER_DEFAULT" else word for word, usual in zip(said, _USUAL, strict=True))
    if way not in ("ASC", "DESC", "ASCENDING", "DESCENDING") or nulls not in ("NULLS LAST", "NULLS FIRST"):
        raise call.refused("in an order that is no constant")
    check_ordered(call.types[0].element)
    one, other = fresh_name(), fresh_name()
    less, more = ("1", "-1") if way.startswith("DESC") else ("-1", "1")
    after, before = ("1", "-1") if nulls == "NULLS LAST" else ("-1", "1")
    order = (
        f"CASE WHEN {one} IS NULL AND {other} IS NULL THEN 0 WHEN {one} IS NULL THEN {after}"
        f" WHEN {other} IS NULL THEN {before} WHEN {one} < {other} THEN {less} WHEN {one} > {other} THEN {more}"
        " ELSE 0 END"
    )
    return f"array_sort({call.values[0]}, ({one}, {other}) -> {order})"


def _aggregated(call: Call) -> str:
    """An aggregate of a list's elements."""
    name, values = constant_text(call.nodes[1]), call.values[0]
    if name == "string_agg" and call.types[0].element.id == "VARCHAR":
        separator = text(call.data["bind_data"]["aggr_expr"]["function_data"]["separator"])
        return once(
            values, lambda v: f"CASE WHEN exists({v}, e -> e IS NOT NULL) THEN array_join({v}, {separator}) END"
        )
    if name in ("min", "max") and len(call.values) == 2:
        check_ordered(call.types[0].element)
        return f"array_{name}({values})"
    if name == "count" and len(call.values) == 2:
        return f"CAST(array_size(filter({values}, e -> e IS NOT NULL)) AS BIGINT)"
    if name == "sum" and len(call.values) == 2 and call.types[0].element.family == "int":
        start = "CAST(0 AS DECIMAL(38,0))"
        total = f"aggregate({{0}}, {start}, (a, e) -> CAST(a + coalesce(e, 0) AS DECIMAL(38,0)))"
        return once(
            values,
            lambda v: f"CASE WHEN exists({v}, e -> e IS NOT NULL) THEN {total.replace('{0}', v)} END",
        )
    raise call.refused(f"{name!r}")


def _concatenated(call: Call) -> str:
    return f"concat({', '.join(f'coalesce({value}, array())' for value in call.values)})"


def _map_value(call: Call) -> str:
    return f"CAST(try_element_at({call.values[0]}, {call.values[1]}) AS {call.result.spark})"


def _map_of_lists(call: Call) -> str:
    return f"map_from_arrays({call.values[0]}, {call.values[1]})"


def _by_names(names: tuple[str, ...], kinds: str, way: Written) -> dict[str, Written]:
    return {f"{name}({kinds})": way for name in names}


_KINDS = ("int", "huge", "unsigned", "decimal", "float", "double", "text", "date", "timestamp", "timestamptz", "bool")
_ANYTHING = (*_KINDS, "uuid", "blob", "time", "list", "struct", "map", "interval", "null")


def _with_element(names: tuple[str, ...], way: Written, kinds: tuple[str, ...] = _ANYTHING) -> dict[str, Written]:
    return {f"{name}(list,{kind})": way for name in names for kind in kinds}


def _of_one_kind(names: tuple[str, ...], way: Callable[[Call], str]) -> dict[str, Written]:
    return {f"{name}({kind}*)": way for name in names for kind in _ANYTHING}


NESTED: dict[str, Written] = {
    **_of_one_kind(("list_value", "list_pack", "unpivot_list"), _list),
    **_by_names(("list_value",), "", "CAST(array() AS {type})"),
    **_by_names(("struct_extract", "array_extract"), "struct,text", _field),
    **_by_names(("array_extract", "list_extract", "list_element"), "list,int", _element),
    **_by_names(("array_extract",), "text,int", _letter),
    **_by_names(("array_slice", "list_slice"), "list,int,int", _slice),
    **_by_names(("array_slice",), "text,int,int", _slice),
    **_by_names(("len", "length", "array_length", "list_length"), "list", "CAST(array_size({0}) AS BIGINT)"),
    **_with_element(("list_contains", "array_contains", "list_has", "array_has"), _contains),
    **_with_element(("list_position", "list_indexof", "array_position", "array_indexof"), _position),
    **_with_element(("list_append", "array_append"), "array_append(coalesce({0}, array()), {1})"),
    **_by_names(("list_concat", "list_cat", "array_concat", "array_cat"), "list,list", _concatenated),
    **_by_names(("list_sort", "array_sort"), "list", _sorted),
    **_by_names(("list_sort", "array_sort"), "list,text,text", _sorted),
    **_by_names(("list_aggr", "list_aggregate", "array_aggr", "array_aggregate"), "list,text", _aggregated),
    "flatten(list)": "flatten(filter({0}, e -> e IS NOT NULL))",
    **{f"{name}(map,{kind})": _map_value for name in ("map_extract_value",) for kind in _KINDS},
    "cardinality(map)": "CAST(cardinality({0}) AS {type})",
    "map_keys(map)": "map_keys({0})",
    "map_values(map)": "map_values({0})",
    "map(list,list)": _map_of_lists,
}
# Of arguments of whatever types.
ANY_TYPES: dict[str, Callable[[Call], str]] = {"struct_pack": _packed}
