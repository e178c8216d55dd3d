"""Files made by others and registered with `ducklake_add_data_files`: mapped by name, not by field id."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote as quoted
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_contents, assert_same_tables, query
from support.reference import Reference, quote


def test_columns_by_name(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT, name VARCHAR, amount DOUBLE)",
            "INSERT INTO t VALUES (1, 'own', 1.5)",
            *_copy(
                "SELECT 2.5::DOUBLE AS amount, 'reordered' AS name, 2::BIGINT AS id", tmp_path / "reordered.parquet"
            ),
            *_copy("SELECT 3::BIGINT AS ID, 'upper' AS Name, 3.5::DOUBLE AS AMOUNT", tmp_path / "upper.parquet"),
        )
        _add(reference, tmp_path / "reordered.parquet")
        _add(reference, tmp_path / "upper.parquet")
        reference.execute(
            "ALTER TABLE t RENAME name TO title",
            "ALTER TABLE t ADD COLUMN name VARCHAR DEFAULT 'new'",
            "DELETE FROM t WHERE id = 2",
            "UPDATE t SET title = 'updated' WHERE id = 3",
        )
    assert_same_tables(catalog, spark, "t")


@pytest.mark.parametrize("kind", ["INTEGER", "UUID"])
def test_names_that_have_moved_on(file_catalog: Catalog, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """A filter prunes by the column that it is on, though files know it by what another one is called now."""
    path = tmp_path / f"p={_number(kind, 5)}" / "f.parquet"
    path.parent.mkdir()
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE t (p {kind}, v {kind})", "ALTER TABLE t SET PARTITIONED BY (p)")
        reference.execute(*_copy(f"SELECT '{_number(kind, 7)}'::{kind} AS v FROM range(3)", path))
        _add(reference, path, hive_partitioning=True)
        reference.execute("ALTER TABLE t RENAME v TO w", "ALTER TABLE t RENAME p TO v")
        wanted = [f"w = '{_number(kind, 7)}'", f"v = '{_number(kind, 5)}' OR w = '{_number(kind, 1)}'", "w IS NOT NULL"]
        judged = [reference.value(f"SELECT count(*) FROM t WHERE {where}") for where in wanted]
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read()
        assert [rows.where(where).count() for where in wanted] == judged == [3, 3, 3]


def _number(kind: str, value: int) -> str:
    return str(value) if kind == "INTEGER" else str(UUID(int=value))


def test_missing_and_extra_columns(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER)",
            "ALTER TABLE t ADD COLUMN note VARCHAR DEFAULT 'none'",
            "ALTER TABLE t ADD COLUMN s STRUCT(a INTEGER, b INTEGER)",
            *_copy("SELECT 1 AS id", tmp_path / "missing.parquet"),
            *_copy(
                "SELECT 2 AS id, 'two' AS note, {'a': 1, 'b': 2, 'z': 3} AS s, 99 AS surplus",
                tmp_path / "extra.parquet",
            ),
        )
        _add(reference, tmp_path / "missing.parquet", allow_missing=True)
        _add(reference, tmp_path / "extra.parquet", ignore_extra_columns=True)
        reference.execute("ALTER TABLE t ADD COLUMN surplus INTEGER")
    assert_same_tables(catalog, spark, "t")


def test_hive_partitions(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    columns = "id INTEGER, region VARCHAR, year INTEGER, day DATE"
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            f"CREATE TABLE t ({columns})",
            f"COPY (SELECT * FROM (VALUES (1, 'EU', 2024, DATE '2024-01-01'), (2, 'a/b=c %', 2025, DATE '2025-01-01'))"
            f" v(id, region, year, day)) TO {quote(str(tmp_path / 'hive'))}"
            " (FORMAT parquet, PARTITION_BY (region, year, day))",
        )
        _add(reference, tmp_path / "hive/**/*.parquet", hive_partitioning=True, allow_missing=True)
        reference.execute("DELETE FROM t WHERE id = 2")
    assert_same_tables(catalog, spark, "t")


def test_hive_partitions_of_control_characters(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Such characters part the fields in which files reach Spark; backslashes and line ends are others to mind."""
    names = ["a%1Fb", "%1F", "x%1Ey", "%1E", "%00", "a%00b", "%01", "%5C", "a%5C_b", "%0A%0D", "%5C%1F"]
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER, region VARCHAR)")
        for number, name in enumerate(names):
            (tmp_path / "hive" / f"region={name}").mkdir(parents=True)
            reference.execute(*_copy(f"SELECT {number} AS id", tmp_path / "hive" / f"region={name}" / "f.parquet"))
        _add(reference, tmp_path / "hive/**/*.parquet", hive_partitioning=True, allow_missing=True)
        expected = dict(reference.rows("SELECT id, region FROM t"))
    assert expected[0] == "a\x1fb"
    assert expected[5] == "a\0b"
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        assert dict(map(tuple, lake.table("t").read().collect())) == expected
        assert lake.table("t").read().where("region = 'a\\u001fb'").count() == 1


