"""Arrow batches become data files: what is in them, where they lie, how large they are, what a failure leaves."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.ducklake.model.option_values import validate_option
from penstock.ducklake.model.options import OPTIONS
from penstock.ducklake.writing.file_options import file_options
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from penstock.storage.duckdb_files import connect_duckdb
from penstock.storage.filesystems import list_files, open_file
from penstock.storage.parquet import FileOptions, SortColumn, WritePlan, delete_written, write_files
from support.catalogs import Catalog
from support.lake_samples import NESTED, PRIMITIVES, Sample, create_table, insert_rows
from support.parquet_lakes import adopt, plan_for, shown_rows, write_all
from support.reference import METADATA, Reference, quote

BY_PYARROW = tuple(sample for sample in PRIMITIVES if sample.name not in ("timetz", "interval"))
VARIANT = Sample(
    "variant",
    "VARIANT",
    (
        "1", "'text'::VARIANT", "{'a': 1, 'b': {'c': [1, NULL, 3]}}::VARIANT", "DATE '2024-01-01'::VARIANT",
        "[]::VARIANT", "'nan'::FLOAT::VARIANT", "'\\x00'::BLOB::VARIANT",
    ),
)  # fmt: skip
GEOMETRY = Sample("geometry", "GEOMETRY", ("'POINT (1 2)'", "'POINT EMPTY'", "'LINESTRING Z (0 0 1, 1 1 2)'"))
SAMPLES = {
    "pyarrow": BY_PYARROW, "duckdb": PRIMITIVES, "nested": NESTED, "variant": (VARIANT,), "geometry": (GEOMETRY,)
}  # fmt: skip


def column(id: int, name: str, kind: str, *children: Column, **settings: Any) -> Column:
    return Column(id, name, parse_type(kind), 0, children=children, **settings)


NUMBER, TEXT = column(1, "n", "int64"), column(2, "t", "varchar")


def batches(*columns: pa.Array, rows: int = 1000) -> Iterator[pa.RecordBatch]:
    table = pa.table(list(columns), names=[f"c{i}" for i in range(len(columns))])
    yield from table.to_batches(max_chunksize=rows)


def parquet_files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*.parquet")}


# What is in a file


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_the_extension_reads_every_type(duckdb_catalog: Catalog, name: str, encrypted: bool) -> None:
    samples = SAMPLES[name]
    with duckdb_catalog.build(data_inlining_row_limit=0, encrypted=encrypted) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples), create_table("u", samples))
        plan = plan_for(reference, "u", f"{duckdb_catalog.data_path}main/u/", encrypted=encrypted)
        written = write_all(plan, shown_rows(reference, "t", nanoseconds=True))
    adopt(duckdb_catalog, "u", written)
    with duckdb_catalog.reference() as reference:
        texts = ", ".join(f"{sample.column}::VARCHAR" for sample in samples)
        for one, other in (("t", "u"), ("u", "t")):
            assert not reference.rows(f"SELECT {texts} FROM {one} EXCEPT ALL SELECT {texts} FROM {other}")
        assert reference.value("SELECT count(*) FROM u") == sum(file.record_count for file in written)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_has_the_layout_of_the_extensions_own(duckdb_catalog: Catalog, tmp_path: Path, name: str) -> None:
    samples = SAMPLES[name]
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(create_table("t", samples), insert_rows("t", samples))
        [written] = write_all(plan_for(reference, "t", f"{tmp_path}/out/"), shown_rows(reference, "t"))
        [theirs] = reference.rows(f"SELECT path FROM {METADATA}.ducklake_data_file")
        ours = _layout(reference, f"{tmp_path}/out/{written.path}")
        expected = _layout(reference, f"{duckdb_catalog.data_path}main/t/{theirs[0]}")
    assert len(ours) == len(expected)
    for mine, other in zip(ours, expected, strict=True):
        # Some types are said twice, in Parquet's old words and in its new ones: the new ones count.
        said = {name: value for name, value in other.items() if name != "converted_type" or "logical_type" not in other}
        assert {name: mine.get(name) for name in said} == said


def _layout(reference: Reference, path: str) -> list[dict[str, Any]]:
    """What each level of a file's schema says of itself."""
    rows = reference.records(
        "SELECT name, type, type_length, repetition_type, field_id, logical_type, converted_type, scale, precision"
        f" FROM parquet_schema({quote(path)}) OFFSET 1"
    )
    for row in rows:
        if row["type"] != "FIXED_LEN_BYTE_ARRAY":
            row["type_length"] = None
        if row["converted_type"] in ("INT_32", "INT_64"):
            row["converted_type"] = None
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_times_and_geometries_as_spark_hands_them_over(tmp_path: Path) -> None:
    """Times in nanoseconds, shapes beside their SRID."""
    times = pa.array([1000, 86_399_999_999_000, None], pa.time64("ns"))
    point = bytes.fromhex("0101000000000000000000F03F0000000000000040")
    shapes = pa.array([{"srid": 0, "wkb": point}, None, None], pa.struct([("srid", pa.int32()), ("wkb", pa.binary())]))
    lists = pa.array([[1000], None, []], pa.list_(pa.time64("ns")))
    columns = (
        column(1, "time", "time"),
        column(2, "shape", "geometry"),
        column(3, "zoned", "timetz"),
        column(4, "list", "list", column(5, "element", "timetz")),
    )
    for width in (2, 4):  # by PyArrow and by DuckDB
        plan = WritePlan(columns[:width], f"{tmp_path}/", FileOptions())
        [written] = write_files(plan, batches(*(times, shapes, times, lists)[:width]))
        sql = f"SELECT time::VARCHAR, shape::VARCHAR FROM {quote(f'{tmp_path}/{written.path}')}"
        rows = [("00:00:00.000001", "POINT (1 2)"), ("23:59:59.999999", None), (None, None)]
        assert connect_duckdb().execute(sql).fetchall() == rows


