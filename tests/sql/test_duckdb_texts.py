"""Texts of DuckDB's dialect, without Spark: constants and patterns mean the same in both languages."""

from __future__ import annotations

import re

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.duckdb_dialect.bound_types import UntranslatableError
from penstock.sql.duckdb_dialect.constants import text
from penstock.sql.duckdb_dialect.patterns import inner_of, java_pattern
from penstock.sql.duckdb_dialect.syntax import duckdb_literal, text_of, tree_of, with_arguments
from support.effort import tries

_PATTERNS = st.text(alphabet=r"ab.*+?()[]|^$\dws-{}12,:", max_size=8)


@settings(max_examples=tries(200, 3000), deadline=None)
@given(st.text())
def test_a_text_means_itself_under_all_settings(value: str) -> None:
    written = text(value)
    if written.startswith("'"):
        assert written == f"'{value}'"
        assert not set(value) & set("'\\$")
    else:
        assert bytes.fromhex(written.removeprefix("decode(X'").removesuffix("', 'UTF-8')")).decode() == value


@settings(max_examples=tries(200, 3000), deadline=None)
@given(_PATTERNS, st.text(alphabet="ab12 \n-", max_size=6))
def test_patterns_match_what_duckdb_matches(pattern: str, value: str) -> None:
    """Python stands for Java: what is left of both languages is what they share."""
    try:
        ours = re.compile(inner_of(java_pattern(pattern)), re.ASCII)
    except (UntranslatableError, re.error):
        return
    try:
        [[theirs]] = duckdb.execute("SELECT regexp_matches($1, $2)", [value, pattern]).fetchall()
    except duckdb.Error:
        return
    assert (ours.search(value) is not None) == theirs


@settings(max_examples=tries(200, 3000), deadline=None)
@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(), st.booleans(), st.dates(), st.binary()))
def test_arguments_are_what_duckdb_gets(value: object) -> None:
    if isinstance(value, str) and "\0" in value:
        return
    [[expected]] = duckdb.execute(f"SELECT {duckdb_literal(value)}").fetchall()
    [[found]] = duckdb.execute(text_of(with_arguments(tree_of("SELECT $x AS x"), {"x": value}))).fetchall()
    assert repr(found) == repr(expected)
    assert repr(found) == repr(value)