# Types, texts of directories, and what Spark shows of them: DuckDB's infinities are the ends of Spark's times.
HIVE_TIMES = [
    ("DATE", "infinity", "+5881580-07-11"),
    ("DATE", "-infinity", "-5877641-06-24"),
    ("DATE", "0044-03-15 (BC)", "-0043-03-15"),
    ("TIMESTAMP", "-infinity", "-290308-12-21 19:59:05.224193"),
    ("TIMESTAMP", "2020-01-01 00:00:01.6", "2020-01-01 00:00:01.6"),
    ("TIMESTAMP_S", "2020-01-01 00:00:01.6", "2020-01-01 00:00:02"),
    ("TIMESTAMP_S", "1969-12-31 23:59:58.5", "1969-12-31 23:59:58"),
    ("TIMESTAMP_MS", "2020-01-01 00:00:01.0006", "2020-01-01 00:00:01.001"),
    ("TIMESTAMP_NS", "1969-12-31 23:59:59.999999999", "1969-12-31 23:59:59.999999"),
    ("TIMESTAMPTZ", "infinity", "+294247-01-10 04:00:54.775807"),
    ("TIMESTAMPTZ", "2020-01-01 00:00:00+02", "2019-12-31 22:00:00"),
]


def test_hive_partitions_of_times(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Rounded and infinite as DuckDB reads them, also where the session makes NULL of texts that Spark cannot cast."""
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(HIVE_TIMES))
    path = Path(tmp_path, "hive", *(f"c{number}={quoted(text)}" for number, (_, text, _) in enumerate(HIVE_TIMES)))
    path.mkdir(parents=True)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(f"CREATE TABLE t (id INTEGER, {columns})", *_copy("SELECT 1 AS id", path / "f.parquet"))
        _add(reference, tmp_path / "hive/**/*.parquet", hive_partitioning=True)
        [theirs] = reference.rows("SELECT COLUMNS(c -> c <> 'id')::VARCHAR FROM t")
    assert (theirs[5], theirs[6], theirs[7]) == tuple(shown for *_, shown in HIVE_TIMES[5:8])
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read(nanoseconds="truncate").drop("id")
        exact = lake.table("t").read(nanoseconds="long").select("c8")
        for ansi in ("true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            try:
                [ours] = rows.selectExpr(*(f"CAST({name} AS STRING)" for name in rows.columns)).collect()
                assert rows.where("c5 = TIMESTAMP_NTZ'2020-01-01 00:00:02'").count() == 1
            finally:
                spark.conf.unset("spark.sql.ansi.enabled")
            assert list(ours) == [shown for *_, shown in HIVE_TIMES]
        assert exact.collect() == [(-1,)]


@pytest.mark.parametrize(
    "predicate",
    [
        "region = 'EU'", "region = 'none'", "region IN ('a/b=c %', 'x')", "region IS NULL", "NOT region = 'EU'",
        "year >= 2025", "day = DATE '2024-01-01'", "day < DATE '2025-01-01' OR id = 2", "year + 1 = 2025",
        "region = 'EU' AND id = 1", "region = 'EU' AND id = 2",
    ],
)  # fmt: skip
def test_filters_on_hive_partitions(hive: Catalog, spark: SparkSession, predicate: str) -> None:
    """Such a column is a constant of its file, and Spark leaves filters on constants to whoever lists the files."""
    with hive.reference() as reference:
        expected = query(reference, f"SELECT *, rowid FROM t WHERE {predicate}")
    with penstock.attach(hive.uri, read_only=True, spark=spark) as lake:
        assert_contents(lake.table("t").read(row_ids=True).where(predicate), expected, predicate)


@pytest.fixture
def hive(file_catalog: Catalog, tmp_path: Path) -> Catalog:
    rows = "(1, 'EU', 2024, DATE '2024-01-01'), (2, 'a/b=c %', 2025, DATE '2025-01-01'), (3, NULL, 2025, NULL)"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, region VARCHAR, year INTEGER, day DATE)",
            f"COPY (FROM (VALUES {rows}) v(id, region, year, day)) TO {quote(str(tmp_path / 'hive'))}"
            " (FORMAT parquet, PARTITION_BY (region, year, day))",
            "INSERT INTO t VALUES (4, 'EU', 2024, DATE '2024-01-01'), (5, NULL, NULL, NULL)",
        )
        _add(reference, tmp_path / "hive/**/*.parquet", hive_partitioning=True, allow_missing=True)
        reference.execute("DELETE FROM t WHERE id = 4")
    return file_catalog


def test_narrower_types(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    narrow = (
        "SELECT -1::TINYINT AS i16, 200::UTINYINT AS i32, 4000000000::UINTEGER AS i64, 200::UTINYINT AS u16,"
        " 50000::USMALLINT AS u32, 4000000000::UINTEGER AS u64, 0.1::FLOAT AS f64,"
        " 12.5::DECIMAL(4,1) AS wide, 12.5::DECIMAL(4,1) AS deep, '2024-01-01 00:00:00.123456'::TIMESTAMP AS ns"
    )
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (i16 SMALLINT, i32 INTEGER, i64 BIGINT, u16 USMALLINT, u32 UINTEGER, u64 UBIGINT,"
            " f64 DOUBLE, wide DECIMAL(38,1), deep DECIMAL(20,5), ns TIMESTAMP_NS)",
            *_copy(narrow, tmp_path / "narrow.parquet"),
        )
        _add(reference, tmp_path / "narrow.parquet")
        reference.execute("INSERT INTO t VALUES (1, 1, 1, 1, 1, 1, 1.0, 1.0, 1.0, '2024-01-01 00:00:00.123456789')")
    assert_same_tables(catalog, spark, "t")


def test_timestamps_with_more_digits_than_the_column(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path
) -> None:
    """DuckDB rounds them, halves away from 1970; the statistics in the catalog are of what the file has."""
    exact = ["2024-01-01 00:00:01.6", "1969-12-31 23:59:58.5", "1969-12-31 23:59:59.9995", "1970-01-01 00:00:00.0005"]
    rows = ", ".join(f"({number}, TIMESTAMP '{text}')" for number, text in enumerate(exact))
    source = f"(VALUES {rows}, (4, NULL)) v(id, t)"
    columns = "id, t AS s, t AS m, t::TIMESTAMP_MS AS sm, [t] AS l, {'t': t} AS st"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, s TIMESTAMP_S, m TIMESTAMP_MS, sm TIMESTAMP_S, l TIMESTAMP_S[],"
            " st STRUCT(t TIMESTAMP_MS))",
            *_copy(f"SELECT {columns} FROM {source}", tmp_path / "digits.parquet"),
            *_copy(f"SELECT {columns} FROM {source} WHERE id = 0", tmp_path / "one.parquet"),
        )
        _add(reference, tmp_path / "digits.parquet")
        _add(reference, tmp_path / "one.parquet")
        conditions = ("s = '2024-01-01 00:00:02'", "m = '1969-12-31 23:59:59.999'", "sm < '1970-01-01'")
        found = {where: query(reference, f"SELECT * FROM t WHERE {where}") for where in conditions[1:]}
        found[conditions[0]] = query(reference, "SELECT * FROM t WHERE id = 0")  # it trusts the statistics itself
    assert_same_tables(file_catalog, spark, "t")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        for where in conditions:
            assert_contents(lake.table("t").read().where(where), found[where], where)


def test_nested_columns_by_name(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    nested = "SELECT {'b': 'two', 'a': 2} AS s, [{'y': 1, 'x': 2}] AS l, MAP {'k': {'q': 1, 'p': 2}} AS m"
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (s STRUCT(a INTEGER, b VARCHAR), l STRUCT(x INTEGER, y INTEGER)[],"
            " m MAP(VARCHAR, STRUCT(p INTEGER, q INTEGER)))",
            *_copy(nested, tmp_path / "nested.parquet"),
        )
        _add(reference, tmp_path / "nested.parquet")
        reference.execute(
            "ALTER TABLE t RENAME s.a TO aa",
            "ALTER TABLE t ADD COLUMN l.element.z INTEGER DEFAULT 3",
            "ALTER TABLE t DROP COLUMN m.value.q",
        )
    assert_same_tables(catalog, spark, "t")


def test_files_of_other_writers(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """PyArrow names list children and orders columns in its own way; Spark writes no field ids either."""
    table = pa.table(
        {
            "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
            "id": pa.array([1, 2, 3], pa.int32()),
            "when": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "attributes": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        }
    )
    pq.write_table(table, tmp_path / "arrow.parquet")
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            'CREATE TABLE t (id INTEGER, tags VARCHAR[], "when" TIMESTAMPTZ, attributes MAP(VARCHAR, INTEGER))'
        )
        _add(reference, tmp_path / "arrow.parquet")
    assert_same_tables(catalog, spark, "t")


def test_added_file_among_others(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Mapped files, own files and inlined rows in one scan, with deletes in each."""
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, name VARCHAR)",
            "INSERT INTO t SELECT i, 'own' FROM range(20) r(i)",
            *_copy("SELECT 'added' AS name, i::INTEGER AS id FROM range(100, 120) r(i)", tmp_path / "added.parquet"),
            "INSERT INTO t VALUES (200, 'inlined'), (201, 'inlined')",
        )
        _add(reference, tmp_path / "added.parquet")
        reference.execute("DELETE FROM t WHERE id IN (5, 105, 200)")
    assert_same_tables(catalog, spark, "t")