@pytest.mark.parametrize("kind", ["timestamp_s", "timestamp_ms"])
def test_timestamps_are_rounded_as_duckdb_casts_them(tmp_path: Path, kind: str) -> None:
    """The file holds what the partition of the row is named after: halves go away from 1970."""
    near = [0, 500_000, 1_499_999, 1_500_000, 500, 1_499, 1_500]
    values = [sign * number for number in near for sign in (1, -1)] + [2**63 - 1, 1 - 2**63]
    micros = pa.array(values).view(pa.timestamp("us"))
    [file] = write_files(WritePlan((column(1, "v", kind),), f"{tmp_path}/", FileOptions()), batches(micros))
    judge = connect_duckdb().register("given", pa.table({"v": micros}))
    expected = judge.sql(f"SELECT v::{kind}::VARCHAR FROM given").fetchall()
    location = quote(f"{tmp_path}/{file.path}")
    assert connect_duckdb().sql(f"SELECT v::{kind}::VARCHAR FROM read_parquet({location})").fetchall() == expected
    assert (file.columns[0].minimum, file.columns[0].maximum) == ("-infinity", "infinity")


def test_row_ids_are_written_beside_the_columns(tmp_path: Path) -> None:
    for encrypted in (False, True):
        plan = WritePlan((NUMBER,), f"{tmp_path}/", FileOptions(), row_ids=True, encrypted=encrypted)
        [written] = write_files(plan, batches(pa.array([7, 8]), pa.array([100, 5])))
        assert [item.column_id for item in written.columns] == [1]
        if not encrypted:
            file = pq.ParquetFile(tmp_path / written.path)
            assert file.read().to_pydict() == {"n": [7, 8], "_ducklake_internal_row_id": [100, 5]}
            assert "field_id=2147483540 _ducklake_internal_row_id" in str(file.schema)


