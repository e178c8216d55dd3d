from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from penstock.delta.reading.partition_column_checks import Finding, Report, check_file

_TYPES = {
    pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long", pa.bool_(): "boolean",
    pa.float32(): "float", pa.float64(): "double", pa.date32(): "date", pa.binary(): "binary",
}  # fmt: skip
LONG = "straße/=%$'\"🌊 " * 20


def _texts(array: pa.Array, _: str) -> pa.StringArray:
    return pc.cast(array, pa.string())


def _no_rows_needed(array: pa.Array, column: str) -> pa.StringArray:
    assert len(array) <= 3, "the footer tells it"
    return _texts(array, column)


def _write(path: Path, columns: dict[str, Any], **options: Any) -> str:
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def _kinds(findings: Sequence[Finding]) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.column) for finding in findings]


def _check(path: str, value: str | None, type_name: str | None = None) -> list[tuple[str, str | None]]:
    """What is found, where the column has a type, or the one that the file has."""
    types = {"p": type_name or _type_of(path, "p")}
    return _kinds(check_file(path, ["id"], types, {"p": value}, _texts))


def _type_of(path: str, column: str) -> str:
    try:
        found = pq.read_schema(path).field(column).type
    except (OSError, pa.ArrowException, KeyError):
        return "string"
    if pa.types.is_decimal(found):
        return f"decimal({found.precision},{found.scale})"
    if pa.types.is_timestamp(found):
        return "timestamp" if found.tz or found.unit == "ns" else "timestamp_ntz"  # ns are those of twelve bytes
    return _TYPES.get(found, "string")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "part-0.parquet"


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize(
    ("value", "text", "type_"),
    [
        ("EU", "EU", pa.string()),
        (LONG, LONG, pa.string()),
        (LONG * 50, LONG * 50, pa.large_string()),
        ("EU", "EU", pa.dictionary(pa.int32(), pa.string())),
        (None, None, pa.string()),
        (None, None, pa.int32()),
        (-7, "-7", pa.int8()),
        (True, "true", pa.bool_()),
        (-0.0, "-0", pa.float64()),
        (float("nan"), "nan", pa.float32()),
        (Decimal("-" + "9" * 38), "-" + "9" * 38, pa.decimal128(38, 0)),
        (Decimal("1.50"), "1.50", pa.decimal128(9, 2)),
        (date(1, 1, 1), "0001-01-01", pa.date32()),
        (date(9999, 12, 31), "9999-12-31", pa.date32()),
        (datetime(1969, 12, 31, 23, 59, 59, 1, UTC), "1969-12-31 23:59:59.000001Z", pa.timestamp("us", "UTC")),
        (b"bytes", "bytes", pa.binary()),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_file_as_it_should_be(
    value: Any, text: str | None, type_: pa.DataType, dictionary: bool, statistics: bool, file: Path
) -> None:
    columns = {"id": [1, 2, 3], "p": pa.array([value] * 3, type_)}
    _write(file, columns, use_dictionary=dictionary, write_statistics=statistics, row_group_size=2)
    assert _check(str(file), text) == []
    assert _check(str(file), "other") == [("differs", "p")]


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["EU", "EU", "US"], pa.string()),
        (["EU", "EU", None], pa.string()),
        (["", "", None], pa.string()),
        ([LONG + "a", LONG + "b", LONG + "c"], pa.string()),
        ([None, None, 0], pa.int64()),
        ([1.0, 1.0, float("nan")], pa.float64()),
        ([0.0, 0.0, -0.0], pa.float64()),
        ([False, True, True], pa.bool_()),
    ],
)
@pytest.mark.parametrize("group", [3, 2])
def test_two_values(values: list[Any], type_: pa.DataType, group: int, statistics: bool, file: Path) -> None:
    columns = {"id": [1, 2, 3], "p": pa.array(values, type_)}
    _write(file, columns, row_group_size=group, write_statistics=statistics)
    for expected in ("EU", "", None):
        assert _check(str(file), expected) == [("not constant", "p")]


def test_the_footer_is_enough_where_it_is_exact(file: Path) -> None:
    rows = 10_000
    days = pa.array([date(2026, 1, 1)] * rows)
    _write(
        file, {"id": range(rows), "p": ["EU"] * rows, "q": range(rows), "day": days, "none": pa.nulls(rows, pa.int32())}
    )
    expected = {"p": "EU", "q": "0", "day": "2026-01-01", "none": None}
    found = check_file(
        str(file), ["id"], {"p": "string", "q": "long", "day": "date", "none": "integer"}, expected, _no_rows_needed
    )
    assert _kinds(found) == [("not constant", "q")]
    assert found[0].message == "partition column q holds '0' and '9999'"


def test_a_cut_bound_is_not_taken_for_the_value(file: Path) -> None:
    write_deltalake(str(file), pa.table({"id": [1, 2], "p": ["x" * 100] * 2}))  # cuts at 64 bytes
    (data,) = file.glob("*.parquet")
    statistics = pq.read_metadata(data).row_group(0).column(1).statistics
    assert statistics.max != "x" * 100
    assert _check(str(data), "x" * 100) == []
    assert _check(str(data), "x" * 64) == [("differs", "p")]


def test_timestamps_of_twelve_bytes_keep_their_range(file: Path) -> None:
    for year in (1, 9999):
        moments = pa.array([datetime(year, 1, 2, 3, 4, 5, 6)] * 2, pa.timestamp("us"))
        _write(file, {"id": [1, 2], "p": moments}, use_deprecated_int96_timestamps=True)
        assert _check(str(file), f"{year:04}-01-02 03:04:05.000006") == []