def test_files_with_neither_field_ids_nor_a_mapping(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Their columns are the table's by position, whatever their names are; files of one table may differ in this."""
    bare, with_ids = tmp_path / "bare.parquet", tmp_path / "with_ids.parquet"
    pq.write_table(pa.table({"b": pa.array([1, 2], pa.int32()), "a": ["one", "two"], "t": _micros(1_600_000, 0)}), bare)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER, b VARCHAR, t TIMESTAMP_S, late DATE)",
            "INSERT INTO t VALUES (1, 'one', '1970-01-01 00:00:02', NULL), (2, 'two', '1970-01-01', NULL)",
            "INSERT INTO t VALUES (3, 'own', '1970-01-01', '2024-01-01')",
            "INSERT INTO t VALUES (4, 'own', NULL, NULL)",
        )
        [_, second, _] = reference.rows("SELECT data_file FROM ducklake_list_files('lk', 't') ORDER BY 1")
    Path(second[0]).rename(with_ids)
    file_catalog.tamper(_found_at(0, bare), _found_at(1, with_ids))
    with file_catalog.reference(data_inlining_row_limit=0) as reference:
        reference.execute(
            "ALTER TABLE t RENAME a TO z",
            "ALTER TABLE t ADD COLUMN a INTEGER DEFAULT 7",
            "DELETE FROM t WHERE z = 2",
        )
    assert_same_tables(file_catalog, spark, "t")
    with file_catalog.reference(data_inlining_row_limit=0) as reference:
        reference.execute("ALTER TABLE t DROP COLUMN z")  # from here on the extension shows values of other columns
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        rows = lake.table("t").read().where("t = '1970-01-01 00:00:02'").select("b", "late", "a").collect()
        assert [tuple(row) for row in rows] == [("one", None, 7)]