def test_sizes_are_those_of_the_file(tmp_path: Path) -> None:
    for kind in ("int64", "interval"):
        rows = pa.array([1, None]) if kind == "int64" else pa.array([{"months": 1, "days": 0, "microseconds": 5}])
        [written] = write_files(WritePlan((column(1, "n", kind),), f"{tmp_path}/", FileOptions()), batches(rows))
        content = (tmp_path / written.path).read_bytes()
        assert written.size == len(content)
        assert written.footer_size == int.from_bytes(content[-8:-4], "little")


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw"])
def test_options_reach_the_file(tmp_path: Path, compression: str) -> None:
    stored = {
        "parquet_compression": compression, "parquet_compression_level": "9", "parquet_version": "V2",
        "parquet_row_group_size": "10", "target_file_size": "1000000", "hive_file_pattern": "false",
    }  # fmt: skip
    for encrypted in (False, True):
        options = file_options(stored.get)
        plan = WritePlan((NUMBER,), f"{tmp_path}/", options, partition_names=("p",), encrypted=encrypted)
        [written] = write_files(plan, batches(pa.array(range(25)), pa.array(["x"] * 25)))
        assert "/" not in written.path
        assert written.partition_values == ("x",)
        if not encrypted:
            metadata = pq.read_metadata(tmp_path / written.path)
            codec = {"lz4_raw": "LZ4"}.get(compression, compression.upper())
            assert metadata.row_group(0).column(0).compression == codec
            assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [10, 10, 5]


# Where files lie


def test_partition_directories_are_the_extensions(duckdb_catalog: Catalog, tmp_path: Path) -> None:
    values = [
        "a/b", "=", "%", "$", " ", "😀", "", "'", '"', "\n", "~.-_", "NULL", "__HIVE_DEFAULT_PARTITION__", "é", "A+b",
        "..", "a:b?c#d&e\\f", "\t", None,
    ]  # fmt: skip
    with duckdb_catalog.build(data_inlining_row_limit=0) as reference:
        rows = ", ".join(f"({'NULL' if value is None else quote(value)}, 1)" for value in values)
        reference.execute(
            'CREATE TABLE t ("we ird/=%é" VARCHAR, b INTEGER)',
            'ALTER TABLE t SET PARTITIONED BY ("we ird/=%é", b)',
            f"INSERT INTO t VALUES {rows}",
        )
        theirs = reference.rows(f"SELECT path FROM {METADATA}.ducklake_data_file")
        plan = plan_for(reference, "t", f"{tmp_path}/out/", partition_names=("we%20ird%2F%3D%25%C3%A9", "b"))
    ones = ["1"] * len(values)
    keys = batches(pa.array(values), pa.array([1] * len(values), pa.int32()), pa.array(values), pa.array(ones), rows=3)
    files = list(write_files(plan, keys))
    assert sorted(file.path.rpartition("/")[0] for file in files) == sorted(
        path.rpartition("/")[0] for (path,) in theirs
    )
    assert {file.partition_values for file in files} == {(value, "1") for value in values}
    assert parquet_files(tmp_path / "out") == {file.path for file in files}
    assert all(re.fullmatch(r".*/ducklake-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab].*", file.path) for file in files)


@pytest.mark.parametrize("kind", ["int64", "interval"])
def test_files_behind_a_uri(kind: str) -> None:
    """Percent signs of a directory's name are taken literally there too."""
    rows = pa.array([1]) if kind == "int64" else pa.array([{"months": 1, "days": 0, "microseconds": 5}])
    plan = WritePlan((column(1, "n", kind),), f"mock:///{kind}/", FileOptions(), partition_names=("p",))
    [written] = write_files(plan, batches(rows, pa.array(["a/b"])))
    with open_file(f"mock:///{kind}/{written.path}") as file:
        assert file.size() == written.size
    assert written.path.startswith("p=a%2Fb/")


# How large files are


