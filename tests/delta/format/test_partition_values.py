"""Partition values as text and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from penstock.delta.format.partition_values import array_texts, from_text, to_text
from penstock.delta.log.table_log import TableLog
from penstock.errors import InvalidError, UnsupportedError

_EARLY = datetime(1965, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
_DAYS, _MICROS = (-719162, 2932896), (-62135596800000000, 253402300799999999)  # the years 1 to 9999
_BIG = Decimal("12345678901234567890123456789012345678")


@pytest.mark.parametrize(
    ("value", "type_name", "text"),
    [
        ("a/b=c%d$e:f 🚰'\"", "string", "a/b=c%d$e:f 🚰'\""),
        ("", "string", None),
        (None, "long", None),
        (-(2**63), "long", "-9223372036854775808"),
        (-128, "byte", "-128"),
        (True, "boolean", "true"),
        (0.1, "float", "0.1"),
        (1e300, "double", "1e+300"),
        (-0.0, "double", "-0.0"),
        (-inf, "double", "-Infinity"),
        (Decimal("-0.5"), "decimal(38,10)", "-0.5000000000"),
        (_BIG, "decimal(38,0)", str(_BIG)),
        (date(1969, 12, 31), "date", "1969-12-31"),
        (-719162, "date", "0001-01-01"),
        (date(9999, 12, 31), "date", "9999-12-31"),
        (_EARLY, "timestamp", "1965-01-02T03:04:05.123456Z"),
        (0, "timestamp", "1970-01-01T00:00:00.000000Z"),
        (_EARLY.replace(tzinfo=None), "timestamp_ntz", "1965-01-02 03:04:05.123456"),
        (0, "timestamp_ntz", "1970-01-01 00:00:00"),
        ("é\x01".encode(), "binary", "é\x01"),
        (b"\xff\x01A", "binary", "\\u00FF\\u0001\\u0041"),
        (b"\\u00FF", "binary", "\\u005C\\u0075\\u0030\\u0030\\u0046\\u0046"),
    ],
)
def test_texts_of_values(value: Any, type_name: str, text: str | None) -> None:
    assert to_text(value, type_name) == text
    read = from_text(text, type_name)
    if isinstance(value, date | float):
        assert to_text(read, type_name) == text
    else:
        assert read == (None if value == "" else value)


@pytest.mark.parametrize(
    ("text", "type_name", "value"),
    [
        ("", "long", None),
        ("1970-01-01 00:00:00.000001", "timestamp", 1),
        ("1970-01-01 00:00:01", "timestamp", 1_000_000),
        ("1970-01-01T00:00:00.001Z", "timestamp", 1000),
        ("1E-10", "decimal(38,10)", Decimal("1E-10")),
        ("Infinity", "double", inf),
        ("1.0E10", "double", 1e10),
        ("3", "float", 3.0),
    ],
)
def test_texts_of_other_writers(text: str, type_name: str, value: Any) -> None:
    assert from_text(text, type_name) == value


def test_nan() -> None:
    assert to_text(nan, "double") == "NaN"
    assert isnan(from_text("NaN", "double"))


@pytest.mark.parametrize(
    ("text", "type_name"),
    [
        ("x", "long"),
        ("300", "byte"),
        ("1E+999999999", "decimal(5,2)"),
        ("1.234", "decimal(5,2)"),
        ("2026-02-30", "date"),
    ],
)
def test_what_is_no_value(text: str, type_name: str) -> None:
    with pytest.raises(InvalidError, match="no " + type_name.split("(")[0]):
        from_text(text, type_name)


@pytest.mark.parametrize(
    ("value", "type_name"),
    [(Decimal("1.234"), "decimal(5,2)"), (Decimal(1000), "decimal(5,2)"), (2932897, "date")],
)
def test_what_has_no_text(value: Any, type_name: str) -> None:
    with pytest.raises(InvalidError):
        to_text(value, type_name)


def test_a_local_time_is_no_instant_and_arrays_are_no_values() -> None:
    with pytest.raises(InvalidError, match="astimezone"):
        to_text(datetime(2026, 1, 1), "timestamp")
    with pytest.raises(UnsupportedError, match="variant"):
        to_text(1, "variant")


@pytest.mark.parametrize(
    ("type_name", "array"),
    [
        ("string", pa.array(["a", "", None, "🚰"])),
        ("string", pa.array(["a", "", None, "a"]).dictionary_encode()),
        ("string", pa.array(["a", "", None], pa.large_string())),
        ("short", pa.array([1, None, -1], pa.int16())),
        ("boolean", pa.array([True, None, False])),
        ("float", pa.array([0.1, None, nan, 0.0, -0.0, inf], pa.float32())),
        ("double", pa.array([0.1, None, nan, 0.0, -0.0, -inf])),
        ("decimal(38,3)", pa.array([Decimal("-0.005"), None, _BIG / 1000], pa.decimal128(38, 3))),
        ("date", pa.array([date(1, 1, 1), None, date(9999, 12, 31)])),
        ("timestamp", pa.array([_EARLY, None, _EARLY], pa.timestamp("us", "Europe/Berlin"))),
        ("timestamp_ntz", pa.array([_EARLY.replace(tzinfo=None), None], pa.timestamp("us"))),
        ("binary", pa.array([b"a", b"", None])),
        ("long", pa.array([], pa.int64())),
    ],
)
def test_texts_of_arrays(type_name: str, array: pa.Array) -> None:
    found = array_texts(array, type_name)
    assert found.type == pa.string()
    values = [value.astimezone(UTC) if type_name == "timestamp" and value else value for value in array.to_pylist()]
    assert found.to_pylist() == [to_text(value, type_name) for value in values]


_VALUES = st.one_of(
    st.tuples(st.just("string"), st.text(min_size=1)),
    st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("date"), st.integers(*_DAYS)),
    st.tuples(st.sampled_from(["timestamp", "timestamp_ntz"]), st.integers(*_MICROS)),
    st.tuples(st.just("decimal(38,10)"), st.decimals(-(10**27), 10**27, places=10)),
    st.tuples(st.just("binary"), st.binary(min_size=1)),
)


@given(_VALUES)
def test_values_come_back(typed: tuple[str, Any]) -> None:
    type_name, value = typed
    assert from_text(to_text(value, type_name), type_name) == value


def test_bytes_as_deltalake_escapes_them(tmp_path: Path) -> None:
    values = [b"ab", b"\xff\x00", "é".encode()]
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "p": pa.array(values)}), partition_by=["p"])
    files = TableLog(str(tmp_path)).snapshot().files.values()
    assert {from_text(file.partition_values["p"], "binary") for file in files} == set(values)