def test_null_and_the_empty_text(file: Path) -> None:
    _write(file, {"id": [1, 2], "p": pa.nulls(2, pa.string())})
    assert _check(str(file), None) == _check(str(file), "") == []
    assert _check(str(file), "NULL") == [("differs", "p")]
    _write(file, {"id": [1, 2], "p": ["", ""]})
    (found,) = check_file(str(file), ["id"], {"p": "string"}, {"p": ""}, _texts)
    assert found == Finding(str(file), "differs", "p", "partition column p holds '' where the log says NULL")


def test_places(file: Path) -> None:
    nested = [{"p": 1, "deep": [{"q": "x"}]}]
    values = {"id": [1], "nested": nested, "p": ["EU"], "q": [1], "old": [0]}
    expected = {"p": "EU", "q": "1"}

    def check(*names: str) -> list[tuple[str, str | None]]:
        _write(file, {name: values[name] for name in names})
        return _kinds(
            check_file(str(file), ["id", "nested", "added later"], {"p": "string", "q": "long"}, expected, _texts)
        )

    assert check("id", "nested", "p", "q") == []
    assert check("nested", "id", "q", "p") == []
    assert check("id", "nested", "p", "q", "old") == []  # a column since dropped is not one of the table's
    assert check("id", "p", "nested", "q") == [("not last", "p")]
    assert check("q", "p", "id", "nested") == [("not last", "p"), ("not last", "q")]
    assert check("id", "nested") == [("missing", "p"), ("missing", "q")]  # fields of `nested` do not count
    assert check("p", "id", "nested") == [("not last", "p"), ("missing", "q")]
    assert check("p") == [("missing", "q")]


def test_a_name_with_a_dot_is_not_a_path(file: Path) -> None:
    _write(file, {"a": pa.array([{"b": 1}, {"b": 2}]), "a.b": ["EU"] * 2, "p": [LONG] * 2})
    assert (
        _kinds(check_file(str(file), ["a"], {"a.b": "string", "p": "string"}, {"a.b": "EU", "p": LONG}, _texts)) == []
    )


@pytest.mark.parametrize("groups", [0, 1])
def test_no_rows(groups: int, file: Path) -> None:
    table = pa.table({"id": pa.array([], pa.int64()), "p": pa.array([], pa.string())})
    with pq.ParquetWriter(file, table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    assert _check(str(file), "EU") == []


def test_files_that_cannot_be_read(file: Path) -> None:
    assert _check(str(file), "EU") == [("unreadable", None)]  # none there
    for content in (b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1"):
        file.write_bytes(content)
        assert _check(str(file), "EU") == [("unreadable", None)]
    _write(file, {"id": [1], "p": [LONG]}, use_dictionary=False, compression="zstd")
    chunk = pq.read_metadata(file).row_group(0).column(1)
    content = bytearray(file.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size] = (
        b"\xff" * chunk.total_compressed_size
    )
    file.write_bytes(content)
    assert _check(str(file), LONG) == [("unreadable", "p")]


def test_columns_that_cannot_be_compared(file: Path) -> None:
    _write(file, {"id": [1], "p": pa.array([{"x": 1}])})
    assert _check(str(file), "1") == [("unreadable", "p")]
    pq.write_table(pa.table([pa.array([1]), pa.array(["EU"]), pa.array(["US"])], names=["id", "p", "p"]), file)
    assert _check(str(file), "EU") == [("unreadable", "p")]


def test_the_report_reads_well(file: Path) -> None:
    assert str(Report(1, ())) == "1 file checked, nothing found"
    assert Report(0, ()).ok
    _write(file, {"id": [1], "p": [LONG]})
    findings = check_file(str(file), ["id"], {"p": "string", "q": "string"}, {"p": "EU", "q": "1"}, _texts)
    report = Report(9, tuple(findings * 4))
    assert not report.ok
    lines = str(report).splitlines()
    assert lines[0] == "9 files checked, found: 4 missing, 4 differs"
    assert lines[1] == f"  {file}: partition column q is not in the file"
    assert lines[-1] == "  and 3 more"
    assert max(map(len, lines)) < len(str(file)) + 150


@pytest.mark.parametrize(
    ("values", "type_name", "text"),
    [
        (["1"], "integer", "1"),
        (["2026-01-01"], "date", "2026-01-01"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "timestamp", "2026-01-01 00:00:00.000000"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("us", "UTC")), "timestamp_ntz", "2026-01-01 00:00:00.000000Z"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("ns", "UTC")), "timestamp", "2026-01-01 00:00:00.000000000Z"),
        (pa.array([1], pa.int32()), "long", "1"),
        (pa.array([1], pa.int64()), "integer", "1"),
        (pa.array([1], pa.uint32()), "integer", "1"),
        (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), "decimal(10,2)", "1.50"),
        ([1.5], "float", "1.5"),
        ([b"EU"], "string", "EU"),
        (["EU"], "binary", "EU"),
        ([1], "boolean", "1"),
    ],
)
def test_another_type_than_the_tables(values: Any, type_name: str, text: str, file: Path) -> None:
    _write(file, {"id": [1], "p": values})
    assert _check(str(file), text, type_name) == [("wrong type", "p")]


def test_types_that_say_the_same(file: Path) -> None:
    for values, type_name in (
        (pa.array([1], pa.int32()), "byte"),
        (pa.array([datetime(2026, 1, 1)], pa.timestamp("ms", "UTC")), "timestamp"),
    ):
        _write(file, {"id": [1], "p": values})
        assert ("wrong type", "p") not in _check(str(file), "1", type_name)
