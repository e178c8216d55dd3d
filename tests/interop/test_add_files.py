"""Files made by others and linked by `Table.add_files`, read by the extension and by Penstock."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.files.name_matching import ForeignFile, MatchingRules, match_file
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_same_tables, query
from support.dumps import rows
from support.reference import METADATA, quote
from support.writing import attached, leaving_nothing

_COLUMNS = """id BIGINT, name STRING, day DATE, amount DECIMAL(38,5), f DOUBLE, s STRUCT<a: INT, b: STRING>,
              l ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, DECIMAL(38,0)>, moment TIMESTAMP_NTZ, seen TIMESTAMP,
              raw BINARY, ok BOOLEAN"""
_HOSTILE = ["", 'it\'s "quoted"', "a/b=c %20 $x", "💧", None]


def _rows() -> pa.Table:
    """Other names' case and order, narrower types, and values that hurt."""
    digits = Decimal("-" + "9" * 38)
    nested = pa.struct([("y", pa.string()), ("x", pa.int16())])
    return pa.table(
        {
            "m": pa.array([[("k", digits), ("", None)], [], None, [("a", Decimal(1))], []],
                          pa.map_(pa.string(), pa.decimal128(38, 0))),
            "NAME": pa.array(_HOSTILE),
            "ID": pa.array([-(2**31), 0, 2**31 - 1, None, 7], pa.int32()),
            "day": pa.array([date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None, date(1582, 10, 15)]),
            "amount": pa.array([Decimal("-12.5"), Decimal("0.0"), None, Decimal("1.1"), Decimal("-99.9")],
                               pa.decimal128(20, 1)),
            "f": pa.array([nan, -0.0, inf, None, -1.5]),
            "s": pa.array([{"b": "'", "a": 1}, {"b": None, "a": None}, None, {"b": "", "a": 2}, {"b": "x", "a": -1}],
                          pa.struct([("b", pa.string()), ("a", pa.int32())])),
            "l": pa.array([[{"y": "q", "x": 1}, None], [], None, [{"y": None, "x": None}], []], pa.list_(nested)),
            "moment": pa.array([datetime(1900, 1, 1), datetime(9999, 12, 31, 23, 59), None, datetime(1970, 1, 1), None],
                           pa.timestamp("ms")),
            "seen": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999), None, None, datetime(2024, 1, 1), None],
                             pa.timestamp("us", "UTC")),
            "raw": pa.array([b"", b"\x00\xff", None, b"'", b"\\x"]),
            "ok": pa.array([True, False, None, True, True]),
        }
    )  # fmt: skip


