"""The law of aggregates: what the catalog tells of files is what their rows give, whatever its statistics lack."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.ducklake.catalog.file_aggregates import FileAggregate, FileTotals, Function
from penstock.ducklake.catalog.file_pruning import Condition
from penstock.schema.types import Order
from support.effort import tries
from support.engines import Engine, open_engine
from support.lakes import File, Lake, lakes

EXAMPLES = {"duckdb": tries(10, 300), "sqlite": tries(20, 800), "postgres": tries(12, 500), "mysql": tries(12, 400)}
EVERY_FILE = Condition("d.table_id = 1")


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "postgres", "mysql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_engine(request.param, request)
    opened.execute("ALTER TABLE ducklake_data_file ADD COLUMN record_count BIGINT")
    yield opened
    opened.connection.close()


@st.composite
def questions(draw: st.DrawFn, engine: Engine) -> tuple[Lake, list[tuple[FileAggregate, ...]]]:
    lake = draw(lakes().filter(lambda lake: engine.keeps_nul or not _has_nul(lake)))
    functions: list[Function] = ["count", "min", "max"]
    one = st.builds(FileAggregate, st.sampled_from(functions), st.sampled_from([None, *lake.columns]))
    told = one.filter(lambda aggregate: aggregate.is_told(engine.dialect))
    return lake, [tuple(draw(st.lists(told, min_size=1, max_size=4))) for _ in range(4)]


def _has_nul(lake: Lake) -> bool:
    return any("\0" in (text or "") for row in lake.statistics for text in row[5:7]) or any(
        "\0" in (text or "") for file in lake.files for text in file.partition or ()
    )


def test_what_is_told_is_what_the_rows_give(engine: Engine, request: pytest.FixtureRequest) -> None:
    known_files = 0

    @settings(
        max_examples=EXAMPLES[request.node.callspec.params["engine"]],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(questions(engine))
    def law(question: tuple[Lake, list[tuple[FileAggregate, ...]]]) -> None:
        nonlocal known_files
        lake, asked = question
        fill(engine, lake)
        for aggregates in asked:
            known_files += check(engine, lake, FileTotals(aggregates, Condition("1 = 1"), 1, engine.dialect))

    law()
    assert known_files > 10


def fill(engine: Engine, lake: Lake) -> None:
    tables = lake.tables()
    files = {file.id: file for file in lake.files}
    tables["ducklake_data_file"] = [(*row, len(files[row[0]].rows)) for row in tables["ducklake_data_file"]]
    engine.fill(tables)


def check(engine: Engine, lake: Lake, totals: FileTotals) -> int:
    asked = totals.query(EVERY_FILE)
    [(known, left, *found)] = engine.execute(asked.sql, asked.parameters)
    ids = engine.files(totals.files())
    assert (int(known or 0), int(left or 0)) == (len(ids), len(lake.files) - len(ids))
    files = [file for file in lake.files if file.id in ids]
    for one, value in zip(totals.aggregates, found, strict=True):
        assert told(one, one.value(value)) == given_by_rows(one, files), one
    return len(ids)


def told(one: FileAggregate, text: str | None) -> Any:
    if text is None:
        return None
    order = one.column.type.order if one.column and one.is_bound else Order.INTEGER
    match order:
        case Order.BOOLEAN:
            return {"true": True, "false": False}[text]
        case Order.DECIMAL:
            return Decimal(text)
    return int(text)


def given_by_rows(one: FileAggregate, files: list[File]) -> Any:
    if one.column is None:
        return sum(len(file.rows) for file in files)
    place = one.column.id
    values = [cell.stored for file in files for row in file.rows if (cell := row[place]) is not None]
    if one.function == "count":
        return len(values)
    return (min if one.function == "min" else max)(values, default=None)


@pytest.mark.parametrize(
    "harm",
    [
        "value_count = NULL", "null_count = NULL", "value_count = value_count + 1", "min_value = NULL",
        "min_value = 'abc'", "max_value = '1e3'", "max_value = ' 5'", "max_value = '5\n'", "max_value = ''",
    ],
)  # fmt: skip
def test_statistics_that_tell_nothing(engine: Engine, harm: str) -> None:
    lake = Lake(["int32"], None, [])
    statistics = [(file, 1, 0, 2, 1, "-5", "7", None) for file in (1, 2)]
    engine.fill(
        {
            "ducklake_data_file": [(1, 1, None, 3), (2, 1, None, 3)],
            "ducklake_file_column_stats": statistics,
            "ducklake_column": [(1, 0, "int32")],
        }
    )
    totals = FileTotals((FileAggregate("max", lake.columns[0]),), Condition("1 = 1"), 1, engine.dialect)
    assert engine.files(totals.files()) == {1, 2}
    engine.execute(f"UPDATE ducklake_file_column_stats SET {harm} WHERE data_file_id = 1")
    assert engine.files(totals.files()) == {2}


def test_statistics_of_an_older_type_tell_no_bounds(engine: Engine) -> None:
    column = Lake(["int32"], None, []).columns[0]
    engine.fill(
        {
            "ducklake_data_file": [(1, 1, None, 3)],
            "ducklake_file_column_stats": [(1, 1, 0, 2, 1, "-5", "7", None)],
            "ducklake_column": [(1, 0, "int32"), (1, 0, "int16")],
        }
    )
    for function, files in (("count", {1}), ("min", set())):
        aggregate = FileAggregate(function, column)  # type: ignore[arg-type]
        assert engine.files(FileTotals((aggregate,), Condition("1 = 1"), 1, engine.dialect).files()) == files
