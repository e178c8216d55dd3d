"""What pruning prunes: exact files for each operator, type, cast and transform, on every catalog database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.ducklake.catalog.file_pruning import Pruning, keep_condition, prunings
from penstock.partitioning import PartitionField, PartitionSpec, parse_transform
from penstock.predicates import implied_by
from penstock.predicates.calendar import DAY, days_of
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.engines import Engine, open_engine

DATE = days_of(2024, 1, 1)
MICROS = DATE * DAY


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "postgres", "mysql"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_engine(request.param, request)
    yield opened
    opened.connection.close()


class Files:
    """Files of a table with columns 1 (`x`), 2 (`y`) and 3 (`s.a`), each with the statistics that are given."""

    def __init__(self, engine: Engine, x: str, y: str = "int32", transform: str | None = None) -> None:
        self.engine = engine
        nested = Column(4, "s", parse_type("struct"), 0, children=(Column(3, "a", parse_type("int32"), 0),))
        self.columns = [Column(1, "x", parse_type(x), 0), Column(2, "y", parse_type(y), 0), nested]
        fields = (PartitionField(0, 1, parse_transform(transform)),) if transform else ()
        self.specs = [PartitionSpec(7, fields)]
        self.tables: dict[str, list[tuple[Any, ...]]] = {
            "ducklake_data_file": [],
            "ducklake_file_column_stats": [],
            "ducklake_file_partition_value": [],
            "ducklake_column": [(1, 1, x), (1, 2, y), (1, 3, "int32")],
        }

    def range(
        self, low: str | None, high: str | None, nulls: int = 0, nan: bool | None = None, column: int = 1
    ) -> None:
        id = self.add()
        values = 0 if low is None and high is None and nulls else 10
        self.tables["ducklake_file_column_stats"].append((id, 1, column, values, nulls, low, high, nan))

    def pair(self, x: tuple[str, str], y: tuple[str, str]) -> None:
        id = self.add()
        for column, (low, high) in ((1, x), (2, y)):
            self.tables["ducklake_file_column_stats"].append((id, 1, column, 10, 0, low, high, None))

    def partition(self, value: str | None) -> None:
        self.tables["ducklake_file_partition_value"].append((self.add(7), 1, 0, value))

    def add(self, partition_id: int | None = None) -> int:
        id = len(self.tables["ducklake_data_file"])
        self.tables["ducklake_data_file"].append((id, 1, partition_id))
        return id

    def prunings(self, *filters: Any) -> tuple[Pruning, ...]:
        self.engine.fill(self.tables)
        implication = implied_by([json.dumps(one) for one in filters], self.columns)
        by_id = {one.id: one for column in self.columns for one in column.walk()}
        return prunings(implication, 1, self.specs, by_id, self.engine.dialect)

    def kept(self, *filters: Any) -> list[int]:
        return sorted(self.engine.files(keep_condition(self.prunings(*filters))))


def date(days: int) -> list[Any]:
    return ["literal", "date", days]


def ntz(micros: int) -> list[Any]:
    return ["literal", "timestamp_ntz", micros]


X = ["column", "x"]
Y = ["column", "y"]


def integer(value: int | None, type: str = "int") -> list[Any]:
    return ["literal", type, value]


FIVE, FIFTEEN = integer(5), integer(15)
INTEGERS = [
    (["=", X, FIVE], [0, 3]),
    (["=", FIVE, X], [0, 3]),
    (["<=>", X, FIVE], [0, 3]),
    (["<=>", X, integer(None)], [1, 2, 3]),
    (["=", X, integer(None)], []),
    (["<", X, integer(1)], [3]),
    (["<=", X, integer(1)], [0, 3]),
    (["<", X, integer(9)], [0, 3]),
    (["<", X, integer(10)], [0, 3]),
    (["<", X, integer(11)], [0, 1, 3]),
    ([">", X, integer(19)], [3]),
    ([">=", X, integer(19)], [1, 3]),
    ([">", integer(1), X], [3]),
    (["in", X, FIVE, integer(100)], [0, 3]),
    (["in", X, FIVE, integer(None)], [0, 3]),
    (["not", ["in", X, FIVE, integer(None)]], []),
    (["not", ["=", X, FIVE]], [0, 1, 3]),
    (["not", [">=", X, integer(10)]], [0, 3]),
    (["isnull", X], [1, 2, 3]),
    (["isnotnull", X], [0, 1, 3]),
    (["not", ["isnull", X]], [0, 1, 3]),
    (["and", [">=", X, FIVE], ["<=", X, integer(7)]], [0, 3]),
    (["and", [">", X, integer(9)], ["<", X, integer(10)]], []),
    (["or", ["=", X, FIVE], ["=", X, FIFTEEN]], [0, 1, 3]),
    (["or", ["=", X, FIVE], ["isnull", X]], [0, 1, 2, 3]),
    (["not", ["or", ["<", X, integer(10)], [">", X, integer(100)]]], [1, 3]),
    (["=", ["cast", "bigint", X], integer(5, "bigint")], [0, 3]),
    (["=", ["cast", "bigint", X], integer(2**40, "bigint")], []),
    (["=", ["cast", "decimal(12,2)", X], ["literal", "decimal(12,2)", "5.50"]], []),
    ([">", ["cast", "decimal(12,2)", X], ["literal", "decimal(12,2)", "9.50"]], [1, 3]),
    ([">", ["cast", "double", X], ["literal", "double", "9.5"]], [1, 3]),
    (["<", ["cast", "double", X], ["literal", "double", "NaN"]], [0, 1, 3]),
    ([">", ["cast", "double", X], ["literal", "double", "NaN"]], []),
    (["=", ["cast", "string", X], ["literal", "string", "5"]], [0, 1, 2, 3]),
    (["literal", "boolean", False], []),
    (["literal", "boolean", True], [0, 1, 2, 3]),
    (["and", ["unknown"], ["=", X, FIVE]], [0, 3]),
    (["or", ["unknown"], ["=", X, FIVE]], [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("tree", "expected"), INTEGERS, ids=[json.dumps(tree) for tree, _ in INTEGERS])
def test_operators(engine: Engine, tree: Any, expected: list[int]) -> None:
    files = Files(engine, "int32")
    files.range("1", "9")
    files.range("10", "19", nulls=3)
    files.range(None, None, nulls=4)
    files.add()
    assert files.kept(tree) == expected


IN_2023, IN_2024 = ("2023-01-01", "2023-12-31"), ("2024-01-01", "2024-12-31")
LAST_DAY = ("2023-12-31 00:00:00", "2023-12-31 23:59:59.999999")
NEW_YEAR = ("2024-01-01 00:00:00", "2024-01-01 00:00:00.5")
NEW_YEAR_UTC = ("2024-01-01 00:00:00+00", "2024-01-01 00:00:00.5+00")
# type, the ranges of two files, a comparison, and which of the files are kept
TYPES: list[tuple[str, tuple[str, str], tuple[str, str], list[Any], list[int]]] = [
    ("boolean", ("0", "0"), ("0", "1"), X, [1]),
    ("boolean", ("false", "false"), ("true", "true"), ["not", X], [0]),
    ("int8", ("-128", "-1"), ("0", "127"), ["=", X, integer(-128, "tinyint")], [0]),
    ("int64", ("-9223372036854775808", "0"), ("1", "9223372036854775807"), [">", X, integer(2**63 - 2, "bigint")], [1]),
    ("uint32", ("9", "10"), ("99", "4294967295"), [">", X, integer(4_000_000_000, "bigint")], [1]),
    ("uint64", ("9", "9223372036854775807"), ("9223372036854775808", "18446744073709551615"),
     ["=", X, ["literal", "decimal(20,0)", "9223372036854775808"]], [1]),
    ("float32", ("0.1", "0.5"), ("0.75", "inf"), ["<=", X, ["literal", "float", "0.1"]], [0]),
    ("float64", ("-inf", "9.0"), ("10.0", "1e+300"), [">", X, ["literal", "double", "9.5"]], [1]),
    ("float64", ("-inf", "9.0"), ("10.0", "1e+300"), ["=", X, ["literal", "double", "-Infinity"]], [0]),
    ("decimal(4,1)", ("-1.5", "9.9"), ("10.0", "11.0"), [">", X, ["literal", "decimal(4,1)", "9.9"]], [1]),
    ("decimal(38,10)", ("0.0000000001", "5.0000000000"), ("1234567890123456789012345678.0123456789",) * 2,
     ["=", X, ["literal", "decimal(38,10)", "1234567890123456789012345678.0123456789"]], [1]),
    ("varchar", ("a", "b"), ("c", "é"), ["=", X, ["literal", "string", "d"]], [1]),
    ("varchar", ("A", "Z"), ("a", "z"), ["<", X, ["literal", "string", "a"]], [0]),
    ("varchar", ("\uffff", "\uffff"), ("😀", "😀"), [">", X, ["literal", "string", "\uffff"]], [1]),
    ("varchar", ("app", "apple"), ("apricot", "b"), ["startswith", X, ["literal", "string", "app"]], [0]),
    ("varchar", ("app", "apple"), ("apricot", "b"), ["startswith", X, ["literal", "string", "apr"]], [1]),
    ("varchar", ("app", "apple"), ("x", "z"), ["not", ["startswith", X, ["literal", "string", "app"]]], [1]),
    ("varchar", ("a ", "a "), ("b", "b"), ["=", X, ["literal", "string", "a"]], []),
    ("uuid", ("00000000-0000-0000-0000-000000000001", "7fffffff-ffff-ffff-ffff-ffffffffffff"),
     ("80000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
     ["=", X, ["literal", "string", "80000000-0000-0000-0000-000000000001"]], [1]),
    ("blob", ("00", "7F"), ("80", "FF"), ["=", X, ["literal", "binary", "90"]], [1]),
    ("date", IN_2023, IN_2024, [">=", X, date(DATE)], [1]),
    ("date", IN_2023, IN_2024, ["<", X, date(DATE)], [0]),
    ("date", IN_2023, IN_2024, [">", X, date(days_of(12_000))], []),
    ("date", IN_2023, ("2024-01-01", "10000-01-01"), [">", X, date(days_of(12_000))], [1]),
    ("date", IN_2023, ("0044-03-15 (BC)", "2024-12-31"), ["<", X, date(days_of(-50))], [1]),
    ("date", IN_2023, IN_2024,
     ["=", ["cast", "timestamp_ntz", X], ntz(MICROS)], [1]),
    ("date", IN_2023, IN_2024, ["=", ["year", X], integer(2023)], [0]),
    ("timestamp", LAST_DAY, NEW_YEAR,
     ["=", ["cast", "date", X], date(DATE)], [1]),
    ("timestamp", LAST_DAY, NEW_YEAR,
     [">=", ["year", ["cast", "date", X, "UTC"]], integer(2024)], [1]),
    ("timestamp", LAST_DAY, NEW_YEAR,
     [">=", ["year", X], integer(2024)], [0, 1]),
    ("timestamp", ("2023-12-31 00:00:00", "2024-01-01 00:00:00.1"), ("2024-01-01 00:00:00.12", "2024-01-01 00:00:00.5"),
     ["<=", X, ntz(MICROS + 110_000)], [0]),
    ("timestamp_ns", ("2023-12-31 00:00:00", "2024-01-01 00:00:00.000001999"),
     ("2024-01-01 00:00:00.000002", "2025-01-01 00:00:00"),
     ["=", X, ntz(MICROS + 1)], [0]),
    ("timestamptz", ("2023-12-31 00:00:00+00", "2023-12-31 23:00:00+00"), NEW_YEAR_UTC,
     [">=", X, ["literal", "timestamp", MICROS]], [1]),
    ("timestamptz", ("2023-12-31 00:00:00+01", "2023-12-31 23:00:00+01"), NEW_YEAR_UTC,
     [">=", X, ["literal", "timestamp", MICROS]], [0, 1]),
    ("timestamptz", ("2023-12-30 00:00:00+00", "2023-12-31 12:00:00+00"), NEW_YEAR_UTC,
     ["=", ["cast", "date", X, "UTC"], date(DATE)], [1]),
    ("timestamptz", ("2023-12-30 00:00:00+00", "2023-12-31 12:00:00+00"), NEW_YEAR_UTC,
     ["=", ["cast", "date", X, "Pacific/Apia"], date(DATE)], [0, 1]),
    ("timestamptz", ("2023-12-30 00:00:00+00", "2023-12-31 12:00:00+00"), NEW_YEAR_UTC,
     ["=", ["cast", "date", X], date(DATE)], [0, 1]),
    ("time", ("00:00:00", "11:59:59.999999"), ("12:00:00", "23:59:59"),
     [">=", X, ["literal", "time(6)", 12 * 3_600_000_000_000]], [1]),
    ("json", ("1", "2"), ("3", "4"), ["=", X, ["literal", "string", "1"]], [0, 1]),
    ("int128", ("1", "2"), ("3", "4"), ["isnull", X], [0, 1]),
    ("variant", ("1", "2"), ("3", "4"), ["isnull", X], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "first", "second", "tree", "expected"), TYPES, ids=range(len(TYPES)))
def test_types(
    engine: Engine, type: str, first: tuple[str, str], second: tuple[str, str], tree: Any, expected: list[int]
) -> None:
    files = Files(engine, type)
    for low, high in (first, second):
        files.range(low, high, nan=False)
    assert files.kept(tree) == expected


NANS = [
    (["isnan", X], [1, 2]),
    (["not", ["isnan", X]], [0, 1, 2]),
    ([">", X, ["literal", "double", "50.0"]], [1, 2]),
    (["=", X, ["literal", "double", "NaN"]], [1, 2]),
    (["<", X, ["literal", "double", "0.5"]], []),
    (["<=", X, ["literal", "double", "NaN"]], [0, 1, 2]),
]


@pytest.mark.parametrize(("tree", "expected"), NANS, ids=[json.dumps(tree) for tree, _ in NANS])
def test_nan_is_the_greatest_value(engine: Engine, tree: Any, expected: list[int]) -> None:
    files = Files(engine, "float64")
    for nan in (False, True, None):
        files.range("1.0", "9.0", nan=nan)
    assert files.kept(tree) == expected


PARTITIONS: list[tuple[str, str, list[str | None], Any, list[int]]] = [
    ("varchar", "identity", ["EU", "US", None], ["=", X, ["literal", "string", "EU"]], [0]),
    ("varchar", "identity", ["EU", "US", None], ["isnull", X], [2]),
    ("varchar", "identity", ["EU", "US", None], ["not", ["=", X, ["literal", "string", "EU"]]], [1]),
    ("varchar", "identity", ["EU", "eu", "É", "é"],
     ["in", X, ["literal", "string", "eu"], ["literal", "string", "é"]], [1, 3]),
    ("int32", "identity", ["9", "10", None, "x"], [">", X, integer(9)], [1, 3]),
    ("float64", "identity", ["9.0", "nan", "inf"], ["isnan", X], [1]),
    ("float64", "identity", ["9.0", "nan", "inf"], ["=", X, ["literal", "double", "9.0"]], [0, 1]),
    ("boolean", "identity", ["true", "false", None], X, [0]),
    ("decimal(4,1)", "identity", ["1.0", "10.0"], ["=", X, ["literal", "decimal(4,1)", "10.0"]], [1]),
    ("date", "identity", ["2023-12-31", "2024-01-01"], ["=", X, date(DATE)], [1]),
    ("timestamptz", "identity", ["2023-12-31 00:00:00+00", None], ["=", X, ["literal", "timestamp", MICROS]], [0, 1]),
    ("int64", "bucket(16)", ["7", "8", None], ["=", X, integer(5, "bigint")], [0]),
    ("int64", "bucket(16)", ["7", "8", None], ["in", X, integer(5, "bigint"), integer(-1, "bigint")], [0, 1]),
    ("int64", "bucket(16)", ["7", "8", None], [">", X, integer(5, "bigint")], [0, 1, 2]),
    ("int64", "bucket(16)", ["7", "8", None], ["isnull", X], [2]),
    ("varchar", "bucket(16)", ["8", "9"], ["=", X, ["literal", "string", "é😀"]], [0]),
    ("date", "year", ["2023", "2024", "-43", None], [">=", X, date(DATE)], [1, 3]),
    ("date", "year", ["2023", "2024", "-43", None], ["<", X, date(days_of(0))], [2, 3]),
    ("date", "year", ["2023", "2024", None], ["isnull", X], [2]),
    ("timestamp", "month", ["11", "12", "1", "2"],
     ["and", [">=", X, ntz(MICROS - DAY)], ["<", X, ntz(MICROS + DAY)]], [1, 2]),
    ("timestamp", "day", ["29", "30", "31", "1", "2", "3"],
     ["and", [">=", X, ntz(MICROS - 2 * DAY)], ["<=", X, ntz(MICROS + DAY)]], [1, 2, 3, 4]),
    ("timestamp", "hour", ["22", "23", "0", "1"],
     ["and", [">=", X, ntz(MICROS - 1)], ["<=", X, ntz(MICROS)]], [1, 2]),
    ("timestamp", "hour", ["22", "23", "0", "1"], [">=", X, ntz(MICROS)], [0, 1, 2, 3]),
    ("timestamptz", "year", ["2023", "2024"], [">=", X, ["literal", "timestamp", MICROS]], [0, 1]),
    ("date", "epoch_day", ["1", "2"], ["=", X, date(DATE)], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "transform", "values", "tree", "expected"), PARTITIONS, ids=range(len(PARTITIONS)))
def test_transforms(
    engine: Engine, type: str, transform: str, values: list[str | None], tree: Any, expected: list[int]
) -> None:
    files = Files(engine, type, transform=transform)
    for value in values:
        files.partition(value)
    unpartitioned = files.add()
    assert files.kept(tree) == [*expected, unpartitioned]


def test_promoted_columns_do_not_prune_by_the_old_type_s_buckets(engine: Engine) -> None:
    files = Files(engine, "int64", transform="bucket(16)")
    files.partition("8")
    tree = ["=", X, integer(5, "bigint")]
    assert files.kept(tree) == []
    files.tables["ducklake_column"].append((1, 1, "int32"))
    assert files.kept(tree) == []
    files.tables["ducklake_column"].append((1, 1, "uint32"))
    assert files.kept(tree) == [0]


def test_partition_values_of_added_files_are_not_trusted(engine: Engine) -> None:
    files = Files(engine, "int64", transform="bucket(4)")
    files.partition("5")  # the value 5 itself, from the path p=5/
    files.tables["ducklake_column_mapping"] = [(1, 2)]
    assert files.kept(["=", X, integer(5, "bigint")]) == []
    files.tables["ducklake_column_mapping"] = [(1, 1)]
    assert files.kept(["=", X, integer(5, "bigint")]) == [0]


def test_conditions_on_two_columns(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.pair(("1", "9"), ("1", "9"))
    files.pair(("1", "9"), ("10", "19"))
    files.pair(("10", "19"), ("1", "9"))
    files.pair(("10", "19"), ("10", "19"))
    both = ["and", ["=", X, FIVE], ["=", Y, FIFTEEN]]
    either = ["or", ["=", X, FIVE], ["=", Y, FIFTEEN]]
    assert files.kept(both) == [1]
    assert files.kept(["=", X, FIVE], ["=", Y, FIFTEEN]) == [1]
    assert files.kept(either) == [0, 1, 3]
    assert files.kept(["not", either]) == [0, 1, 2, 3]
    assert files.kept(["or", both, ["and", ["=", X, FIFTEEN], ["=", Y, FIVE]]]) == [1, 2]


def test_large_alternatives_are_summarised(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.pair(("1", "9"), ("1", "9"))
    files.pair(("1", "9"), ("10000", "10000"))
    pairs = [["and", ["=", X, integer(n)], ["=", Y, integer(n)]] for n in range(500)]
    assert files.kept(["or", *pairs]) == [0]


def test_thousands_of_values(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.range("0", "0")
    files.range("100001", "100001")
    files.range("200001", "200001")
    assert files.kept(["in", X, *(integer(n) for n in range(0, 100_000, 20))]) == [0]


def test_fields_of_structs_prune_and_elements_do_not(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.range("1", "9", column=3)
    files.range("10", "19", nulls=2, column=3)
    field = ["column", "s", "a"]
    assert files.kept(["=", field, FIVE]) == [0]
    assert files.kept(["isnull", field]) == [1]
    assert files.kept(["isnull", ["column", "s"]]) == [0, 1]


def test_one_known_bound_is_enough(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.range("1", None)
    files.range(None, "9")
    assert files.kept(["<", X, integer(1)]) == [1]
    assert files.kept([">", X, integer(9)]) == [0]


def test_no_time_of_day_is_infinite(engine: Engine) -> None:
    """What is no bound of a type says nothing."""
    files = Files(engine, "time")
    files.range("infinity", "-infinity")
    files.range("10:00:00", "11:00:00")
    assert files.kept(["=", X, ["literal", "time(6)", 0]]) == [0]


def test_texts_with_nul(engine: Engine) -> None:
    files = Files(engine, "varchar")
    files.range("a", "a")
    files.range("b", "b")
    assert files.kept(["=", X, ["literal", "string", "a\0b"]]) == [0]
    assert files.kept(["<", X, ["literal", "string", "a\0b"]]) == [0]


def test_reasons(engine: Engine) -> None:
    files = Files(engine, "timestamp", transform="year")
    files.partition("2023")
    files.partition("2024")
    files.tables["ducklake_file_column_stats"] = [(0, 1, 2, 5, 0, "1", "9", None), (1, 1, 2, 5, 0, "10", "19", None)]
    found = files.prunings([">=", X, ntz(MICROS)], ["=", Y, FIVE])
    pruned = {one.reason: sorted(engine.files(one)) for one in found}
    assert pruned == {"partition year(x)": [0], "statistics of x": [], "statistics of y": [1]}
    assert files.kept([">=", X, ntz(MICROS)], ["=", Y, FIVE]) == []
    [both] = files.prunings(["or", ["<", X, ntz(MICROS)], ["=", Y, FIVE]])
    assert both.reason == "partition year(x) and statistics of x and statistics of y"
    assert engine.files(both) == {1}


def test_nothing_to_prune_by(engine: Engine) -> None:
    files = Files(engine, "int32")
    files.range("1", "9")
    assert files.kept() == [0]
    assert files.prunings(["unknown"]) == ()