def test_values_that_hurt(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    file, other, empty = (str(tmp_path / name) for name in ("hurt.parquet", "it's, %20 fine.parquet", "empty.parquet"))
    pq.write_table(_rows(), file, row_group_size=2)
    pq.write_table(_rows().slice(1, 2), other)
    pq.write_table(_rows().slice(0, 0), empty)
    with attached(catalog, spark, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", _COLUMNS)
        table.append(spark.sql("SELECT 1 AS id, 'own' AS name"), by_name=True)
        table.add_files([file, other, empty])
        assert table.files().count() == 3
        table.delete("id = 0")
        table.update({"name": "'updated'"}, where="id = 2147483647")
        table.rename_column("name", "title")
    with catalog.reference() as reference:
        cast = "amount::DECIMAL(38,5) AS amount, l::STRUCT(x INTEGER, y VARCHAR)[] AS l"
        names = f"id, name, day, {cast}, f, m, moment, seen, raw, ok"
        expected = query(reference, f"SELECT {names} FROM read_parquet([{quote(file)}, {quote(other)}])")
        found = query(reference, f"SELECT {names} FROM t AT (VERSION => 3) WHERE name IS DISTINCT FROM 'own'")
        assert found.rows == expected.rows
        assert reference.value("SELECT list(s.b ORDER BY id) FROM t AT (VERSION => 3) WHERE s.a > 0") == ["'", ""]
    assert_same_tables(catalog, spark, "t")


def test_the_same_catalog_rows_as_the_extension(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """But for what the extension has wrong, NaN in PyArrow's files and counts inside lists; and the form of blobs."""
    first, second = str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")
    pq.write_table(_rows().drop_columns(["f", "raw"]), first)
    pq.write_table(_rows().drop_columns(["f", "raw"]).slice(1, 1), second)
    ddl = _COLUMNS.replace(" f DOUBLE,", "").replace("raw BINARY,", "")
    (tmp_path / "twin").mkdir()
    twin = DuckDBCatalog(tmp_path / "twin")
    for place in (file_catalog, twin):
        with attached(place, spark) as lake:
            lake.create_table("t", ddl)
    with attached(file_catalog, spark) as lake:
        lake.table("t").add_files(first)
        lake.table("t").add_files([second])
    with twin.reference() as reference:
        for file in (first, second):
            reference.execute(f"CALL ducklake_add_data_files('lk', 't', {quote(file)})")
    ours, theirs = rows(file_catalog), rows(twin)
    same = ("data_file", "column_mapping", "name_mapping", "table_stats", "file_partition_value", "snapshot_changes")
    for name in same:
        assert ours[f"ducklake_{name}"] == theirs[f"ducklake_{name}"], name
    numbers = [(row[0], *row[2:]) for row in ours["ducklake_snapshot"]]
    assert numbers == [(row[0], *row[2:]) for row in theirs["ducklake_snapshot"]]
    told = {row[:3]: row[3:] for row in theirs["ducklake_file_column_stats"]}
    assert {row[:3] for row in ours["ducklake_file_column_stats"]} == told.keys()
    for row in ours["ducklake_file_column_stats"]:
        size, values, nulls, *bounds = row[3:]
        expected = told[row[:3]]
        assert size == expected[0]
        assert (values, nulls) in (expected[1:3], (None, None))
        assert [_plain(text) for text in bounds[:2]] == [_plain(text) for text in expected[3:5]], row


def _plain(text: str | None) -> Any:
    """Numbers by value, and booleans as numbers."""
    text = {"false": "0", "true": "1"}.get(text or "", text)
    try:
        return None if text is None else Decimal(text)
    except ArithmeticError:
        return text


def test_statistics_prune_and_never_hide_nan(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """PyArrow and Spark leave NaN out of a footer's bounds, and the extension takes them for those of the file."""
    paths = []
    for start in (0, 100):
        values = [float(start), nan, start + 1.0, -0.0]
        table = {"id": pa.array(range(start, start + 4)), "f": values, "day": [date(1960 + start, 1, 1), None] * 2}
        paths.append(str(tmp_path / f"{start}.parquet"))
        pq.write_table(pa.table(table), paths[-1])
    with attached(file_catalog, spark) as lake:
        lake.create_table("t", "id BIGINT, f DOUBLE, day DATE").add_files(paths)
        table = lake.table("t")
        for predicate, kept in (("id = 101", 1), ("day < DATE '1970-01-01'", 1), ("f < -1", 0), ("f > 500", 2)):
            assert table.explain(predicate).kept == kept, predicate
        wanted = ("isnan(f)", "f = 0", "id > 99", "day IS NULL", "NOT f < 2", "f >= 101")
        found = {one: {row.id for row in table.read().where(one).collect()} for one in wanted}
    with file_catalog.reference() as reference:
        for one in wanted:
            assert {number for (number,) in reference.rows(f"SELECT id FROM t WHERE {one}")} == found[one], one
    assert found["isnan(f)"] == {1, 101}


_ID = pa.array([1])
_MISFITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "type": ({"id": ["x"], "note": ["y"]}, {}, "column 'id' is int64 and the file has varchar"),
    "wider": ({"id": pa.array([1], pa.uint64()), "note": ["y"]}, {}, "column 'id' is int64 and the file has uint64"),
    "nested": ({"id": [[1]], "note": ["y"]}, {}, "column 'id' is int64 and the file has list"),
    "missing": ({"id": _ID}, {}, "column 'note' of the table is not in the file; allow_missing"),
    "extra": ({"id": _ID, "note": ["y"], "z": [1]}, {}, "the table has no column 'z'"),
    "twice": ({"id": _ID, "ID": _ID, "note": ["y"]}, {}, "it has column 'id' twice"),
    "NULL": ({"id": pa.array([None], pa.int64()), "note": ["y"]}, {}, "column 'id' is NOT NULL"),
    "missing NOT NULL": ({"note": ["y"]}, {"allow_missing": True}, "column 'id' is NOT NULL"),
    "own": (
        {"id": _ID, "note": ["y"], "_ducklake_internal_row_id": _ID}, {"ignore_extra_columns": True}, "DuckLake's own",
    ),
    "no hive": ({"id": _ID, "note": ["y"]}, {"hive_partitioning": True}, "it is in no directory like name=value"),
}  # fmt: skip


def test_misfits_name_file_and_column(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"id": _ID, "note": ["y"]}), good)
    (tmp_path / "no.parquet").write_text("no Parquet at all")
    (tmp_path / "id=x").mkdir()
    pq.write_table(pa.table({"note": ["y"]}), tmp_path / "id=x/file.parquet")
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT NOT NULL, note STRING")
        for name, (columns, options, message) in _MISFITS.items():
            file = tmp_path / f"{name}.parquet"
            pq.write_table(pa.table(columns), file)
            with leaving_nothing(file_catalog, lake, f"{name}.parquet: .*{message}"):
                table.add_files([str(good), str(file)], **options)
        for path, message in (
            ("no.parquet", "cannot be read"), ("none.parquet", "there is no file"),
            ("id=x/file.parquet", "is int64, and its directory says 'x'"),
        ):  # fmt: skip
            with leaving_nothing(file_catalog, lake, message):
                table.add_files(str(tmp_path / path))
        with leaving_nothing(file_catalog, lake, "named twice"):
            table.add_files([str(good), f"file://{good}"])
        table.add_files(str(good))
        with leaving_nothing(file_catalog, lake, "is in main.t already"):
            table.add_files(str(good))
        with suppress(RuntimeError), lake.transaction():
            table.add_files(str(tmp_path / "extra.parquet"), ignore_extra_columns=True)
            assert table.read().count() == 2
            raise RuntimeError
        assert (tmp_path / "extra.parquet").exists()
        assert table.read().count() == 1


def test_missing_extra_and_directories(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Directories give values and partitions; what is missing reads as the default it was added with."""
    for region in ("EU", "a%2Fb %27", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / f"region={region}" / "n=007"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [len(region)], "other": [1]}), folder / "file.parquet")
    files = sorted(str(path) for path in tmp_path.glob("region=*/**/*.parquet"))
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", "id BIGINT, region STRING, n INT", partitioned_by=["region"])
        table.add_column("note STRING DEFAULT 'none'")
        table.add_files(files, allow_missing=True, ignore_extra_columns=True)
        assert table.read().where("region = 'EU' AND n = 7").count() == 1
        lake.create_table("u", "id BIGINT, region STRING").add_files(
            files[0], allow_missing=True, ignore_extra_columns=True, hive_partitioning=False
        )
        assert [tuple(row) for row in lake.table("u").read().collect()] == [(len("EU"), None)]
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT region, n, note FROM t ORDER BY region NULLS LAST") == [
            ("EU", 7, "none"), ("a/b '", 7, "none"), (None, 7, "none"),
        ]  # fmt: skip
        values = f"SELECT partition_value FROM {METADATA}.ducklake_file_partition_value ORDER BY 1"
        assert reference.rows(values) == [("EU",), ("a/b '",)]
    assert_same_tables(file_catalog, spark, "t")


def test_the_same_file_by_two_writers_at_once(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Files of one table may be added by many at once; the same file only by the first."""
    paths = [str(tmp_path / f"{name}.parquet") for name in ("a", "b", "it's")]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"id": [number]}), path)
    with attached(catalog, spark) as lake, attached(catalog, spark) as other:
        lake.create_table("t", "id BIGINT")
        with pytest.raises(penstock.ConflictError, match=r"it's\.parquet was linked"), lake.transaction():  # noqa: PT012
            lake.table("t").add_files(paths[2])
            other.table("t").add_files(paths[1:])
        with lake.transaction():
            lake.table("t").add_files(paths[0])
            other.table("t").append(spark.range(3, 5))
    with catalog.reference() as reference:
        assert reference.rows("SELECT id FROM t ORDER BY id") == [(id,) for id in range(5)]


