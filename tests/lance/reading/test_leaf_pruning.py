"""The law of pruning: a row that passes a filter is in a leaf that is read. And which leaves are left out, exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.errors import InvalidError
from penstock.lance.format.definition import PARTITION_COLUMNS, NamespaceDefinition, new_definition, read_definition
from penstock.lance.format.field_ids import with_field_ids
from penstock.lance.format.leaves import Leaf, PartitionValues, leaf_from_entry, new_leaf_entries
from penstock.lance.format.manifest import ManifestEntry
from penstock.lance.format.partition_fields import transform_type
from penstock.lance.format.schema_conversion import namespace_columns
from penstock.lance.reading.leaf_pruning import LeafPruner
from penstock.predicates import Implication, implied_by
from penstock.predicates.calendar import DAY, HOUR, days_of
from support.arrays import spark_array
from support.effort import tries
from support.predicate_samples import literal, samples, spark_type
from support.spark_logic import OutOfRangeError, Row
from support.trees import compared, leaf

NO_SPARK = cast(SparkSession, None)  # Arrow's schemas need none
ARROW = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "decimal(38,10)": pa.decimal128(38, 10),
    "varchar": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "blob": pa.binary(),
}
TYPES = list(ARROW)
SCHEMA = with_field_ids(pa.schema([(f"c{id}", ARROW[name]) for id, name in enumerate(TYPES)]))
COLUMNS = namespace_columns(NO_SPARK, SCHEMA)
BY_ID = {column.id: column for column in COLUMNS}
NUMBERS, TEXT, TIMES, PLAIN, BINARY = range(4), 4, range(5, 8), range(8, 10), 10
HOSTILE = ["__HIVE_DEFAULT_PARTITION__", "__HIVE", "/ = % $", "%2F", "😀😀é", "..", " ", "a$b=c", "New York", "new"]
Stored = dict[int, Any]


def definition_of(*partitioned_by: str) -> NamespaceDefinition:
    return new_definition(SCHEMA, COLUMNS, partitioned_by)


def implied(trees: Sequence[Any]) -> Implication:
    return implied_by([json.dumps(tree) for tree in trees], COLUMNS)


def test_the_schema_is_that_of_the_samples() -> None:
    assert [str(column.type) for column in COLUMNS] == TYPES


# Random namespaces, rows and filters


def alone(id: int) -> list[str]:
    """The fields that one column can make."""
    column = f"c{id}"
    hashed = [f"bucket(1, {column})", f"bucket(3, {column})", f"bucket(64, {column})", f"hash({column})"]
    if id in NUMBERS or id == TEXT:
        return [column, *hashed, *(f"truncate({width}, {column})" for width in (1, 2, 10, 1000))]
    if id in TIMES:
        return [column, *hashed, *(f"{part}({column})" for part in ("year", "month", "day", "hour"))]
    return [column] if id in PLAIN else hashed


@st.composite
def partitionings(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Fields, and the columns that they are made of."""
    match draw(st.sampled_from(["alone", "alone", "chain", "chain", "pair"])):
        case "chain":
            id = draw(st.sampled_from(TIMES))
            length = draw(st.integers(1, 4))
            first = [f"{part}(c{id})" for part in ("year", "month", "day", "hour")[:length]]
            ids = [id]
        case "pair":
            ids = draw(st.lists(st.sampled_from([*NUMBERS, TEXT, *TIMES, BINARY]), min_size=2, max_size=2))
            first = [f"hash(c{ids[0]}, c{ids[1]})"]
        case _:
            first, ids = [], []
    more = draw(st.lists(st.sampled_from(range(len(TYPES))), min_size=not first, max_size=2))
    fields = first + [draw(st.sampled_from(alone(id))) for id in more]
    return list(dict.fromkeys(fields)), sorted({*ids, *more})


def stored(id: int) -> list[Any]:
    values = [None, *(sample.stored for sample in samples(TYPES[id]))]
    return [*values, *HOSTILE] if id == TEXT else values