def test_files_roll_at_the_target_size(tmp_path: Path) -> None:
    options = FileOptions("uncompressed", row_group_size=1000, target_file_size=20_000)
    plan = WritePlan((TEXT,), f"{tmp_path}/", options)
    texts = pa.array([f"text {number:08d}" for number in range(10_000)])
    files = list(write_files(plan, batches(texts, rows=700)))
    assert sum(file.record_count for file in files) == 10_000
    assert len(files) > 3
    assert all(20_000 <= file.size < 50_000 for file in files[:-1])
    read = [value for file in files for value in pq.read_table(tmp_path / file.path)["t"].to_pylist()]
    assert read == texts.to_pylist()


def test_row_groups_by_bytes(tmp_path: Path) -> None:
    for sort in ((), (SortColumn(0),)):
        options = FileOptions(row_group_bytes=8_000)
        [written] = write_files(
            WritePlan((NUMBER,), f"{tmp_path}/", options, sort=sort), batches(pa.array(range(5000)))
        )
        metadata = pq.read_metadata(tmp_path / written.path)
        assert all(metadata.row_group(i).num_rows <= 1500 for i in range(metadata.num_row_groups))


@pytest.mark.parametrize("sort", [(), (SortColumn(0, descending=True),)], ids=["unsorted", "sorted"])
def test_many_partitions_take_little_memory_and_few_files(tmp_path: Path, sort: tuple[SortColumn, ...]) -> None:
    """Every batch has rows of every partition, of which there are more than files may be open."""
    partitions, limit = 400, 2_000_000
    peak = 0

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal peak
        for start in range(0, 40_000, 2000):
            numbers = pa.array(range(start, start + 2000))
            texts = pa.array([f"{number} " * 20 for number in range(start, start + 2000)])
            keys = pa.array([str(number % partitions) for number in range(start, start + 2000)])
            yield from batches(numbers, texts, keys, rows=2000)
            peak = max(peak, pa.total_allocated_bytes() - before)

    before = pa.total_allocated_bytes()
    plan = WritePlan((NUMBER, TEXT), f"{tmp_path}/", FileOptions(), partition_names=("p",), sort=sort)
    files = list(write_files(plan, rows(), memory_limit=limit))
    assert peak < 2 * limit
    assert len(files) == partitions
    assert {file.record_count for file in files} == {100}
    for file in files[:3]:
        numbers = pq.read_table(tmp_path / file.path, partitioning=None)["n"].to_pylist()
        first = int(str(file.partition_values[0]))
        assert sorted(numbers) == list(range(first, 40_000, partitions))
        assert numbers == sorted(numbers, reverse=bool(sort))


def test_an_encrypted_table_leaves_nothing_on_the_disk_but_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    keys = [str(number % 10) for number in range(5000)]
    plan = WritePlan((NUMBER,), f"{tmp_path}/out/", FileOptions(), partition_names=("p",), encrypted=True)
    files = list(write_files(plan, batches(pa.array(range(5000)), pa.array(keys)), memory_limit=50_000))
    assert sum(file.record_count for file in files) == 5000
    assert len({file.encryption_key for file in files}) == len(files)


# Order


def test_rows_are_sorted_as_duckdb_sorts(tmp_path: Path) -> None:
    doubles = pa.array([1.0, None, float("nan"), -0.5, float("inf"), None, float("nan"), 2.0])
    texts = pa.array(["b", "a", None, "ä", "", "B", "a", "a"])
    extra = pa.array(range(8, 0, -1))
    columns = (column(1, "d", "float64"), TEXT)
    connection = connect_duckdb()
    connection.register("rows", pa.table({"d": doubles, "t": texts, "e": extra}))
    for sort, sql in (
        ((SortColumn(0), SortColumn(2)), "d ASC NULLS LAST, e"),
        ((SortColumn(0, True, True), SortColumn(2)), "d DESC NULLS FIRST, e"),
        ((SortColumn(1, False, True), SortColumn(2, True)), "t ASC NULLS FIRST, e DESC"),
        ((SortColumn(2),), "e"),
    ):
        plan = WritePlan(columns, f"{tmp_path}/", FileOptions(), sort=sort, extra_columns=1)
        [written] = write_files(plan, batches(doubles, texts, extra, rows=3))
        table = pq.read_table(tmp_path / written.path)
        assert table.column_names == ["d", "t"]
        expected = connection.execute(f"SELECT d, t FROM rows ORDER BY {sql}").fetchall()
        assert repr(list(zip(table["d"].to_pylist(), table["t"].to_pylist(), strict=True))) == repr(expected)


