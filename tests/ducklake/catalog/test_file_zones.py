"""Zones: what is known of many files at once leaves out no file that would be kept when each is looked at."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from gc import collect
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.ducklake.catalog import file_zones, objects, visible_files
from penstock.ducklake.catalog.commits import staged_tables
from penstock.ducklake.catalog.commits.staged_files import add_files, remove_files
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.dialects import SQLITE, Form, form
from penstock.ducklake.catalog.expiry import expire
from penstock.ducklake.catalog.file_pruning import keep_condition, prunings
from penstock.ducklake.catalog.file_zones import ZoneSource, in_ranges
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import FileScope
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.partitioning import PartitionField, parse_transform
from penstock.predicates import implied_by
from penstock.schema.columns import Column
from penstock.schema.statistics import ColumnStatistics, WrittenFile
from penstock.schema.types import Type
from support.catalogs import Catalog as AnyCatalog
from support.effort import tries
from support.engines import Engine, MySQLEngine, PostgresEngine, open_engine
from support.lakes import Lake, lakes
from support.trees import trees
from support.writers import Writer

EXAMPLES = {"duckdb": tries(5, 150), "sqlite": tries(15, 800), "postgres": tries(5, 200), "mysql": tries(5, 200)}
MANY_EXAMPLES = 100
COLUMNS = (Column(1, "id", Type("int64"), 0), Column(2, "day", Type("date"), 0), Column(3, "x", Type("float64"), 0))


@pytest.fixture
def small_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones of a few files, for tables of any size."""
    monkeypatch.setattr(file_zones, "ZONE", 4)
    monkeypatch.setattr(visible_files, "MANY_FILES", 0)