@cache
def filters_on(ids: tuple[int, ...]) -> st.SearchStrategy[Any]:
    leaves = [leaf(id, TYPES[id]) for id in ids]
    if TEXT in ids:
        column = ["column", f"c{TEXT}"]
        prefixes = st.sampled_from([text[:length] for text in HOSTILE for length in range(4)])
        leaves.append(compared(column, "string", st.sampled_from(HOSTILE)))
        leaves.append(prefixes.map(lambda text: ["startswith", column, ["literal", "string", text]]))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or", "and"]), inner, inner).map(list),
            st.tuples(st.just("not"), inner).map(list),
        ),
        max_leaves=5,
    )


@st.composite
def narrow_filters(draw: st.DrawFn, ids: Sequence[int], rows: Sequence[Stored]) -> Any:
    """What one of the rows passes: its own values, or a range around them, in all columns."""
    row = draw(st.sampled_from(rows))
    tests = []
    for id in ids:
        column, value = ["column", f"c{id}"], row[id]
        if value is None:
            tests.append(["isnull", column])
            continue
        constant = literal(spark_type(TYPES[id]), value)
        operators = draw(st.sampled_from([["="], ["<=>"], [">="], ["<="], [">=", "<="]]))
        tests += [[operator, column, constant] for operator in operators]
    return ["and", *tests]


def partition_values(definition: NamespaceDefinition, rows: Sequence[Stored]) -> list[PartitionValues]:
    found = []
    for field in definition.fields:
        columns = [BY_ID[id] for id in field.sources]
        arrays = [spark_array(column.type, [row[column.id] for row in rows]) for column in columns]
        found.append(field.values(arrays, [transform_type(column.type) for column in columns]).to_pylist())
    return list(zip(*found, strict=True))


def passes(row: Stored, tree: Any, ids: Sequence[int]) -> bool:
    values = {(f"c{id}",): (spark_type(TYPES[id]), row[id]) for id in ids}
    try:
        return Row(values).matches([tree])
    except OutOfRangeError:
        return False