def test_nested_columns_without_field_ids(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """The extension shows NULL in the place of what they hold."""
    bare = tmp_path / "bare.parquet"
    pq.write_table(pa.table({"l": pa.array([[1]], pa.list_(pa.int32()))}), bare)
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (l INTEGER[])", "INSERT INTO t VALUES ([1])")
    file_catalog.tamper(_found_at(0, bare))
    with (
        penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake,
        pytest.raises(penstock.UnsupportedError, match=r"'l'.*add_files"),
    ):
        lake.table("t").read()


def _micros(*values: int) -> pa.Array:
    return pa.array(values, pa.timestamp("us"))


def _found_at(number: int, file: Path) -> str:
    """SQL that puts a file in the place of a table's data file."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little")
    return (
        f"UPDATE ducklake_data_file SET path = {quote(str(file))}, path_is_relative = false,"
        f" file_size_bytes = {len(content)}, footer_size = {footer} WHERE data_file_id = {number}"
    )


def _copy(query: str, file: Path) -> tuple[str]:
    return (f"COPY ({query}) TO {quote(str(file))} (FORMAT parquet)",)


def _add(reference: Reference, files: Path, **options: bool) -> None:
    arguments = "".join(f", {name} => {str(value).lower()}" for name, value in options.items())
    reference.execute(f"CALL ducklake_add_data_files('lk', 't', {quote(str(files))}{arguments})")


def test_added_file_of_a_column_that_became_json(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB's text of the value is made by DuckDB, which would find the file's columns by name, not by the mapping."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", *_copy("SELECT 1 AS id", tmp_path / "added.parquet"))
        _add(reference, tmp_path / "added.parquet")
        reference.execute("ALTER TABLE t ALTER id SET TYPE JSON")
    with penstock.attach(file_catalog.uri, read_only=True, spark=spark) as lake:
        with pytest.raises(penstock.UnsupportedError, match=r"main\.t has added files that only DuckDB can read"):
            lake.table("t").read()
        assert lake.table("t").read(version=2).count() == 1


def test_a_file_that_has_grown(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Another file under the name: Spark would read no further than the size that the catalog has."""
    file = tmp_path / "grown.parquet"
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (id BIGINT)", *_copy("SELECT range AS id FROM range(10)", file))
        _add(reference, file)
    grown = pa.table({"id": pa.array(range(9000), pa.int64())})
    pq.write_table(grown, file, row_group_size=1000, use_dictionary=False, compression="none")
    with penstock.attach(file_catalog.uri, spark=spark) as lake:
        assert lake.table("t").read().where("id >= 0").count() == 9000


def test_sizes_that_the_catalog_does_not_have(file_catalog: Catalog, spark: SparkSession) -> None:
    """Of data, whose rows would be lost, and of deletes, whose rows would come back."""
    with file_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id BIGINT)", "INSERT INTO t FROM range(100)", "DELETE FROM t WHERE id IN (1, 50)"
        )
    for size in ("0", "-5", "NULL"):
        file_catalog.tamper(
            f"UPDATE ducklake_data_file SET file_size_bytes = {size}",
            f"UPDATE ducklake_delete_file SET file_size_bytes = {size}",
        )
        with penstock.attach(file_catalog.uri, spark=spark) as lake:
            assert lake.table("t").read().selectExpr("count(*)", "sum(id)").first() == (98, 4950 - 51)