@pytest.fixture(params=["duckdb", "sqlite", "postgres", "mysql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_engine(request.param, request)
    yield opened
    opened.connection.close()


class Asked:
    """An engine that answers as the catalog's database does."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.dialect = engine, engine.dialect

    def query(self, sql: str) -> list[Any]:
        doubled = isinstance(self.engine, PostgresEngine | MySQLEngine)  # their drivers' placeholders begin with %
        return self.engine.execute(sql.replace("%", "%%") if doubled else sql)

    @staticmethod
    def joining() -> nullcontext[None]:
        return nullcontext()


@st.composite
def questions(draw: st.DrawFn) -> tuple[Lake, list[list[object]]]:
    lake = draw(lakes())
    return lake, [draw(st.lists(trees(lake.types), min_size=1, max_size=2)) for _ in range(4)]


def test_zones_exclude_only_what_is_pruned(
    engine: Engine, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    excluding, examples = 0, EXAMPLES[request.node.callspec.params["engine"]]

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(questions(), st.sampled_from([1, 2, 3]))
    def law(question: tuple[Lake, list[list[object]]], size: int) -> None:
        nonlocal excluding
        monkeypatch.setattr(file_zones, "ZONE", size)
        lake, queries = question
        texts = [t for row in lake.statistics for t in row[5:7]] + [t for f in lake.files for t in f.partition or ()]
        assume(engine.keeps_nul or not any("\0" in (text or "") for text in texts))
        engine.fill(lake.tables())
        excluding += sum(check(engine, lake, filters, size) for filters in queries)

    law()
    assert excluding > 0 or examples < MANY_EXAMPLES  # a few may have nothing to exclude


def check(engine: Engine, lake: Lake, filters: list[object], size: int) -> int:
    """What zones exclude is pruned file by file too; the number of files that they exclude."""
    implication = implied_by([json.dumps(tree) for tree in filters], lake.columns)
    specs, columns = [lake.spec] if lake.spec else [], {column.id: column for column in lake.columns}
    excluded: set[int] = set()
    for one in prunings(implication, 1, specs, columns, engine.dialect):
        if one.zones is None:
            continue
        asked: Any = Asked(engine)
        zones = one.zones.source.zones(asked, ((0, len(lake.files) + size),))
        gone = {zone.first for zone in zones if one.zones.excludes(zone)}
        files = {file.id for file in lake.files if file.id - file.id % size in gone}
        assert files <= engine.files(one), (filters, one)
        excluded |= files
    left = tuple((file.id, file.id + 1) for file in lake.files if file.id not in excluded)
    if excluded and left:
        within = prunings(implication, 1, specs, columns, engine.dialect, within=left)
        some = engine.files(keep_condition(within)) & {file for file, _ in left}
        assert some == engine.files(keep_condition(prunings(implication, 1, specs, columns, engine.dialect)))
    return len(excluded)


class Catalog:
    """A table partitioned by a column, with files whose ids, days and numbers count on."""

    def __init__(self, uri: str, data_path: str, partitioned_by: int = 2) -> None:
        self.writer = Writer(uri, data_path)
        self.database: Database = self.writer.catalog.database
        self.writer.create_table("t", COLUMNS)
        with self.writer.transaction() as transaction:
            self.table = self.writer.table(transaction, "t")
            fields = [PartitionField(0, partitioned_by, parse_transform("identity"))]
            staged_tables.set_partitioning(transaction.staging, self.table.id, fields)
        self.specs = objects.partition_specs(self.database, self.table.id)
        self.count = 0

    def append(self, files: int, *, told: bool = True) -> None:
        self.add([self.file(self.count + number, told) for number in range(files)])

    def add(self, made: list[WrittenFile]) -> None:
        with self.writer.transaction() as transaction:
            add_files(transaction.staging, self.table.id, self.specs[0].partition_id, made)
        self.count += len(made)

    @staticmethod
    def file(number: int, told: bool) -> WrittenFile:
        day = f"2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"
        bounds = ((str(number * 10), str(number * 10 + 9)), (day, day), ("-1.5", "2.5"))
        known = tuple(
            ColumnStatistics(column.id, 10, 10, 0, *pair, contains_nan=False)
            for column, pair in zip(COLUMNS, bounds, strict=True)
            if told or column.name != "id"
        )
        return WrittenFile(f"ducklake-{number:036}.parquet", 10, 100, 10, columns=known, partition_values=(day,))

    def scope(self, version: int | None = None) -> FileScope:
        newest = latest_snapshot(self.database)
        return FileScope(
            self.database, self.table.id, self.table.path, At(newest.id if version is None else version), newest.id,
            newest.next_file_id, seen_time=newest.time,
        )  # fmt: skip

    def planner(self, version: int | None = None) -> FilePlanner:
        scope = self.scope(version)
        [group] = scope.groups()
        return FilePlanner(scope, self.specs, group, COLUMNS, {}, lambda file: ())

    def kept(self, *filters: Any, version: int | None = None) -> list[int]:
        """By all that is known; the slow way finds the same."""
        planner, text = self.planner(version), json.dumps(filters)
        found = sorted(file.id for file in planner.files_for(text))
        slow = replace(planner, scope=replace(planner.scope, seen_time=None))
        assert found == sorted(file.id for file in slow.files_for(text))
        assert planner.counts(text) == slow.counts(text)
        return found

    def asked_for_one(self, *filters: Any) -> list[str]:
        """What SQLite is asked to find the one file that filters leave."""
        planner = self.planner()
        asked: list[str] = []
        connection = self.database._connection  # type: ignore[attr-defined]
        connection.set_trace_callback(asked.append)
        assert len(planner.files_for(json.dumps(filters))) == 1
        connection.set_trace_callback(None)
        return asked

    def ranges(self, *filters: Any) -> file_zones.Ranges | None:
        planner = self.planner()
        return planner.scope.zones_left(planner.group, planner.prunings(json.dumps(filters)))


@pytest.fixture
def large(tmp_path: Path, small_zones: None) -> Iterator[Catalog]:
    made = Catalog(f"ducklake:sqlite:{tmp_path}/lake.sqlite", f"{tmp_path}/data/")
    with closing(made.database):
        yield made


@pytest.fixture
def by_number(catalog: AnyCatalog, small_zones: None) -> Iterator[Catalog]:
    """A table in each kind of database, partitioned by its floats."""
    made = Catalog(catalog.uri, catalog.data_path, partitioned_by=3)
    with closing(made.database):
        yield made


def number(value: int) -> list[list[Any]]:
    low, high = (["literal", "bigint", bound] for bound in (value, value + 10))
    return [[">=", ["column", "id"], low], ["<", ["column", "id"], high]]


def test_a_source_that_is_asked_for_again_has_zones(large: Catalog) -> None:
    large.append(50)
    assert large.ranges(*number(200)) is None
    assert large.ranges(*number(200)) == ((20, 24), (48, None))
    assert large.kept(*number(200)) == [20]
    assert large.kept(*number(499)) == [49]
    assert large.kept(*number(10_000)) == []


def test_new_files_are_in_new_zones(large: Catalog) -> None:
    large.append(50)
    for _ in range(2):
        large.ranges(*number(0))
    large.append(30)
    assert large.ranges(*number(600)) == ((60, 64), (80, None))
    assert large.kept(*number(600)) == [60]
    assert large.kept(*number(600), version=latest_snapshot(large.database).id - 1) == []


def test_files_of_which_nothing_is_told_are_kept(large: Catalog) -> None:
    large.append(10)
    large.append(5, told=False)
    large.append(10)
    for _ in range(2):
        assert large.kept(*number(30)) == [3, 10, 11, 12, 13, 14]


def test_files_that_are_gone_leave_nothing_behind(large: Catalog) -> None:
    large.append(40)
    for _ in range(2):
        assert large.kept(*number(50)) == [5]
    with large.writer.transaction() as transaction:
        remove_files(transaction.staging, large.table, range(4, 8))
    assert large.kept(*number(50)) == []
    assert large.kept(*number(50), version=latest_snapshot(large.database).id - 1) == [5]
    expire(large.database, range(latest_snapshot(large.database).id))
    assert large.kept(*number(50)) == []
    assert large.kept(*number(90)) == [9]


def test_a_catalog_that_was_put_back_is_another_one(large: Catalog) -> None:
    large.append(40)
    for _ in range(2):
        assert large.kept(*number(50)) == [5]
    large.database.execute("UPDATE ducklake_snapshot SET snapshot_time = '2020-01-01 00:00:00+00'")
    large.database.execute(
        """UPDATE ducklake_file_column_stats SET min_value = '1', max_value = '2'
           WHERE column_id = 1 AND data_file_id = 5"""
    )
    assert large.ranges(*number(50)) is None
    for _ in range(3):
        assert large.kept(*number(50)) == []
        assert large.kept(*number(0)) == [0, 5]


def test_a_question_that_fails_leaves_nothing_for_a_catalog_that_is_put_back(
    large: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    large.append(40)
    monkeypatch.setattr(file_zones, "_FEW_ZONES", 0)
    both = [*number(50), ["<", ["column", "x"], ["literal", "double", "9.0"]]]
    large.ranges(*both)  # from now on zones are found for both columns
    zones, calls = ZoneSource.zones, iter((True, False))

    def once(self: ZoneSource, *asked: Any) -> Any:
        if next(calls):
            return zones(self, *asked)
        raise InterruptedError

    monkeypatch.setattr(ZoneSource, "zones", once)
    with pytest.raises(InterruptedError):
        large.ranges(*both)
    monkeypatch.setattr(ZoneSource, "zones", zones)
    large.database.execute("UPDATE ducklake_snapshot SET snapshot_time = '2020-01-01 00:00:00+00'")
    large.database.execute(
        """UPDATE ducklake_file_column_stats SET min_value = '500', max_value = '500'
           WHERE column_id = 1 AND data_file_id = 30"""
    )
    for _ in range(3):
        assert large.kept(*number(500)) == [30]


def test_a_question_from_before_says_nothing_of_a_catalog_that_was_put_back(large: Catalog) -> None:
    large.append(20)
    old = large.planner()
    for _ in range(2):
        assert large.kept(*number(50)) == [5]
    large.database.execute("UPDATE ducklake_snapshot SET snapshot_time = '2020-01-01 00:00:00+00'")
    assert large.ranges(*number(50)) is None
    assert old.scope.zones_left(old.group, old.prunings(json.dumps(number(50)))) is None
    assert large.ranges(*number(50)) == ((4, 8), (20, None))


def test_partitions_and_statistics_leave_what_both_leave(large: Catalog) -> None:
    large.append(60)
    day = ["=", ["column", "day"], ["literal", "date", 20454]]  # 2026-01-01
    for _ in range(3):
        assert large.kept(day) == [0]
        assert large.kept(day, *number(0)) == [0]
        assert large.kept(day, *number(10)) == []
        assert large.kept([">", ["column", "x"], ["literal", "double", "3.0"]]) == []
        assert len(large.kept(["<", ["column", "x"], ["literal", "double", "3.0"]])) == 60
        assert large.kept(["or", day, *number(300)[:1]]) == [0, *range(30, 60)]
        assert large.kept(["isnull", ["column", "id"]]) == []


def test_a_first_question_asks_for_the_statistics_of_the_files_that_partitions_leave(large: Catalog) -> None:
    large.append(60)
    day = ["=", ["column", "day"], ["literal", "date", 20454 + 9]]  # 2026-01-10
    assert large.ranges(day, *number(90)) == ((8, 12), (60, None))
    large.append(5, told=False)
    others = ["in", ["column", "day"], ["literal", "date", 20454 + 3], ["literal", "date", 20454 + 70]]
    assert large.kept(others, *number(30)) == [3]
    assert large.kept(["=", ["column", "day"], ["literal", "date", 99]]) == []


def test_a_first_question_reads_the_statistics_of_a_catalogs_one_large_table_whole(large: Catalog) -> None:
    large.append(40)
    asked = large.asked_for_one(*number(100))
    [sql] = [sql for sql in asked if "ducklake_file_column_stats" in sql]
    steps = [row[-1] for row in large.database.query(f"EXPLAIN QUERY PLAN {sql}")]
    assert "SCAN ducklake_file_column_stats" in steps, steps


@pytest.mark.parametrize("text", ["5", "-5", "0", "-0", "05", "+5", "5.0", "", " 5", "5 ", "x", "1-2", "--1", None,
                                  "9223372036854775807", "9223372036854775808", "-9223372036854775809"])  # fmt: skip
def test_whole_numbers_of_sqlite_are_read_by_the_quick_test_as_by_the_slow_one(text: str | None) -> None:
    slow = "CASE WHEN json_valid(t) AND t NOT GLOB '*[^-0-9]*' THEN CAST(t AS INTEGER) END"
    connection = sqlite3.connect(":memory:")
    found = connection.execute(f"SELECT {SQLITE.integer('t')}, {slow} FROM (SELECT ? AS t)", [text]).fetchone()
    connection.close()
    assert found[0] == found[1]


@st.composite
def almost_in_form(draw: st.DrawFn, written: Form) -> str:
    """A text of a form, and often not quite."""
    fraction = draw(st.sampled_from(["", ".5", ".123456", ".1234567", ".", ".12-456", ".1:2345", ".12.456"]))
    text = list(written.start + fraction + draw(st.sampled_from([written.suffix, written.suffix, "", "+00", "+01"])))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        text[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from([*"059-: .+x_%\n\\", "\u0660", ""]))
        text = text or ["0"]
    return "".join(text)


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "time"])
def test_times_are_read_by_the_quick_test_as_by_the_slow_one(engine: Engine, kind: str) -> None:
    written = form(Type(kind))
    query = Asked(engine).query

    @settings(max_examples=tries(30, 500), deadline=None)
    @given(st.lists(almost_in_form(written), min_size=20, max_size=20))
    def same_as_its_pattern(texts: list[str]) -> None:
        literals = [
            "'" + text.replace("\\", "\\\\" if isinstance(engine, MySQLEngine) else "\\") + "'" for text in texts
        ]
        rows = " UNION ALL ".join(f"SELECT {place} AS n, {text} AS t" for place, text in enumerate(literals))
        found = query(f"SELECT {engine.dialect.in_form('t', written)} FROM ({rows}) texts ORDER BY n")
        assert [bool(one) for (one,) in found] == [bool(re.fullmatch(written.pattern, text)) for text in texts], texts

    same_as_its_pattern()


def test_no_table_is_read_whole(large: Catalog) -> None:
    large.append(400)
    for _ in range(2):
        large.ranges(*number(0))
    asked = large.asked_for_one(*number(1000))
    [sql] = [sql for sql in asked if "ducklake_data_file" in sql]
    steps = [row[-1] for row in large.database.query(f"EXPLAIN QUERY PLAN {sql}")]
    assert not [step for step in steps if step.startswith("SCAN")], steps
    searches = [step for step in steps if step.startswith("SEARCH") and "deletes_by_file" not in step]
    assert any("penstock_statistics_by_file (table_id=? AND data_file_id>?" in step for step in searches), steps
    assert all("data_file_id>?" in step for step in searches), steps


def float_file(number: int, value: str) -> WrittenFile:
    bounds = ((str(number), str(number)), ("2026-01-01", "2026-01-01"), (None,) * 2 if value == "nan" else (value,) * 2)
    known = tuple(
        ColumnStatistics(column.id, 10, 10, 0, *pair, contains_nan=value == "nan")
        for column, pair in zip(COLUMNS, bounds, strict=True)
    )
    return WrittenFile(f"ducklake-{number:036}.parquet", 10, 100, 10, columns=known, partition_values=(value,))


def test_partitions_of_nan(by_number: Catalog) -> None:
    values = [("nan", "inf", "-inf")[n // 10] if n % 10 == 5 and n < 30 else f"{n}.5" for n in range(40)]
    by_number.add([float_file(number, value) for number, value in enumerate(values)])
    x, nan = ["column", "x"], ["literal", "double", "NaN"]
    for _ in range(3):
        assert by_number.kept(["=", x, nan]) == [5]
        assert by_number.kept([">=", x, nan]) == [5]
        assert by_number.kept(["isnan", x]) == [5]
        assert by_number.kept([">", x, ["literal", "double", "37.0"]]) == [5, 15, 37, 38, 39]
        assert by_number.kept(["<", x, ["literal", "double", "1.0"]]) == [0, 5, 25]  # what is not read is kept
        assert by_number.kept(["isnull", x]) == []
        assert by_number.kept(["in", x, nan, ["literal", "double", "8.5"]]) == [5, 8]


def test_a_first_question_is_answered_where_zones_are_worth_it(by_number: Catalog) -> None:
    by_number.append(80)
    first = by_number.ranges(*number(200))
    assert first == (((20, 24), (80, None)) if by_number.database.dialect.summarizes_first else None)
    most = [[">=", ["column", "id"], ["literal", "bigint", 100]], ["<", ["column", "day"], ["literal", "date", 99_999]]]
    assert by_number.ranges(most[1]) is None  # of no file it tells anything
    for _ in range(3):
        assert by_number.kept(*number(200)) == [20]
        assert by_number.kept(*most) == list(range(10, 80))
        assert by_number.kept(*number(790)) == [79]
        assert by_number.kept(*number(10_000)) == []
    by_number.append(5, told=False)
    assert by_number.kept(*number(200)) == [20, 80, 81, 82, 83, 84]


def test_no_more_is_asked_than_few_zones_need(large: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    large.append(80)
    day = ["=", ["column", "day"], ["literal", "date", 20454 + 9]]  # 2026-01-10
    asked: list[str] = []
    found = ZoneSource.zones
    monkeypatch.setattr(ZoneSource, "zones", lambda self, *given: asked.append(self.key) or found(self, *given))
    for _ in range(3):
        assert large.ranges(day, *number(90)) == ((8, 12), (80, None))
    assert asked == ["s.partition_key_index = 0"]
    both = (*number(90), [">", ["column", "x"], ["literal", "double", "-9.0"]])
    for _ in range(3):
        assert large.ranges(*both) == ((8, 12), (80, None))
    assert asked[1:] == ["s.column_id = 1"]


def test_sources_that_are_forgotten_are_found_again(large: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_zones, "_MOST_SOURCES", 1)
    large.append(80)
    for _ in range(3):
        assert large.kept(*number(90), ["<", ["column", "x"], ["literal", "double", "1.0"]]) == [9]
        assert large.kept(["=", ["column", "day"], ["literal", "date", 20454 + 9]], *number(90)) == [9]


def test_zones_go_with_their_database(tmp_path: Path, small_zones: None) -> None:
    made = Catalog(f"ducklake:sqlite:{tmp_path}/lake.sqlite", f"{tmp_path}/data/")
    made.append(20)
    assert made.kept(*number(50)) == [5]
    made.database.close()
    gone = ref(made.database)
    del made
    collect()
    assert gone() is None


def test_ranges_as_sql() -> None:
    assert in_ranges("i", ((0, 4), (8, None))) == "((i >= 0 AND i < 4) OR (i >= 8))"
