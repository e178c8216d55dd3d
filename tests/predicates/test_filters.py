"""What filters imply: the shape of the answer, and that nothing Spark may push ever fails."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.predicates import And, Anything, ColumnIn, Cut, Implication, Interval, Nothing, Or, implied_by
from penstock.predicates.implication import size, summary
from penstock.schema.columns import Column
from penstock.schema.types import parse_type

NAMES = ["int32", "int64", "varchar", "float64", "decimal(4,1)", "timestamp", "boolean", "date", "uint64", "variant"]
COLUMNS = [Column(id, f"c{id}", parse_type(name), 0) for id, name in enumerate(NAMES)]
COLUMNS.append(Column(20, "s", parse_type("struct"), 0, children=(Column(21, "A", parse_type("int32"), 0),)))
COLUMNS.append(Column(30, "l", parse_type("list"), 0, children=(Column(31, "element", parse_type("int32"), 0),)))
INT, TEXT, DOUBLE, DECIMAL, TIMESTAMP = (["column", f"c{id}"] for id in (0, 2, 3, 4, 5))


def implied(*trees: Any) -> Implication:
    return implied_by([json.dumps(tree) for tree in trees], COLUMNS)


def intervals(*trees: Any) -> tuple[Interval, ...]:
    found = implied(*trees)
    assert isinstance(found, ColumnIn)
    return found.values.intervals


def test_a_range_is_one_interval() -> None:
    low = [">=", TIMESTAMP, ["literal", "timestamp_ntz", 10]]
    high = ["<", TIMESTAMP, ["literal", "timestamp_ntz", 20]]
    for found in (intervals(["and", low, high]), intervals(low, high)):
        assert found == (Interval(Cut(10), Cut(20)),)


def test_bounds_are_whole_steps_of_the_type() -> None:
    assert intervals([">", INT, ["literal", "int", 5]]) == (Interval(Cut(6), None),)
    assert intervals(["<=", DECIMAL, ["literal", "decimal(6,3)", "1.234"]]) == (Interval(None, Cut(Decimal("1.3"))),)
    assert intervals([">", ["cast", "double", INT], ["literal", "double", "5.5"]]) == (Interval(Cut(6), None),)


def test_casts_that_round_are_widened() -> None:
    [found] = intervals(["=", ["cast", "double", ["column", "c1"]], ["literal", "double", "9007199254740992"]])
    assert 2**53 in found
    assert 2**53 + 1 in found
    [found] = intervals(["=", ["cast", "double", DECIMAL], ["literal", "double", "0.1"]])
    assert Decimal("0.1") in found


def test_prefixes() -> None:
    def prefix(text: str) -> Any:
        return ["startswith", TEXT, ["literal", "string", text]]

    assert intervals(prefix("ab")) == (Interval(Cut("ab"), Cut("ac")),)
    assert intervals(prefix("a\U0010ffff")) == (Interval(Cut("a\U0010ffff"), Cut("b")),)
    assert intervals(prefix("\U0010ffff")) == (Interval(Cut("\U0010ffff"), None),)
    assert intervals(prefix("\ud7ff")) == (Interval(Cut("\ud7ff"), Cut("\ue000")),)


def test_columns_by_spark_s_rules() -> None:
    found = implied(["=", ["column", "S", "a"], ["literal", "int", 1]])
    assert isinstance(found, ColumnIn)
    assert (found.column.id, found.path) == (21, "S.a")
    assert implied(["=", ["column", "l", "element"], ["literal", "int", 1]]) == Anything()
    assert implied(["isnull", ["column", "l"]]) == Anything()
    assert implied(["isnull", ["column", "c9"]]) == Anything()


def test_trees() -> None:
    five, text = ["=", INT, ["literal", "int", 5]], ["=", TEXT, ["literal", "string", "a"]]
    assert isinstance(implied(["or", five, text]), Or)
    assert isinstance(implied(["not", ["or", five, text]]), And)
    assert isinstance(implied(["or", five, ["not", five]]), ColumnIn)  # not for NULL
    assert implied(["or", five, ["not", five], ["isnull", INT]]) == Anything()
    assert implied(["and", five, ["not", five]]) == Nothing()
    assert implied() == Anything()


def test_summary_is_implied() -> None:
    pairs = [["and", ["=", INT, ["literal", "int", n]], ["=", TEXT, ["literal", "string", str(n)]]] for n in range(100)]
    large = implied(["or", *pairs, ["=", INT, ["literal", "int", -1]]])
    assert size(large) == 201
    small = summary(large)
    assert isinstance(small, ColumnIn)
    assert small.column.id == 0


@pytest.mark.parametrize(
    "tree",
    [
        ["=", INT, ["literal", "bigint", "5"]],
        ["=", INT, ["literal", "string", "5"]],
        ["=", INT, INT],
        ["=", ["literal", "int", 5], ["literal", "int", 5]],
        ["=", DECIMAL, ["literal", "decimal(4,1)", "NaN"]],
        ["=", DECIMAL, ["literal", "decimal(4,1)", "x"]],
        ["=", TEXT, ["literal", "string", "a\ufffd"]],
        ["=", TEXT, ["literal", "string", "\ud800"]],
        ["=", TEXT, ["literal", "string collate UTF8_LCASE", "a"]],
        ["startswith", INT, ["literal", "int", 5]],
        ["=", ["cast", "tinyint", INT], ["literal", "tinyint", 5]],
        ["=", ["cast", "decimal(5,0)", ["column", "c1"]], ["literal", "decimal(5,0)", "5"]],
        ["=", ["year", TEXT], ["literal", "int", 5]],
        ["=", ["column", "missing"], ["literal", "int", 5]],
        ["isnull", ["cast", "int", TEXT]],
        ["and"],
        [],
        {},
        None,
        "x",
        INT,
        ["in", INT, INT],
        ["not"],
        ["literal", "int", 5],
    ],
)
def test_what_is_not_understood_implies_nothing(tree: Any) -> None:
    assert implied(tree) == Anything()
    assert implied(["not", tree]) == Anything()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '["not",' * 50_000 + "[]" + "]" * 50_000])
def test_broken_json_implies_nothing(text: str) -> None:
    assert implied_by([text], COLUMNS) == Anything()


NOUNS = ["literal", "column", "cast", "year", "c0", "c2", "c3", "c5", "1", "NaN"]
VERBS = ["and", "or", "not", "=", "<", "in", "isnull", "isnan", "startswith"]
KINDS = ["int", "string", "double", "decimal(4,1)", "date", "timestamp", "boolean", "binary", "time(6)"]
WORDS = st.sampled_from([*NOUNS, *VERBS, *KINDS])


@settings(deadline=None)
@given(
    st.recursive(
        WORDS | st.integers() | st.none() | st.booleans(), lambda inner: st.lists(inner, max_size=4), max_leaves=25
    )
)
def test_nonsense_never_fails(tree: Any) -> None:
    implied(tree)


def test_unknown_predicates_need_a_null() -> None:
    """What is neither true nor false has a NULL in it: how an overwrite proves that every row of a file goes."""
    five = ["=", INT, ["literal", "int", 5]]
    null = implied(["isnull", INT])
    assert implied(["isnull", five]) == null
    assert implied(["isnull", ["not", ["and", five, ["<", INT, ["literal", "int", 9]]]]]) == null
    assert implied(["isnull", ["in", INT, ["literal", "int", 1], ["literal", "int", None]]]) == Anything()
    assert implied(["isnull", ["<=>", INT, ["literal", "int", 5]]]) == Nothing()
    assert implied(["isnull", ["or", five, ["unknown"]]]) == Anything()