@settings(
    max_examples=tries(60, 2000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(partitionings(), st.data())
def test_rows_that_pass_are_in_leaves_that_are_kept(
    partitioning: tuple[list[str], list[int]], data: st.DataObject
) -> None:
    texts, ids = partitioning
    definition = definition_of(*texts)
    rows = data.draw(
        st.lists(st.fixed_dictionaries({id: st.sampled_from(stored(id)) for id in ids}), min_size=1, max_size=20)
    )
    tree = data.draw(filters_on(tuple(ids)) | narrow_filters(ids, rows))
    try:
        values = partition_values(definition, rows)
    except InvalidError:
        reject()  # the multiple below the least number is none of its type
    fields = definition.fields
    recorded = {one: leaf_from_entry([*new_leaf_entries("n", fields, one, "place")][-1], "n", fields) for one in values}
    by_name = {
        one: leaf_from_entry(ManifestEntry(own.object_id, "table", ""), "n", fields) for one, own in recorded.items()
    }
    assert len({own.object_id for own in recorded.values()}) == len(recorded)
    assert [own.values for own in by_name.values()] == [own.values for own in recorded.values()] == list(recorded)
    implication = implied([tree])
    passing = {one for one, row in zip(values, rows, strict=True) if passes(row, tree, ids)}
    for leaves in (recorded, by_name):
        read = LeafPruner(fields, BY_ID).kept(list(leaves.values()), implication)
        assert passing <= {own.values for own in read}


# Exactly which leaves are read


def kept(partitioned_by: Sequence[str], leaves: Sequence[PartitionValues], *trees: Any) -> list[PartitionValues]:
    fields = definition_of(*partitioned_by).fields
    found = [leaf_from_entry([*new_leaf_entries("n", fields, values, "place")][-1], "n", fields) for values in leaves]
    return [leaf.values for leaf in LeafPruner(fields, BY_ID).kept(found, implied(trees)) if leaf.values is not None]


def test(operator: str, id: int, *values: Any) -> Any:
    return [operator, ["column", f"c{id}"], *(literal(spark_type(TYPES[id]), value) for value in values)]


test.__test__ = False  # type: ignore[attr-defined]


def ones(*texts: str | None) -> list[PartitionValues]:
    return [(text,) for text in texts]


def micros(year: int, month: int, day: int, hour: int = 0) -> int:
    return days_of(year, month, day) * DAY + hour * HOUR


@pytest.mark.parametrize(
    ("tree", "texts"),
    [
        (test("=", TEXT, "b"), ["b"]),
        (test("in", TEXT, "c", "a", "zz"), ["a", "c"]),
        (test("<", TEXT, "b"), ["", "/ = %", "a"]),
        (test(">=", TEXT, "c"), ["c", "😀"]),
        (["not", test("=", TEXT, "b")], ["", "/ = %", "a", "c", "😀"]),
        (["isnull", ["column", "c4"]], [None]),
        (test("<=>", TEXT, None), [None]),
        (["or", test("=", TEXT, "/ = %"), ["isnull", ["column", "c4"]]], [None, "/ = %"]),
        (test("=", TEXT, None), []),
        (test("=", TEXT, "__HIVE_DEFAULT_PARTITION__"), []),
    ],
)
def test_identity(tree: Any, texts: list[str | None]) -> None:
    assert kept(["c4"], ones(None, "", "/ = %", "a", "b", "c", "😀"), tree) == ones(*texts)


@pytest.mark.parametrize(
    ("id", "texts", "tree", "left"),
    [
        (0, ["-1", "9", "10", "100"], test("<", 0, 10), ["-1", "9"]),
        (2, ["0", "9", "18446744073709551615"], test(">", 2, 2**63), ["18446744073709551615"]),
        (3, ["-0.1000000000", "0.0000000001", "5.5"], test(">", 3, 0), ["0.0000000001", "5.5"]),
        (5, ["1969-12-31", "1970-01-01", "9999-12-31"], test(">=", 5, 0), ["1970-01-01", "9999-12-31"]),
        (7, ["1969-12-31 23:59:59", "1970-01-01T00:00:00.000001Z"], test(">", 7, 0), ["1970-01-01T00:00:00.000001Z"]),
        (8, ["-inf", "0.0", "-0", "1", "nan"], test("=", 8, -0.0), ["0.0", "-0"]),
        (8, ["-inf", "0.0", "inf", "nan"], test(">", 8, 0.0), ["inf", "nan"]),
        (9, ["true", "false"], ["not", ["column", "c9"]], ["false"]),
    ],
)
def test_identity_compares_values_not_texts(id: int, texts: list[str], tree: Any, left: list[str]) -> None:
    assert kept([f"c{id}"], ones(None, "?", *texts), tree) == ones(*(["?"] if id != TEXT else []), *left)


def test_buckets() -> None:
    buckets = ones(None, *map(str, range(4)))
    [oslo], [rome], [null] = partition_values(definition_of("bucket(4, c4)"), [{4: "Oslo"}, {4: "Roma"}, {4: None}])
    assert oslo != rome
    assert kept(["bucket(4, c4)"], buckets, test("=", 4, "Oslo")) == [(oslo,)]
    assert set(kept(["bucket(4, c4)"], buckets, test("in", 4, "Oslo", "Roma"))) == {(oslo,), (rome,)}
    assert kept(["bucket(4, c4)"], buckets, ["isnull", ["column", "c4"]]) == [(null,)]
    assert kept(["bucket(4, c4)"], buckets, test(">", 4, "Oslo")) == buckets


@pytest.mark.parametrize(
    ("tree", "texts"),
    [
        (test("=", TEXT, "abcdef"), ["abc"]),
        (test("=", TEXT, "ab"), ["ab"]),
        (test("startswith", TEXT, "abcd"), ["abc"]),
        (test("startswith", TEXT, "ab"), ["ab", "abc", "abd"]),
        (test("startswith", TEXT, "b"), ["b😀é"]),
        (test("<", TEXT, "abca"), ["", "ab", "abc"]),
        (test(">", TEXT, "abd"), ["abd", "b😀é"]),
    ],
)
def test_truncated_texts(tree: Any, texts: list[str]) -> None:
    assert kept(["truncate(3, c4)"], ones(None, "", "ab", "abc", "abd", "b😀é"), tree) == ones(*texts)


@pytest.mark.parametrize(
    ("tree", "texts"),
    [
        (test(">", 0, 125), ["120", "130"]),  # 126 to 129 are in 120: the draft's `<= 120` would lose them
        (test(">", 0, 129), ["130"]),
        (test("<", 0, 120), ["-10", "0", "110"]),
        (test("=", 0, 123), ["120"]),
        (test("=", 0, -10), ["-10"]),
        (test("=", 0, -7), ["-10", "0"]),  # another writer cuts towards zero
        (test("in", 0, 115, 131), ["110", "130"]),
    ],
)
def test_truncated_numbers(tree: Any, texts: list[str]) -> None:
    assert kept(["truncate(10, c0)"], ones(None, "-10", "0", "110", "120", "130"), tree) == ones(*texts)


def test_truncated_decimals() -> None:
    """By value, as the draft's formula has it; where the field does not say so, by the last digit too."""
    written = definition_of("truncate(10, c3)")
    rows: list[Stored] = [{3: Decimal(text)} for text in ("123.4500000000", "-0.0000000001", "9.9999999999")]
    assert partition_values(written, rows) == ones("120", "-10", "0")
    leaves = ones("0", "120", "130", "123.4500000000")
    assert kept(["truncate(10, c3)"], leaves[:3], test(">", 3, Decimal(129))) == ones("120", "130")
    told = json.loads(written.properties()[PARTITION_COLUMNS])
    del told[0]["properties"]["decimals"]
    open_field = read_definition("n", {**written.properties(), PARTITION_COLUMNS: json.dumps(told)}).fields
    found = [
        leaf_from_entry([*new_leaf_entries("n", open_field, values, "place")][-1], "n", open_field) for values in leaves
    ]
    for wanted, texts in [("129", ["120"]), ("123.4500000001", ["120", "123.4500000000"]), ("9.5", ["0"])]:
        read = LeafPruner(open_field, BY_ID).kept(found, implied([test("=", 3, Decimal(wanted))]))
        assert [leaf.values for leaf in read] == ones(*texts)


def test_hashes() -> None:
    rows: list[Stored] = [{0: 1, 4: "a"}, {0: 1, 4: None}, {0: None, 4: "a"}, {0: None, 4: None}, {0: 2, 4: "a"}]
    one, same, nothing, _, two = alone = partition_values(definition_of("hash(c0)"), rows)
    assert one == same != two
    assert nothing == (None,)
    assert kept(["hash(c0)"], alone, test("=", 0, 1)) == [one, one]
    assert kept(["hash(c0)"], alone, test(">", 0, 2**30)) == alone
    both = partition_values(definition_of("hash(c0, c4)"), rows)
    assert len(set(both)) == 5
    a, null = test("=", 4, "a"), ["isnull", ["column", "c4"]]
    assert kept(["hash(c0, c4)"], both, test("=", 0, 1), a) == [both[0]]
    assert kept(["hash(c0, c4)"], both, ["and", null, test("=", 0, 1)]) == [both[1]]
    assert kept(["hash(c0, c4)"], both, null, ["isnull", ["column", "c0"]]) == [both[3]] == [(None,)]
    assert kept(["hash(c0, c4)"], both, a, test("in", 0, 1, 2)) == [both[0], both[4]]
    assert kept(["hash(c0, c4)"], both, test("=", 0, 1)) == both


def days(start: tuple[int, int, int], count: int) -> list[PartitionValues]:
    rows = [{5: days_of(*start) + number} for number in range(count)]
    return partition_values(definition_of("year(c5)", "month(c5)", "day(c5)"), rows)


PARTS = ["year", "month", "day"]


def test_a_range_of_hours_reads_one_day() -> None:
    leaves = [*days((2025, 11, 1), 60), *days((2024, 12, 10), 1), *days((2025, 1, 10), 1), (None, None, None)]
    chain = [f"{part}(c7)" for part in PARTS]
    low, high = test(">=", 7, micros(2025, 12, 10, 10)), test("<", 7, micros(2025, 12, 11))
    assert kept(chain, leaves, low, high) == [("2025", "12", "10")]
    assert kept(chain, leaves, test("=", 7, micros(2025, 12, 10, 23))) == [("2025", "12", "10")]
    assert kept(chain, leaves, ["isnull", ["column", "c7"]]) == [(None, None, None)]
    hours: list[PartitionValues] = [
        ("2025", "12", day, f"{hour:02}") for day, hour in product(["09", "10", "11"], range(24))
    ]
    assert kept([*chain, "hour(c7)"], hours, low, high) == [("2025", "12", "10", f"{hour}") for hour in range(10, 24)]


@pytest.mark.parametrize("id", TIMES)
def test_a_range_over_new_year_reads_its_days(id: int) -> None:
    leaves = days((2024, 12, 20), 400)
    unit = 1 if id == 5 else DAY
    low, high = test(">=", id, days_of(2025, 12, 30) * unit), test("<", id, days_of(2026, 1, 3) * unit)
    found = kept([f"{part}(c{id})" for part in PARTS], leaves, low, high)
    assert found == [("2025", "12", "30"), ("2025", "12", "31"), ("2026", "01", "01"), ("2026", "01", "02")]


def test_parts_of_other_writers() -> None:
    leaves: list[PartitionValues] = [("2025", "3", "9"), ("2025", "03", "09"), ("2025", "3", "10"), ("2025", "x", "9")]
    day = test("=", 5, days_of(2025, 3, 9))
    assert kept([f"{part}(c5)" for part in PARTS], leaves, day) == [leaves[0], leaves[1], leaves[3]]


def test_parts_alone() -> None:
    months = ones(*(f"{month:02}" for month in range(1, 13)))
    year_end = [test(">=", 6, micros(2025, 12, 31)), test("<", 6, micros(2026, 2, 1))]
    assert kept(["month(c6)"], months, *year_end) == ones("01", "12")
    assert kept(["month(c6)"], months, test(">=", 6, micros(2025, 12, 31))) == months
    hours = ones(*(f"{hour:02}" for hour in range(24)))
    assert kept(["hour(c6)"], hours, test("=", 6, -1)) == ones("23")
    years = ones("-043", "0001", "1969", "1970", "9999")
    assert kept(["year(c5)"], years, test("<", 5, 0)) == ones("-043", "0001", "1969")
    assert kept(["year(c5)"], years, test("=", 5, days_of(-43, 3, 15))) == ones("-043")
    assert kept(["year(c5)"], years, test("=", 5, days_of(9999, 12, 31))) == ones("9999")
    assert kept(["year(c5)"], years, ["=", ["year", ["column", "c5"]], ["literal", "int", 1969]]) == ones("1969")


def test_leaves_of_unknown_values_are_kept_and_reasons_are_told() -> None:
    fields = definition_of("c4", "year(c7)", "month(c7)").fields
    pruner = LeafPruner(fields, BY_ID)
    unknown = Leaf("n$x", "", None, None)
    known = [Leaf("", "", values, 1) for values in product("ab", ["2024", "2025"], ["01", "02"])]
    wanted = implied([test("=", 4, "a"), test(">=", 7, micros(2025, 2, 1))])
    assert pruner.kept([unknown, *known], wanted) == [unknown, known[3]]
    assert pruner.reasons([unknown, *known], wanted) == {"c4": 4, "year(c7), month(c7)": 6}
    assert pruner.kept([unknown, *known], implied([test("=", 4, None)])) == [unknown]