def test_nested_columns_cannot_be_sorted_by(tmp_path: Path) -> None:
    nested = column(1, "l", "list", column(2, "element", "int64"))
    plan = WritePlan((nested,), f"{tmp_path}/", FileOptions(), sort=(SortColumn(0),))
    with pytest.raises(InvalidError, match="sorted"):
        list(write_files(plan, batches(pa.array([[1], [0]]))))


# What goes wrong


def _days(*values: int) -> pa.Array:
    return pa.array([{"months": 0, "days": value, "microseconds": 0} for value in values])


MISFITS: dict[str, tuple[Column, pa.Array, str]] = {
    "uint8": (column(1, "c", "uint8"), pa.array([1, -1], pa.int16()), r"'c' is uint8: -1 "),
    "uint64": (column(1, "c", "uint64"), pa.array([Decimal(2**64)], pa.decimal128(20, 0)), "18446744073709551616"),
    "uuid": (column(1, "c", "uuid"), pa.array([None, "abc"]), "'c' is uuid: 'abc'"),
    "json": (column(1, "c", "json"), pa.array(["{}", "{1"]), "'c' is json: '{1'"),
    "int128": (column(1, "c", "int128"), pa.array([1.0, float("nan")]), "'c' is int128: nan"),
    "timestamp_ns": (column(1, "c", "timestamp_ns"), pa.array([2**61], pa.timestamp("us")), "'c' is timestamp_ns: "),
    "decimal": (
        column(1, "c", "decimal(4,2)"),
        pa.array([Decimal(12345)], pa.decimal128(20, 0)),
        "'c' is decimal.*12345",
    ),
    "interval": (column(1, "c", "interval"), _days(1, -3), "'c' is interval: .*-3.*negative"),
    "nested": (
        column(1, "c", "list", column(2, "element", "struct", column(3, "u", "uint8"))),
        pa.array([[{"u": 1}, None], None, [{"u": 300}]], pa.list_(pa.struct([("u", pa.int16())]))),
        r"'c.*300",
    ),
    "not null": (column(1, "c", "int64", nulls_allowed=False), pa.array([1, None, 2]), "'c' is NOT NULL.*1 of 3"),
}


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_value_that_does_not_fit_names_its_column(tmp_path: Path, name: str, encrypted: bool) -> None:
    misfit, values, message = MISFITS[name]
    plan = WritePlan((misfit,), f"{tmp_path}/", FileOptions(), encrypted=encrypted)
    with pytest.raises(InvalidError, match=message) as raised:
        list(write_files(plan, batches(values)))
    assert not re.search(r"[A-Za-z0-9+/]{22}==", str(raised.value)), "a key in the message"
    assert not parquet_files(tmp_path)


def test_a_variant_inside_a_struct_is_refused_before_any_work(tmp_path: Path) -> None:
    nested = column(1, "s", "struct", column(2, "v", "variant"))
    with pytest.raises(UnsupportedError, match="'s' has a variant"):
        next(write_files(WritePlan((nested,), f"{tmp_path}/out/", FileOptions()), iter(())))
    assert not (tmp_path / "out").exists()