def test_more_of_the_extension_after_it(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """The extension changes, compacts and adds to a table with files that were added here, and the other way round."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id BIGINT, name VARCHAR)")
    for start in (0, 10, 20):
        table = pa.table({"name": [f"'{start}'", None], "id": pa.array([start, start + 1], pa.int8())})
        pq.write_table(table, tmp_path / f"{start}.parquet")
    with attached(file_catalog, spark) as lake:
        lake.table("t").add_files(str(tmp_path / "0.parquet"))
    with file_catalog.reference() as reference:
        reference.execute(f"CALL ducklake_add_data_files('lk', 't', {quote(str(tmp_path / '10.parquet'))})")
    with attached(file_catalog, spark) as lake:
        lake.table("t").add_files(str(tmp_path / "20.parquet"))
    with file_catalog.reference() as reference:
        assert reference.value(f"SELECT count(*) FROM {METADATA}.ducklake_column_mapping") == 1
        reference.execute("DELETE FROM t WHERE id = 1", "UPDATE t SET name = 'new' WHERE id = 21")
    assert_same_tables(file_catalog, spark, "t")
    with file_catalog.reference() as reference:
        reference.execute("CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0)")
        reference.execute("CALL ducklake_merge_adjacent_files('lk')")
        assert reference.value("SELECT list(id ORDER BY id) FROM t") == [0, 10, 11, 20, 21]
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        assert sorted(row.id for row in lake.table("t").read().collect()) == [0, 10, 11, 20, 21]


def test_folders_and_patterns(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """The files that the extension takes by the same words, and the rows that it shows of them."""
    for number, name in enumerate(
        ("a.parquet", "b.parquet", "[x].parquet", "_c.parquet", "d.PARQUET", "region=EU/e.parquet", "deep/er/f.parquet")
    ):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        moment = pa.array([number * 1_000_000_999], pa.timestamp("ns", "UTC"))
        pq.write_table(pa.table({"id": pa.array([number]), "seen": moment}), tmp_path / "in" / name)
    words = ["in", "in/", "in/*.parquet", "in/**/*.parquet", "in/*/*.parquet", "in/[a-b].parquet", "in/?.*", "in/**"]
    with file_catalog.build() as reference:
        found = {}
        for number, word in enumerate(words):
            reference.execute(
                f"CREATE TABLE theirs{number} (id BIGINT, seen TIMESTAMPTZ, region VARCHAR)",
                f"CALL ducklake_add_data_files('lk', 'theirs{number}', {quote(str(tmp_path / word))},"
                " allow_missing => true)",
            )
            found[word] = reference.rows(f"SELECT id, region FROM theirs{number} ORDER BY ALL")
    with attached(file_catalog, spark) as lake:
        for number, word in enumerate(words):
            table = lake.create_table(f"ours{number}", "id BIGINT, seen TIMESTAMP, region STRING")
            table.add_files(str(tmp_path / word), allow_missing=True)
        named = lake.create_table("named", "id BIGINT, seen TIMESTAMP, region STRING")
        named.add_files([str(tmp_path / "in/[x].parquet"), str(tmp_path / "in/a*")], allow_missing=True)
        for word in ("in/none*.parquet", "in/none.parquet", "nowhere/", "in/region=US"):
            with leaving_nothing(file_catalog, lake, f"there is no file .*{word[:7]}"):
                named.add_files(str(tmp_path / word))
    with file_catalog.reference() as reference:
        for number, word in enumerate(words):
            assert reference.rows(f"SELECT id, region FROM ours{number} ORDER BY ALL") == found[word], word
        assert reference.rows("SELECT id FROM named ORDER BY ALL") == [(0,), (2,)]
    assert_same_tables(file_catalog, spark, "theirs0", "ours0")


def _arrays() -> dict[str, tuple[pa.Array, dict[str, Any]]]:
    """A column of each type of Parquet, with options of the writer."""
    numbers = {
        f"{sign}{bits}": pa.array([0 if sign else -(2 ** (bits - 1)), 2 ** (bits - (not sign)) - 1], f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    times = {f"time {unit}": pa.array([0, 1], kind(unit)) for unit, kind in _TIMES.items()}
    stamps = {
        f"{zone or 'local'} {unit}": pa.array([-1_234_000, 1_234_000], pa.timestamp(unit, zone))
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    }
    others = {
        "float": pa.array([0.5, -1.5], pa.float32()), "double": pa.array([0.1, -1e300]), "bool": pa.array([True]),
        "text": pa.array(["", "zé"]), "binary": pa.array([b"ab"]),
        "fixed": pa.array([b"ab"], pa.binary(2)),
        "uuid": pa.array([bytes(range(16))], pa.uuid()), "json": pa.array(["{}"], pa.json_()),
        "date": pa.array([-719162, 2932896], pa.date32()), "4,1": pa.array([Decimal("-999.9")], pa.decimal128(4, 1)),
        "38,1": pa.array([Decimal("-" + "9" * 36 + ".9")], pa.decimal128(38, 1)), "half": pa.array([1.0], pa.float16()),
    }  # fmt: skip
    found: dict[str, tuple[pa.Array, dict[str, Any]]] = {
        name: (array, {}) for name, array in (numbers | times | stamps | others).items()
    }
    found["int96"] = pa.array([0], pa.timestamp("us")), {"use_deprecated_int96_timestamps": True}
    return found


_TIMES = {"ms": pa.time32, "us": pa.time64, "ns": pa.time64}
_ACCEPTED = {
    "BOOLEAN": "bool", "TINYINT": "8", "SMALLINT": "8 16 u8", "INTEGER": "8 16 32 u8 u16",
    "BIGINT": "8 16 32 64 u8 u16 u32", "UTINYINT": "u8", "USMALLINT": "u8 u16", "UINTEGER": "u8 u16 u32",
    "UBIGINT": "u8 u16 u32 u64", "HUGEINT": "", "FLOAT": "float", "DOUBLE": "float double", "VARCHAR": "text",
    "BLOB": "binary fixed", "JSON": "json", "UUID": "uuid", "DATE": "date", "TIME": "time.us", "TIMETZ": "",
    "TIMESTAMP": "local.ms local.us local.ns int96", "TIMESTAMP_MS": "local.ms local.us int96",
    "TIMESTAMP_S": "local.ms local.us int96",
    "TIMESTAMP_NS": "local.ms local.us local.ns int96", "TIMESTAMPTZ": "UTC.ms UTC.us UTC.ns", "INTERVAL": "interval",
    "DECIMAL(4,1)": "4,1", "DECIMAL(20,5)": "4,1", "DECIMAL(38,1)": "4,1 38,1", "DECIMAL(4,2)": "",
}  # fmt: skip


def test_types_that_fit(file_catalog: Catalog, tmp_path: Path) -> None:
    """What is taken here the extension takes too, with the same bounds; those of blobs it writes in another form."""
    files = {name: tmp_path / f"{name}.parquet" for name in _arrays()}
    for name, (array, options) in _arrays().items():
        pq.write_table(pa.table({"v": array}), files[name], **options)
    files["interval"] = tmp_path / "interval.parquet"
    with file_catalog.build() as reference:
        reference.execute(f"COPY (SELECT INTERVAL '1 month 2 days' AS v) TO {quote(str(files['interval']))}")
        for type, accepted in _ACCEPTED.items():
            reference.execute(f"CREATE OR REPLACE TABLE t (v {type})")
            [[table_id, name]] = reference.rows(
                f"SELECT table_id, column_type FROM {METADATA}.ducklake_column WHERE end_snapshot IS NULL"
            )
            column = Column(1, "v", parse_type(name), 0)
            fitting = {source: file for source, path in files.items() if (file := _described(path, column))}
            assert set(fitting) == {source.replace(".", " ") for source in accepted.split()}, type
            for source, file in fitting.items():
                reference.execute(f"CALL ducklake_add_data_files('lk', 't', {quote(file.path)})")
                assert reference.rows("FROM t")
                [told] = reference.rows(
                    f"SELECT value_count, null_count, min_value, max_value FROM {METADATA}.ducklake_file_column_stats"
                    f" WHERE table_id = {table_id} ORDER BY data_file_id DESC LIMIT 1"
                )
                [own] = file.columns
                assert (own.value_count, own.null_count) == told[:2], (type, source)
                if type in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # the extension's do not cover what it shows
                    rounded = f"SELECT v::{type} AS v FROM read_parquet({quote(file.path)})"
                    [shown] = reference.rows(f"SELECT min(v)::VARCHAR, max(v)::VARCHAR FROM ({rounded})")
                    assert own.minimum is None or (own.minimum <= shown[0] and shown[1] <= own.maximum), (type, source)
                elif type != "BLOB":
                    expected = [_plain(text) for text in told[2:]]
                    assert [_plain(own.minimum), _plain(own.maximum)] == expected, (type, source)


def _described(path: Path, column: Column) -> ForeignFile | None:
    try:
        return match_file(str(path), [column], MatchingRules())
    except penstock.InvalidError:
        return None
