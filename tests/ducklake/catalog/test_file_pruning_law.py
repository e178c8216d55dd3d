"""The law of pruning: a file that holds a matching row is never pruned, whatever the filter and the catalog say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.ducklake.catalog.file_pruning import keep_condition, prunings
from penstock.predicates import implied_by
from support.effort import tries
from support.engines import Engine, open_engine
from support.lakes import Lake, lakes
from support.spark_logic import OutOfRangeError
from support.trees import trees

EXAMPLES = {"duckdb": tries(10, 300), "sqlite": tries(15, 800), "postgres": tries(12, 500), "mysql": tries(12, 400)}


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "postgres", "mysql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_engine(request.param, request)
    yield opened
    opened.connection.close()


@st.composite
def questions(draw: st.DrawFn) -> tuple[Lake, list[list[object]]]:
    lake = draw(lakes())
    filters = [draw(st.lists(trees(lake.types), min_size=1, max_size=2)) for _ in range(4)]
    return lake, filters


def test_no_file_with_a_match_is_pruned(engine: Engine, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["engine"]

    @settings(max_examples=EXAMPLES[kind], deadline=None, suppress_health_check=list(HealthCheck))
    @given(questions())
    def law(question: tuple[Lake, list[list[object]]]) -> None:
        lake, queries = question
        texts = [text for row in lake.statistics for text in row[5:7]] + [
            t for f in lake.files for t in f.partition or ()
        ]
        assume(engine.keeps_nul or not any("\0" in (text or "") for text in texts))
        engine.fill(lake.tables())
        for filters in queries:
            check(engine, lake, filters)

    law()


def check(engine: Engine, lake: Lake, filters: list[object]) -> None:
    try:
        matching = {file.id for file in lake.files if any(lake.shown(row).matches(filters) for row in file.rows)}
    except OutOfRangeError:
        return
    implication = implied_by([json.dumps(tree) for tree in filters], lake.columns)
    specs = [lake.spec] if lake.spec else []
    found = prunings(implication, 1, specs, {column.id: column for column in lake.columns}, engine.dialect)
    kept = engine.files(keep_condition(found))
    assert matching <= kept, (filters, implication)
    pruned = {file for one in found for file in engine.files(one)}
    assert kept == {file.id for file in lake.files} - pruned