def _rows_then(fail: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for start in range(0, 3000, 1000):
        yield from batches(pa.array(range(start, start + 1000)), pa.array(["x", "y"] * 500))
    fail()


def _fail() -> None:
    raise RuntimeError("the source is gone")


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    options = FileOptions(row_group_size=400, target_file_size=1000)
    plan = WritePlan((NUMBER,), f"{tmp_path}/", options, partition_names=("p",))
    yielded = []
    with pytest.raises(RuntimeError, match="the source is gone"):
        yielded.extend(write_files(plan, _rows_then(_fail)))
    assert not parquet_files(tmp_path)


def test_an_iterator_that_is_closed_leaves_what_it_gave(tmp_path: Path) -> None:
    options = FileOptions(row_group_size=400, target_file_size=1000)
    files = write_files(WritePlan((NUMBER,), f"{tmp_path}/", options, partition_names=("p",)), _rows_then(_fail))
    first, second = next(files), next(files)
    files.close()  # type: ignore[attr-defined]
    assert parquet_files(tmp_path) == {first.path, second.path}


@pytest.mark.parametrize("root", ["", "mock:///lake"], ids=["local", "behind a URI"])
def test_the_files_of_one_write_can_be_deleted(tmp_path: Path, root: str) -> None:
    """Also in directories with percent signs, and not those of another write."""
    directory = f"{root}{tmp_path}/t/"
    plans = [WritePlan((NUMBER,), directory, FileOptions(), partition_names=("p",)) for _ in range(2)]
    first, second = (list(write_files(plan, batches(pa.array([1, 2]), pa.array(["a/b", "c"])))) for plan in plans)
    assert set(list_files(directory)) == {directory + file.path for file in (*first, *second)}
    delete_written(plans[0].directory, plans[0].write_id)
    assert set(list_files(directory)) == {directory + file.path for file in second}
    assert not list(list_files(f"{root}{tmp_path}/nothing/"))


def test_no_rows_no_file(tmp_path: Path) -> None:
    assert not write_all(WritePlan((NUMBER,), f"{tmp_path}/", FileOptions()), pa.table({"n": pa.array([], pa.int64())}))
    assert not parquet_files(tmp_path)


def test_plans_go_to_workers() -> None:
    plan = WritePlan((NUMBER,), "/lake/t/", FileOptions(), ("p",), (SortColumn(1),), 1, True, True)
    assert pickle.loads(pickle.dumps(plan)) == plan


# Options


def test_options_are_stored_as_the_extension_stores_them(duckdb_catalog: Catalog) -> None:
    texts = [
        "10MB", "10 MB", "1GiB", "10kb", "1.5MB", "none", "-1", "123", "1", "2", "true", "FALSE", "yes", "0.5", "abc",
        "7 days", "1 month 2 weeks", "zstd", "LZ4_RAW", "gzip9", "3", "1e3", "99999999999999999999",
    ]  # fmt: skip
    ours_only = {  # where the extension takes or refuses what makes no sense
        "hive_file_pattern", "require_commit_message", "data_inlining_row_limit", "parquet_compression_level",
        "parquet_row_group_size", "parquet_version",
    }  # fmt: skip
    refused_here = {("delete_older_than", "-1"), ("expire_older_than", "-1")}  # the ages of what is yet to come
    with duckdb_catalog.build() as reference:
        for name in sorted({*OPTIONS, "no_such_option"}):
            for text in texts:
                theirs = _set(reference, name, text)
                ours = _validated(name, text)
                if (name, text) in refused_here:
                    assert (ours, theirs) == (None, "-1"), name
                elif name not in ours_only or (ours and theirs):
                    assert ours == theirs, (name, text)


def _set(reference: Reference, name: str, text: str) -> str | None:
    try:
        reference.set_option(name, text)
    except Exception:
        return None
    stored: str = reference.value(f"SELECT value FROM {METADATA}.ducklake_metadata WHERE key = {quote(name)}")
    return stored


def _validated(name: str, text: str) -> str | None:
    try:
        return validate_option(name, text)
    except InvalidError:
        return None


def test_options_are_read_as_they_are_stored() -> None:
    assert file_options({}.get) == FileOptions()
    stored = {"target_file_size": "10485760", "parquet_compression": "zstd", "parquet_row_group_size_bytes": "5MB"}
    options = file_options(stored.get)
    assert (options.target_file_size, options.compression_level, options.row_group_bytes) == (10485760, 3, 5_000_000)
    with pytest.raises(InvalidError, match="parquet_compression_level"):
        file_options({"parquet_compression": "zstd", "parquet_compression_level": "99"}.get)
