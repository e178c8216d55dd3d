"""Copies of data files with their partition columns: all other columns stay what they were, to every reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock.delta
from penstock.delta.format.actions import AddFile
from penstock.delta.format.file_paths import log_path
from penstock.delta.format.partition_values import array_texts
from penstock.delta.reading.partition_column_checks import check_file
from penstock.delta.writing import file_copies
from penstock.delta.writing.file_copies import copy_with_columns
from support.delta_judges import by_deltalake, by_duckdb, data_files, in_order

_MOMENTS = [dt.datetime(1500, 1, 2, 3, 4, 5, 6), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None]
_MILLIS = [dt.datetime(1969, 1, 1, 0, 0, 0, 1000), None, None]
_NANOS = pa.array([-1, None, 1], pa.timestamp("ns"))
MORE = "transform(more, moment -> unix_micros(moment))"
_FLOATS = [float("nan"), -0.0, None]
_ADDED = pa.schema([("p", pa.string())])


def _constant(item: pa.Field, rows: int) -> pa.Array:
    return pa.array(["EU"] * rows, item.type)


def _copied(tmp_path: Path, table: pa.Table, added: pa.Schema = _ADDED, **options: Any) -> tuple[Path, Path]:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(table, source, **options)
    copy_with_columns(str(source), str(target), added, _constant)
    return source, target


def _types(path: Path) -> list[tuple[object, ...]]:
    return [(one.path, one.physical_type, str(one.logical_type)) for one in pq.read_metadata(path).schema]


def test_timestamps_of_twelve_bytes_stay(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        rows = spark.sql(
            "SELECT * FROM VALUES"
            " (1, timestamp'1500-01-02 03:04:05.000006', array(timestamp'9999-12-31 23:59:59'), 'EU'),"
            " (2, timestamp'9999-12-31 23:59:59.999999', array(null, timestamp'0001-01-01 00:00:00'), 'EU'),"
            " (3, null, null, 'EU') AS t(id, ts, more, region)"
        ).coalesce(1)
        rows.write.partitionBy("region").parquet(str(path))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    table = penstock.delta.create(
        str(path), "id INT, ts TIMESTAMP, more ARRAY<TIMESTAMP>, region STRING", partitioned_by=["region"], spark=spark
    )
    [old] = data_files(path)
    add = AddFile(log_path(old), {"region": "EU"}, (path / old).stat().st_size, 0, True)
    (path / "_delta_log" / f"{1:020}.json").write_text(add.to_json())
    expected = in_order(rows.selectExpr("id", "unix_micros(ts)", MORE, "region").collect())
    judged = in_order(by_duckdb(path, "id, epoch_us(ts), region"))
    table.enable_materialized_partition_columns()
    table.backfill()
    assert table.verify().ok
    [new] = data_files(path) - {old}
    assert _types(path / new)[:-1] == _types(path / old)
    kept = pq.read_metadata(path / old).metadata
    copied = pq.read_metadata(path / new).metadata
    assert copied[b"org.apache.spark.version"] == kept[b"org.apache.spark.version"]  # tells Spark the calendar
    found = table.read().selectExpr("id", "unix_micros(ts)", MORE, "region").collect()
    assert in_order(found) == expected
    plain = spark.read.parquet(str(path / new)).selectExpr("id", "unix_micros(ts)", MORE, "region")
    assert in_order(plain.collect()) == expected
    assert in_order(by_duckdb(path, "id, epoch_us(ts), region")) == judged
    assert len(by_deltalake(path, "id")) == 3


def test_every_type_stays(tmp_path: Path) -> None:
    columns = {
        "local": pa.array(_MOMENTS, pa.timestamp("us")),
        "instant": pa.array(_MOMENTS, pa.timestamp("us", "UTC")),
        "millis": pa.array(_MILLIS, pa.timestamp("ms")),
        "nanos": _NANOS,
        "small": pa.array([1, None, -1], pa.int8()),
        "unsigned": pa.array([1, None, 2**32 - 1], pa.uint32()),
        "real": pa.array(_FLOATS, pa.float32()),
        "dec": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal("9" * 38), None, Decimal(1)], pa.decimal128(38, 0)),
        "flag": pa.array([True, None, False]),
        "word": pa.array(["a", None, "a"]).dictionary_encode(),
        "bytes": pa.array([b"\xff", None, b""]),
        "maps": pa.array([[("k", [1, None])], None, []], pa.map_(pa.string(), pa.list_(pa.int16()))),
        "structs": pa.array([{"a": 1.5, "p": "x"}, None, {"a": None, "p": None}]),
    }
    table = pa.table(columns)
    source, target = _copied(tmp_path, table.append_column("p", pa.array(["wrong"] * 3)), row_group_size=2)
    assert _types(target) == _types(source)
    old, new = pq.read_table(source), pq.read_table(target)
    assert new.column("p").to_pylist() == ["EU"] * 3
    assert in_order(new.drop("p").to_pylist()) == in_order(old.drop("p").to_pylist())
    source, target = _copied(tmp_path, table, store_decimal_as_integer=True)
    assert _types(target)[:-1] == _types(source)


def test_twelve_bytes_beside_eight_become_instants(tmp_path: Path) -> None:
    added = pa.schema([("p", pa.timestamp("us"))])
    nested = pa.array([[{"t": moment}] for moment in _MOMENTS], pa.list_(pa.struct([("t", pa.timestamp("us"))])))
    table = pa.table({"ts": pa.array(_MOMENTS, pa.timestamp("us")), "nested": nested, "n": [1, 2, 3]})
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(table, source, use_deprecated_int96_timestamps=True, store_schema=False)
    copy_with_columns(str(source), str(target), added, lambda item, rows: pa.nulls(rows, item.type))
    found = pq.read_table(target)
    utc = pa.timestamp("us", "UTC")
    assert found.schema.types == [utc, pa.list_(pa.struct([("t", utc)])), pa.int64(), pa.timestamp("us")]
    assert found.column("ts").cast(pa.int64()).to_pylist() == table.column("ts").cast(pa.int64()).to_pylist()


def test_a_copy_that_differs_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": [1, 2, 3]})
    groups = file_copies._groups

    def last_is_lost(file: pq.ParquetFile, names: list[str]) -> Any:
        for rows in groups(file, names):
            yield rows.slice(0, rows.num_rows - ("p" in file.schema_arrow.names))

    monkeypatch.setattr(file_copies, "_groups", last_is_lost)
    with pytest.raises(penstock.PenstockError, match=r"has not the values of its file, of 3 rows"):
        _copied(tmp_path, table)


def _digest(table: pa.Table) -> object:
    found = file_copies._RowDigest()
    found.add(table)
    return found.told


def test_the_checksum_is_of_values_and_not_of_pieces() -> None:
    words = pa.array(["a", None, "b", ""])
    lists = pa.array([[1], None, [], [None, 2]])
    maps = pa.array([[("k", 1)], None, [], [("k", None)]], pa.map_(pa.string(), pa.int64()))
    whole = pa.table({"w": words, "l": lists, "m": maps})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 2), whole.slice(3)])
    coded = pa.concat_tables([pa.table({"w": part["w"].dictionary_encode()}) for part in (whole[:2], whole[2:])])
    assert pieces.column("m").num_chunks == 3
    assert _digest(pieces) == _digest(whole)
    assert _digest(coded) == _digest(whole.select(["w"]))
    others = [
        {"w": pa.array(["a", "", "b", None])},
        {"l": pa.array([[1], [], None, [None, 2]])},
        {"l": pa.array([[1], None, [None], [2]])},
        {"m": pa.array([[("k", 1)], None, [], [("k", 0)]], maps.type)},
    ]
    for other in others:
        assert _digest(pa.table({**dict(zip(whole.column_names, whole.columns, strict=True)), **other})) != _digest(
            whole
        )


def test_a_file_of_partition_columns_alone(tmp_path: Path) -> None:
    _, target = _copied(tmp_path, pa.table({"p": ["US", "US"]}))
    assert pq.read_table(target).to_pydict() == {"p": ["EU", "EU"]}


def test_partition_timestamps_beside_those_of_twelve_bytes(tmp_path: Path) -> None:
    added = pa.schema([("p", pa.timestamp("us", "UTC"))])
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    moments = pa.array(_MOMENTS, pa.timestamp("us"))
    pq.write_table(pa.table({"ts": moments}), source, use_deprecated_int96_timestamps=True)
    copy_with_columns(str(source), str(target), added, lambda item, rows: moments.take([0] * rows).cast(item.type))
    text = "1500-01-02T03:04:05.000006Z"
    assert (
        check_file(
            str(target), ["ts"], {"p": "timestamp"}, {"p": text}, lambda array, _: array_texts(array, "timestamp")
        )
        == []
    )


def test_arrows_layouts_of_the_same_values(tmp_path: Path) -> None:
    """Files keep Arrow's own types beside Parquet's; copies have the latter only."""
    words, pairs = ["a", None, "", "é" * 40], [[1, None], None, [3, 4], [5, 6]]
    columns = {
        "large": pa.array(words, pa.large_string()),
        "view": pa.array(words, pa.string_view()),
        "bytes": pa.array([b"\xff", None, b"", b"x" * 40], pa.large_binary()),
        "bytes_view": pa.array([b"\xff", None, b"", b"x" * 40], pa.binary_view()),
        "coded": pa.array(words, pa.large_string()).dictionary_encode(),
        "pairs": pa.array(pairs, pa.list_(pa.int64(), 2)),
        "lists": pa.array(pairs, pa.large_list(pa.int64())),
        "nested": pa.array(
            [{"a": [["x", "y"]]}, {"a": None}, None, {"a": [None, ["", None]]}],
            pa.struct({"a": pa.large_list(pa.list_(pa.large_string(), 2))}),
        ),
    }
    table = pa.concat_tables([pa.table(columns)] * 2500)
    source, target = _copied(tmp_path, table.append_column("n", pa.array(range(10_000))))
    assert pq.read_schema(source).field("pairs").type == pa.list_(pa.int64(), 2)  # or this test tells nothing
    assert _types(target)[:-1] == _types(source)
    assert pq.read_table(target).drop("p").to_pylist() == pq.read_table(source).to_pylist()
    for name, other in (("large", ["a", "", None, "é" * 40]), ("pairs", [[1, None], [3, 4], None, [5, 6]])):
        column = pa.array(other, columns[name].type)
        assert _digest(pa.table({name: column})) != _digest(pa.table({name: columns[name]}))


def test_columns_with_dots_in_their_names(tmp_path: Path) -> None:
    nested = pa.array([{"b": 1, "c": [2]}, None])
    columns = {"a": nested, "a.b": pa.array(["x", "y"]), "a.b.c": pa.array([1.5, None])}
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(pa.table(columns), source)
    for name in ("a.b", "a.b.c", "a"):
        added = pa.schema([(name, pa.string())])
        copy_with_columns(str(source), str(target), added, _constant)
        found = pq.read_table(target)
        assert found.column_names == [*(other for other in columns if other != name), name]
        assert found.drop(name).to_pydict() == pa.table(columns).drop(name).to_pydict()
        assert found.column(name).to_pylist() == ["EU", "EU"]


@pytest.mark.parametrize(
    ("metadata", "kind", "value", "refused"),
    [
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.date32(), -141_428, True),
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.date32(), -141_427, False),
        ({"version": "2.4.8"}, pa.date32(), -141_428, True),
        ({"version": "3.0.0"}, pa.date32(), -141_428, False),
        ({}, pa.date32(), -141_428, False),
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.timestamp("us", "UTC"), -2_208_988_800_000_001, True),
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.timestamp("us", "UTC"), -2_208_988_800_000_000, False),
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.timestamp("us"), -2_208_988_800_000_001, False),
        ({"legacyINT96": "", "version": "3.5.0"}, pa.timestamp("us", "UTC"), -2_208_988_800_000_001, False),
        ({"legacyDateTime": "", "version": "3.5.0"}, pa.date32(), None, False),
    ],
)
def test_old_dates_do_not_come_into_files_of_the_old_calendar(
    tmp_path: Path, metadata: dict[str, str], kind: pa.DataType, value: int | None, refused: bool
) -> None:
    """Spark would take them for dates of that calendar and show others."""
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    told = {f"org.apache.spark.{key}": text for key, text in metadata.items()}
    pq.write_table(pa.table({"id": [1, 2]}).replace_schema_metadata(told), source)
    number = pa.int32() if pa.types.is_date(kind) else pa.int64()

    def constant(item: pa.Field, rows: int) -> pa.Array:
        return pa.array([value] * rows, number).view(item.type)

    added = pa.schema([("p", kind)])
    if refused:
        with pytest.raises(penstock.UnsupportedError, match="'p'"):
            copy_with_columns(str(source), str(target), added, constant)
        assert not target.exists()
    else:
        copy_with_columns(str(source), str(target), added, constant)
        assert pq.read_table(target).column("p").cast(number).to_pylist() == [value] * 2


@pytest.mark.parametrize(
    ("metadata", "refused"),
    [
        ({"legacyINT96": "", "version": "3.5.0"}, True),
        ({"legacyDateTime": "", "version": "3.5.0"}, True),
        ({"version": "3.0.1"}, True),
        ({"version": "3.5.0"}, False),
    ],
)
def test_twelve_bytes_of_the_old_calendar_do_not_become_instants(
    tmp_path: Path, metadata: dict[str, str], refused: bool
) -> None:
    """Spark would count the days of the copy by another calendar than those of the file."""
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    told = {f"org.apache.spark.{key}": text for key, text in metadata.items()}
    table = pa.table({"ts": pa.array(_MOMENTS, pa.timestamp("us"))}).replace_schema_metadata(told)
    pq.write_table(table, source, use_deprecated_int96_timestamps=True)
    added = pa.schema([("p", pa.timestamp("us"))])
    if refused:
        with pytest.raises(penstock.UnsupportedError, match="old calendar has timestamps in twelve bytes"):
            copy_with_columns(str(source), str(target), added, lambda item, rows: pa.nulls(rows, item.type))
        assert not target.exists()
    else:
        copy_with_columns(str(source), str(target), added, lambda item, rows: pa.nulls(rows, item.type))
        assert pq.read_table(target).num_rows == 3
