"""Partition values of whole columns: like those of single values, and like DuckDB's, for every type."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidError, UnsupportedError
from penstock.partitioning import Bucket, Day, Hour, Identity, Month, Transform, Year, parse_transform
from penstock.partitioning.arrow import stored_form
from penstock.partitioning.texts import text
from penstock.predicates.calendar import DAY, days_of
from penstock.schema.types import Order, Type, parse_type
from support.arrays import spark_array
from support.effort import tries
from support.predicate_samples import POOLS, duckdb_type, samples

WIDE = Context(prec=76)
MOMENTS = (days_of(-9000) * DAY, days_of(20_000) * DAY)
EXTRA: dict[str, list[Any]] = {
    "int128": [0.0, -3.0, 1e38, 2.0**64],
    "uint128": [0.0, 3e38],
    "timetz": [0, 1, DAY - 1, 3_600_000_000],
    "interval": [(0, 0, 0), (14, 0, 0), (-25, 1, -1), (0, -3, 5_400_500_000), (11, 2, 3_600_000_000_000)],
    "decimal(5,5)": [Decimal("0.50000"), Decimal("-0.00001")],
    "decimal(38,0)": [Decimal(0), Decimal(10**38 - 1), Decimal("-12345678901234567890")],
    "decimal(38,38)": [Decimal("-1e-38"), Decimal("0." + "9" * 38)],
}
TYPES = sorted([*POOLS, *EXTRA])
TRANSFORMS = [Identity(), Bucket(16), Bucket(2**31 - 1), Year(), Month(), Day(), Hour()]


def stored_values(type: Type) -> st.SearchStrategy[Any]:
    """Any value of a type, and often one that hurts."""
    hurtful = st.sampled_from(POOLS.get(str(type), []) + EXTRA.get(str(type), []))
    match type.order:
        case Order.FLOAT:
            return hurtful | st.floats(width=32 if type.name == "float32" else 64)
        case Order.DECIMAL:
            most = 10**type.precision - 1
            return hurtful | st.integers(-most, most).map(lambda number: Decimal(number).scaleb(-type.scale, WIDE))
        case Order.DATE:
            return hurtful | st.integers(days_of(-9000), days_of(20_000))
        case Order.TIMESTAMP if type.name == "timestamp_ns":
            return hurtful | st.integers(-(2**63) + 1, 2**63 - 1)
        case Order.TIMESTAMP if type.name in ("timestamp", "timestamptz"):
            return hurtful | st.integers(*MOMENTS)
        case Order.TEXT if type.name == "varchar":
            return hurtful | st.text()
    match type.name:
        case "time" | "timetz":
            return hurtful | st.integers(0, DAY - 1)
        case "interval":
            small = st.integers(-(2**31), 2**31 - 1)
            return hurtful | st.tuples(small, small, st.integers(-(2**62), 2**62))
        case "int64":
            return hurtful | st.integers(-(2**63), 2**63 - 1)
    return hurtful


def expected(transform: Transform, value: Any, type: Type) -> str | None:
    if value is None:
        return None
    part = transform.apply(value, type)
    return text(part, type) if isinstance(transform, Identity) else None if part is None else str(part)


@settings(deadline=None, max_examples=tries(100, 300))
@given(st.data(), st.sampled_from(TYPES), st.sampled_from(TRANSFORMS))
def test_columns_agree_with_single_values(data: st.DataObject, name: str, transform: Transform) -> None:
    type = parse_type(name)
    values = data.draw(st.lists(st.none() | stored_values(type), max_size=6))
    if not takes(transform, type):
        with pytest.raises(InvalidError, match=f"{name.split('(')[0]}.*takes"):
            transform.values(spark_array(type, values), type)
        return
    if name == "blob" and isinstance(transform, Identity):
        values = [None if one is None else one.decode(errors="replace").encode() for one in values]
    array = spark_array(type, [*values, None])
    wanted = [expected(transform, one, type) for one in values]
    assert transform.values(array, type).to_pylist() == [*wanted, None]
    chunks = pa.chunked_array([array.slice(2), array.slice(0, 0), array.slice(1, 2)])
    assert transform.values(chunks, type).to_pylist() == [*wanted, None][2:] + [*wanted, None][1:3]


def takes(transform: Transform, type: Type) -> bool:
    if not isinstance(transform, Year | Month | Day | Hour):
        return True
    timed = type.order in (Order.DATE, Order.TIMESTAMP) or type.name == "interval"
    return timed or (isinstance(transform, Hour) and type.name in ("time", "timetz"))


@pytest.mark.parametrize("name", sorted(POOLS))
def test_identity_is_duckdb_s_text(name: str) -> None:
    stored = [
        one for one in samples(name) if name != "blob" or one.stored.decode(errors="ignore").encode() == one.stored
    ]
    found = Identity().values(spark_array(parse_type(name), [one.stored for one in stored]), parse_type(name))
    assert found.to_pylist() == ["0.0" if one.text == "-0.0" else one.text for one in stored]


def random_arrays() -> dict[str, pa.Array]:
    """Many values of the types whose text is an art."""
    random = np.random.default_rng(17)
    longs = random.integers(-(2**63), 2**63, 3000)
    shifts = random.integers(0, 64, 3000)
    spread = longs >> shifts
    wide = [int(one) * int(other) % 10**38 for one, other in zip(longs, spread, strict=True)]
    reals = longs.view(np.float64)
    return {
        "float64": pa.array(reals[~np.isnan(reals)]),
        "float32": pa.array(
            [one for one in spread.astype(np.int32).view(np.float32) if not math.isnan(one)], pa.float32()
        ),
        "decimal(38,10)": pa.array([Decimal(one).scaleb(-10, WIDE) for one in wide], pa.decimal128(38, 10)),
        "decimal(38,38)": pa.array([Decimal(one).scaleb(-38, WIDE) for one in wide], pa.decimal128(38, 38)),
        "decimal(18,3)": pa.array([Decimal(int(one) % 10**18).scaleb(-3) for one in spread], pa.decimal128(18, 3)),
        "date": pa.array((longs >> 32).astype(np.int32) // 4).view(pa.date32()),
        "timestamp": pa.array(longs // 32).view(pa.timestamp("us")),
        "timestamp_ns": pa.array(longs // 2).view(pa.timestamp("ns")),
        "time": pa.array(np.abs(spread) % DAY).view(pa.time64("us")),
    }


@pytest.mark.parametrize(("name", "array"), random_arrays().items(), ids=random_arrays())
def test_many_texts_are_duckdb_s(name: str, array: pa.Array) -> None:
    table = pa.table({"x": array})
    with duckdb.connect() as connection:
        connection.register("source", table)
        sql = f"SELECT CAST(CAST(x AS {duckdb_type(name)}) AS VARCHAR) FROM source"
        wanted = [one for (one,) in connection.execute(sql).fetchall()]
    found = Identity().values(array, parse_type(name)).to_pylist()
    if name == "float32":  # DuckDB does not always find the shortest text
        assert np.float32(found).tolist() == np.float32(wanted).tolist()
        assert sum(one != other for one, other in zip(found, wanted, strict=True)) < len(found) / 50
    else:
        assert found == ["0.0" if one == "-0.0" else one for one in wanted]


@pytest.mark.parametrize(
    ("name", "declared", "sql", "value"),
    [
        ("int128", "HUGEINT", "CAST(1e38 AS DOUBLE)", 1e38),
        ("int128", "HUGEINT", "CAST(-2.5 AS DOUBLE)", -2.5),
        ("uint128", "UHUGEINT", "CAST(3e38 AS DOUBLE)", 3e38),
        ("timetz", "TIMETZ", "'23:59:59.5+00'", 86_399_500_000),
        ("interval", "INTERVAL", "to_months(26) + to_days(1) + to_microseconds(5400500000)", (26, 1, 5_400_500_000)),
        ("interval", "INTERVAL", "to_days(0)", (0, 0, 0)),
        ("decimal(38,38)", "DECIMAL(38,38)", "'-0.00000000000000000000000000000000000001'", Decimal("-1e-38")),
        ("decimal(4,4)", "DECIMAL(4,4)", "'-0.5'", Decimal("-0.5")),
    ],
)
def test_types_that_do_not_prune(lake: Any, name: str, declared: str, sql: str, value: Any) -> None:
    type = parse_type(name)
    every = ("identity", "bucket(2147483647)", "year", "month", "day", "hour")
    taken = [one for one in every if takes(parse_transform(one), type)]
    lake.execute(f"CREATE OR REPLACE TABLE t (x {declared})")
    by = ", ".join(parse_transform(one).describe("x") for one in taken)
    lake.execute(f"ALTER TABLE t SET PARTITIONED BY ({by})")
    lake.execute(f"INSERT INTO t VALUES (CAST({sql} AS {declared}))")
    rows = lake.execute(
        "SELECT partition_value FROM __ducklake_metadata_lk.ducklake_file_partition_value"
        " WHERE data_file_id = (SELECT max(data_file_id) FROM __ducklake_metadata_lk.ducklake_data_file)"
        " ORDER BY partition_key_index"
    ).fetchall()
    found = [parse_transform(one).values(spark_array(type, [value]), type)[0].as_py() for one in taken]
    assert found == [one for (one,) in rows]


def test_other_forms_of_arrow() -> None:
    texts = pa.array(["a", None, "é/='%😀", ""])
    varchar = parse_type("varchar")
    forms = (texts, texts.cast(pa.large_string()), texts.cast(pa.string_view()), texts.dictionary_encode())
    for transform in (Identity(), Bucket(16)):
        found = [transform.values(form, varchar) for form in forms]
        assert all(one.type == pa.string() and one.equals(found[0]) for one in found)
    blob = parse_type("blob")
    views = pa.array([b"a", None]).cast(pa.binary_view())
    assert Bucket(16).values(views, blob).equals(Bucket(16).values(views.cast(pa.large_binary()), blob))
    assert Identity().values(pa.chunked_array([], pa.string()), varchar).to_pylist() == []


def test_times_in_other_units() -> None:
    micros = pa.array([-1, 1_500_000, None]).view(pa.timestamp("us"))
    nanos = Identity().values(micros, parse_type("timestamp_ns")).to_pylist()
    assert nanos == ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:01.5", None]
    # DuckDB rounds a timestamp that goes into a column of seconds.
    assert Identity().values(micros, parse_type("timestamp_s")).to_pylist() == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:02",
        None,
    ]
    far = pa.array([10**16]).view(pa.timestamp("us"))
    with pytest.raises(InvalidError, match="timestamp_ns"):
        Identity().values(far, parse_type("timestamp_ns"))


def test_uuids_in_any_spelling() -> None:
    spelled = pa.array(["550E8400-E29B-41D4-A716-446655440000", "{550e8400e29b41d4a716446655440000}", None])
    uuid = parse_type("uuid")
    found = Identity().values(spelled, uuid)
    assert found.to_pylist() == ["550e8400-e29b-41d4-a716-446655440000"] * 2 + [None]
    assert len(set(Bucket(2**31 - 1).values(spelled, uuid).to_pylist())) == 2
    with pytest.raises(InvalidError, match="'no'"):
        Identity().values(pa.array(["no"]), uuid)


def test_infinite_times_have_no_parts() -> None:
    date, timestamp = parse_type("date"), parse_type("timestamp")
    days = pa.array([2**31 - 1, -(2**31) + 1, 0], pa.int32()).view(pa.date32())
    micros = pa.array([2**63 - 1, -(2**63) + 1, 0]).view(pa.timestamp("us"))
    assert Year().values(days, date).to_pylist() == Year().values(micros, timestamp).to_pylist() == [None, None, "1970"]
    assert Day().values(micros.view(pa.int64()), parse_type("timestamp_ns")).to_pylist() == [None, None, "1"]
    assert Identity().values(days, date).to_pylist() == ["infinity", "-infinity", "1970-01-01"]


@pytest.mark.parametrize(("name", "unit"), [("timestamp_ms", 1000), ("timestamp_s", 1_000_000)])
def test_rounding_near_the_ends_of_time(name: str, unit: int) -> None:
    """Halves are not added to numbers that have no room for them; what rounds to a number too great is refused."""
    type, whole = parse_type(name), (2**63 - 1) // unit * unit
    below = whole + unit // 2 - 1
    numbers = [below, -below, whole - unit // 2, unit // 2, -unit // 2, unit // 2 - 1, 2**63 - 1, None]
    rounded = [whole, -whole, whole, unit, -unit, 0, 2**63 - 1, None]
    assert stored_form(pa.array(numbers, pa.timestamp("us")), type).to_pylist() == rounded
    with pytest.raises(InvalidError, match="past the last"):
        stored_form(pa.array([below + 1], pa.timestamp("us")), type)


def test_values_that_cannot_be_told_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="epoch_day"):
        parse_transform("epoch_day").values(pa.array([1]), parse_type("date"))
    with pytest.raises(UnsupportedError, match="list"):
        Identity().values(pa.array([[1]]), parse_type("list"))
    with pytest.raises(InvalidError, match="nan"):
        Bucket(4).values(pa.array([math.nan]), parse_type("int128"))
    with pytest.raises(InvalidError, match="string"):
        Year().values(pa.array(["2024-01-01"]), parse_type("timestamp"))
