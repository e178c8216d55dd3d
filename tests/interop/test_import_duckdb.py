"""A DuckDB database that is brought into a lake: DuckDB reads both, and finds the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.ducklake.moving import table_plans
from penstock.ducklake.moving.duckdb_source import DuckDBSource
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError, PenstockError, UnsupportedError
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_same_tables
from support.dumps import rows
from support.reference import Reference, quote
from support.writing import attached, files_of, leaving_nothing

_SOURCE = "source"
# The type, what a lake keeps it as, and values that hurt, as SQL.
_KEPT = [
    ("BOOLEAN", "BOOLEAN", "true; false"),
    ("TINYINT", "TINYINT", "-128; 127"),
    ("UBIGINT", "UBIGINT", "0; 18446744073709551615"),
    ("UINTEGER", "UINTEGER", "0; 4294967295"),
    ("BIGINT", "BIGINT", "-9223372036854775808; 9223372036854775807"),
    ("HUGEINT", "HUGEINT", "-5; 9007199254740992"),
    ("HUGEINT", "DECIMAL(38,0)", "-99999999999999999999999999999999999999; 1"),
    ("HUGEINT", "VARCHAR", "170141183460469231731687303715884105727; -1"),
    ("UHUGEINT", "VARCHAR", "340282366920938463463374607431768211455; 0"),
    ("BIGNUM", "INTEGER", "'-2147483648'; '5'"),
    ("BIGNUM", "BIGINT", "'9223372036854775807'; '-1'"),
    ("BIGNUM", "DECIMAL(38,0)", "'9223372036854775808'; '-1'"),
    ("BIGNUM", "VARCHAR", "'123456789012345678901234567890123456789'; '-1'"),
    ("FLOAT", "FLOAT", "'nan'; '-inf'; '-0.0'; 1e-45"),
    ("DOUBLE", "DOUBLE", "'nan'; 'inf'; '-0.0'; 5e-324"),
    ("DECIMAL(38,10)", "DECIMAL(38,10)", "-9999999999999999999999999999.9999999999; 0.0000000001"),
    ("VARCHAR", "VARCHAR", "''; 'it''s \"quoted\"'; 'a/b=c %20 $x <&>'; '💧'; chr(0)"),
    ("BLOB", "BLOB", r"''; '\x00\xFF'"),
    ("BIT", "VARCHAR", "'0'; '0101010101010'"),
    ("ENUM('it''s', '💧', '')", "VARCHAR", "'it''s'; '💧'; ''"),
    ("UNION(n INTEGER, s VARCHAR)", "VARCHAR", "union_value(n := -5); union_value(s := 'x')"),
    ("DATE", "DATE", "'0001-01-01'; '1969-12-31'; '9999-12-31'"),
    ("TIME", "TIME", "'00:00:00'; '23:59:59.999999'"),
    ("TIME", "VARCHAR", "'24:00:00'; '12:00:00.000001'"),
    ("TIME_NS", "TIME", "'23:59:59.999999'; '00:00:00'"),
    ("TIME_NS", "VARCHAR", "'23:59:59.999999999'; '00:00:00'"),
    ("TIMETZ", "TIME WITH TIME ZONE", "'23:59:59.999999+00'; '00:00:00+00'"),
    ("TIMETZ", "VARCHAR", "'24:00:00+00'; '12:00:00+05:30'"),
    ("TIMESTAMP", "TIMESTAMP", "'1582-10-15 00:00:00.000001'; '9999-12-31 23:59:59.999999'"),
    ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "'1900-01-01 00:00:00+05:30'; '2024-06-30 23:59:59.999999-08'"),
    ("TIMESTAMP_S", "TIMESTAMP_S", "'1900-01-01 00:00:01'; '9999-12-31 23:59:59'"),
    ("TIMESTAMP_MS", "TIMESTAMP_MS", "'1900-01-01 00:00:00.001'; '9999-12-31 23:59:59.999'"),
    ("TIMESTAMP_NS", "TIMESTAMP_NS", "'1900-01-01 00:00:00.000000001'; '2262-04-11 23:47:16.854775806'"),
    ("INTERVAL", "INTERVAL", "'1 year 2 months 3 days 04:05:06.789'; '0 seconds'"),
    ("INTERVAL", "VARCHAR", "'-1 month'; '00:00:00.000001'"),
    ("UUID", "UUID", "'00000000-0000-0000-0000-000000000000'; 'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    ("JSON", "JSON", """'{"a": [1, null, "it''s"]}'; 'null'; '1e400'"""),
    ("VARIANT", "VARIANT", "5::VARIANT; {'a': [1, 2]}::VARIANT; 'x'::VARIANT"),
    ("VARIANT[]", "JSON[]", "[5::VARIANT]; []"),
    ("STRUCT(v VARIANT)", "STRUCT(v JSON)", "{'v': 1.5::VARIANT}; {'v': NULL}"),
    ("GEOMETRY", "GEOMETRY", "'POINT (1 2)'; 'LINESTRING (0 0, -1.5 2)'"),
    ("INTEGER[3]", "INTEGER[]", "[1, NULL, 3]; [4, 5, 6]"),
    ("VARCHAR[2][]", "VARCHAR[][]", "[['a', ''], NULL]; []"),
    ("STRUCT(a ENUM('x', 'y'), \"b c\" HUGEINT, d BIGNUM[])",
     'STRUCT(a VARCHAR, "b c" DECIMAL(38,0), d BIGINT[])',
     "{'a': 'x', 'b c': 9007199254740993, 'd': ['5000000000']}; {'a': NULL, 'b c': NULL, 'd': []}"),
    ("MAP(VARCHAR, UNION(n INTEGER, d DATE))", "MAP(VARCHAR, VARCHAR)",
     "MAP {'': union_value(n := 1), '💧': NULL}; MAP {}"),
    ("MAP(HUGEINT, INTERVAL)", "MAP(DECIMAL(38,0), VARCHAR)", "MAP {9007199254740993: INTERVAL (-1) DAY}"),
    ("STRUCT(v INTEGER[2])[]", "STRUCT(v INTEGER[])[]", "[{'v': [1, 2]}, NULL, {'v': NULL}]; []; NULL"),
]  # fmt: skip


@contextmanager
def source(path: Path) -> Iterator[Reference]:
    """DuckDB with a new database as its own."""
    with Reference() as reference:
        reference.execute(f"ATTACH {quote(str(path))} AS {_SOURCE} (STORAGE_VERSION 'v1.5.0')", f"USE {_SOURCE}")
        yield reference
        reference.execute("USE memory")


def assert_same_rows(catalog: Catalog, path: Path, pairs: dict[str, str]) -> None:
    """Each query of the lake, by what it shall give of the database."""
    with catalog.reference() as reference:
        reference.execute(f"ATTACH {quote(str(path))} AS {_SOURCE} (READ_ONLY)")
        for expected, found in pairs.items():
            for one, other in ((expected, found), (found, expected)):
                assert reference.rows(f"({one}) EXCEPT ALL ({other})") == [], (one, other)


def test_every_type(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    path, places = tmp_path / "types.duckdb", range(len(_KEPT))
    columns = [values.split("; ") for *_, values in _KEPT]
    with source(path) as duck:
        duck.execute(f"CREATE TABLE t ({', '.join(f'c{place} {_KEPT[place][0]}' for place in places)})")
        for row in zip_longest(*columns, ["NULL"] * 6, fillvalue="NULL"):
            duck.execute(f"INSERT INTO t VALUES ({', '.join(row[:-1])})")
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        report = lake.import_duckdb(str(path)).collect()
        assert lake.current_snapshot().id == 1
    changed = {row.object for row in report if row.action == "changed"}
    expected, found = [], []
    for place, (kind, kept, _) in enumerate(_KEPT):
        text = f"CAST(CAST(c{place} AS VARCHAR) AS {kept})" if "VARCHAR" not in kept else f"CAST(c{place} AS {kept})"
        expected += [f"{text}::VARCHAR", quote(kept)]
        found += [f"c{place}::VARCHAR", f"typeof(c{place})"]
        is_same = kept in (kind, f"{kind.removesuffix('TZ')} WITH TIME ZONE")
        assert (f'"main"."t"."c{place}"' not in changed) == is_same, kind
    pairs = {f"SELECT {', '.join(expected)} FROM {_SOURCE}.t": f"SELECT {', '.join(found)} FROM lk.t"}
    assert_same_rows(file_catalog, path, pairs)
    assert_same_tables(file_catalog, spark, "t")


def test_times_that_only_duckdb_shows(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    path, far = tmp_path / "far.duckdb", "'0044-03-15 (BC)', 'infinity', '-infinity', NULL"
    kinds = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMPTZ", "TIMESTAMP_S": "TIMESTAMP"}
    with source(path) as duck:
        for number, kind in enumerate(kinds):
            duck.execute(f"CREATE TABLE t{number} AS SELECT CAST(v AS {kind}) AS v FROM (SELECT unnest([{far}]) AS v)")
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        lake.import_duckdb(str(path))
    pairs = {
        f"SELECT v::VARCHAR, '{kept}' FROM {_SOURCE}.t{number}":
        f"SELECT v::VARCHAR, replace(typeof(v), ' WITH TIME ZONE', 'TZ') FROM lk.t{number}"
        for number, kept in enumerate(kinds.values())
    }  # fmt: skip
    assert_same_rows(file_catalog, path, pairs)


_OBJECTS = r'''
    CREATE SCHEMA "select"; CREATE SCHEMA "it's ""odd"" 💧";
    CREATE TABLE plain (id INTEGER NOT NULL, v VARCHAR DEFAULT 'it''s', e VARCHAR DEFAULT '',
        ts TIMESTAMP DEFAULT now(), bo BOOLEAN DEFAULT true, ne DECIMAL(5,2) DEFAULT -1.5, i INTEGER DEFAULT '5',
        d DATE DEFAULT DATE '2020-01-01',
        dd DATE DEFAULT '2020-01-02', f DOUBLE DEFAULT 1e5, c INTEGER DEFAULT 1 + 2, n INTEGER DEFAULT NULL,
        "q u" VARCHAR DEFAULT 'x', b BLOB DEFAULT '\x00\xFF'::BLOB, s STRUCT(a INTEGER, "b c" VARCHAR[]));
    INSERT INTO plain (id) VALUES (1), (2);
    CREATE TABLE "select"."from" ("rowid" INTEGER, "💧 ""x""" VARCHAR);
    INSERT INTO "select"."from" VALUES (7, 'a'), (7, NULL);
    CREATE TABLE "it's ""odd"" 💧"."a.b/c=%20" (i INTEGER);
    CREATE VIEW first_one AS SELECT * FROM plain WHERE id > 0;
    CREATE VIEW middle (a, "b ""c") AS SELECT id, v FROM source.main.first_one;
    CREATE VIEW "select".ahead AS SELECT * FROM middle;
    CREATE MACRO plus(a, b := 2) AS a + b, (a, b, c) AS a;
    CREATE MACRO typed(x INTEGER, y VARCHAR := 'q') AS y || x;
    CREATE MACRO "select".ids(x) AS TABLE SELECT id FROM source.main.plain WHERE id <= x;
'''
_BEYOND = """
    CREATE SEQUENCE numbers; CREATE TYPE mood AS ENUM ('a', 'b');
    CREATE TABLE strict (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, m mood DEFAULT 'a', g INTEGER AS (id * 2),
        n BIGINT DEFAULT nextval('numbers'), l INTEGER[] DEFAULT [1], CHECK (u > 0));
    INSERT INTO strict (id, u) VALUES (1, 2), (2, 3);
    CREATE TABLE child (id INTEGER REFERENCES strict (id));
    CREATE INDEX places ON plain (v);
    CREATE VIEW moods AS SELECT * FROM strict WHERE m = 'a'::mood;
    CREATE VIEW of_moods AS SELECT * FROM moods;
    CREATE VIEW of_files AS SELECT * FROM read_csv('CSV');
    CREATE MACRO listed(c := [1, 2]) AS c;
    CREATE VIEW last_mood AS SELECT max(m) AS "last" FROM strict; COMMENT ON COLUMN last_mood.last IS 'z';
    CREATE VIEW again AS SELECT * FROM last_mood; COMMENT ON COLUMN first_one.v IS 'v';
    CREATE TABLE source (id INTEGER, person STRUCT(name VARCHAR)); CREATE TABLE person (id INTEGER, name VARCHAR);
    CREATE VIEW twofold AS SELECT source.person.name FROM source JOIN person USING (id);
    COMMENT ON TABLE plain IS 'it''s 💧'; COMMENT ON COLUMN plain.v IS 'v'; COMMENT ON VIEW middle IS 'between';
"""


def _make(path: Path, *statements: str) -> None:
    with source(path) as duck:
        for statement in statements:
            duck.execute(statement)


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of a path that the name makes no good one
_DATABASE = re.compile(rf'"?{_SOURCE}"?\.(?=main)')
_IDS = {f"{kind}_{what}" for kind in ("schema", "table", "view", "macro") for what in ("id", "uuid")}


def _without_ids(table: str, found: list[tuple[Any, ...]]) -> list[str]:
    """What the rows of a catalog's table say, but for ids, which the extension gives out in another order.

    It also leaves the name of the database in views and macros, where no lake has it.
    """
    names = TABLES[table].column_names
    told = ([(name, value) for name, value in zip(names, row, strict=True) if name not in _IDS] for row in found)
    return sorted(_DATABASE.sub("", _UUID.sub("uuid", repr(row))) for row in told)


def test_the_catalog_of_the_extension(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Where COPY FROM DATABASE goes, the catalog is the same, and DuckDB runs views and macros."""
    path, twin = tmp_path / "source.duckdb", DuckDBCatalog(tmp_path / "twin")
    (tmp_path / "twin").mkdir()
    _make(path, _OBJECTS)
    with attached(file_catalog, spark) as lake:
        lake.import_duckdb(str(path))
    with twin.reference() as reference:
        reference.execute(f"ATTACH {quote(str(path))} AS {_SOURCE} (READ_ONLY)", f"COPY FROM DATABASE {_SOURCE} TO lk")
    ours, theirs = rows(file_catalog), rows(twin)
    for name in ("schema", "table", "column", "view", "macro", "macro_impl", "macro_parameters"):
        found, expected = (_without_ids(f"ducklake_{name}", one[f"ducklake_{name}"]) for one in (ours, theirs))
        assert found == expected, name
    with file_catalog.reference() as reference:
        assert reference.rows('FROM "select".ahead') == [(1, "it's"), (2, "it's")]
        assert reference.rows('SELECT plus(1), plus(1, 5), typed(3), (SELECT max(id) FROM "select".ids(1))') == [
            (3, 6, "q3", 1)
        ]


@pytest.mark.one_catalog
def test_what_a_lake_does_not_have_is_told(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    path, csv = tmp_path / "source.duckdb", tmp_path / "rows.csv"
    csv.write_text("a,b\n1,2\n")
    _make(path, _OBJECTS, _BEYOND.replace("CSV", str(csv)))
    with attached(catalog, spark) as lake:
        planned = lake.import_duckdb(str(path), dry_run=True).collect()
        assert lake.current_snapshot().id == 0
        report = lake.import_duckdb(str(path)).collect()
        assert lake.current_snapshot().id == 1
        strict = lake.table("strict")
        assert [column.nulls_allowed for column in strict.columns] == [False, True, True, True, True, True]
        assert lake.table("plain").comment == "it's 💧"
        assert lake.table("plain").column_tags("v") == {"comment": "v"}
        assert {view.name: view.tags for view in lake.views()}["middle"] == {"comment": "between"}
        assert strict.read().select("id", "m", "g").orderBy("id").collect() == [(1, "a", 2), (2, "a", 4)]
        assert {view.name for view in lake.views()} == {
            "first_one", "middle", "ahead", "of_files", "last_mood", "again"
        }  # fmt: skip
    assert report == planned
    changed, bare = (
        "it may compare, sort and compute otherwise than before, by m of strict",
        "without the comments of its columns",
    )
    notes = {row.object.replace('"main".', ""): row.note for row in report if row.kind == "view"}
    assert [notes[name] for name in ('"last_mood"', '"again"', '"first_one"', '"middle"')] == [
        f"{bare}; {changed}", changed, bare, None
    ]  # fmt: skip
    told = {(row.object.replace('"main".', ""), row.kind): (row.action, row.rows) for row in report}
    for expected in (
        (('"strict"', "table"), ("brought", 2)), (('"child"', "table"), ("brought", 0)),
        (('"strict"', "constraint"), ("left", None)), (('"child"', "constraint"), ("left", None)),
        (('"strict"."m"', "column"), ("changed", None)), (('"strict"."g"', "generated column"), ("changed", None)),
        (('"strict"."n"', "default"), ("left", None)), (('"strict"."l"', "default"), ("left", None)),
        (('"places"', "index"), ("left", None)), (('"numbers"', "sequence"), ("left", None)),
        (('"mood"', "type"), ("left", None)), (('"moods"', "view"), ("left", None)),
        (('"of_moods"', "view"), ("left", None)), (('"twofold"', "view"), ("left", None)),
        (('"of_files"', "view"), ("brought", None)),
        (('"listed"', "macro"), ("left", None)), (('"plus"', "macro"), ("brought", None)),
        (('"select"', "schema"), ("brought", None)), (('"select"."ids"', "table macro"), ("brought", None)),
    ):  # fmt: skip
        assert told[expected[0]] == expected[1], expected
    with catalog.reference() as reference:
        assert reference.rows("SELECT id, v, ts IS NULL FROM plain ORDER BY ALL") == [
            (1, "it's", False),
            (2, "it's", False),
        ]
        assert reference.rows('FROM "select"."from" ORDER BY ALL') == [(7, "a"), (7, None)]


@pytest.mark.on_cluster_too
def test_large_tables_come_in_parts(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row numbers have gaps where rows were deleted; a table with a column of that name comes whole."""
    monkeypatch.setattr(table_plans, "_BYTES_OF_A_TASK", 2**18)
    path = tmp_path / "large.duckdb"
    with source(path) as duck:
        duck.execute("CREATE TABLE t AS SELECT range AS i, hash(range)::VARCHAR AS s FROM range(400_000)")
        duck.execute("DELETE FROM t WHERE i % 3 = 0 OR i < 130_000", "CHECKPOINT", "INSERT INTO t VALUES (-1, '💧')")
        duck.execute("CREATE TABLE named AS SELECT 5 AS rowid, range AS i FROM range(200_000)")
    with attached(file_catalog, spark) as lake:
        lake.import_duckdb(str(path))
        assert (lake.table("t").files().count(), lake.table("named").files().count()) == (2, 1)
    pairs = {f"FROM {_SOURCE}.{table}": f"FROM lk.{table}" for table in ("t", "named")}
    assert_same_rows(file_catalog, path, pairs)


def test_errors_leave_nothing(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    path, locked, secret, lake_path = (tmp_path / f"{name}.duckdb" for name in ("fine", "locked", "secret", "lake"))
    text = tmp_path / "text.duckdb"
    text.write_text("id,name\n1,x\n" * 1000)
    _make(path, 'CREATE TABLE t AS SELECT 1 AS i; CREATE SCHEMA s; CREATE TABLE s.t ("begin_snapshot" INTEGER)')
    _make(lake_path, "CREATE TABLE ducklake_metadata (key VARCHAR)")
    with Reference() as reference:
        reference.execute(f"ATTACH {quote(str(secret))} AS e (ENCRYPTION_KEY 'k')", "CREATE TABLE e.t AS SELECT 1")
        reference.execute("DETACH e")
    holder = duckdb.connect(str(locked))
    with attached(file_catalog, spark) as lake:
        cases: list[tuple[Path, dict[str, Any], str, type[Exception]]] = [
            (tmp_path / "none.duckdb", {}, "there is no DuckDB database", NotFoundError),
            (text, {}, "cannot be opened as a DuckDB database", InvalidError),
            (locked, {}, "close the connections", InvalidError),
            (secret, {}, "is encrypted", UnsupportedError),
            (lake_path, {}, "is the catalog of a lake", InvalidError),
            (path, {}, "table s.t of .* cannot be brought: .*begin_snapshot", InvalidError),
            (path, {"tables": ["t", "none"]}, 'has no table none; .*tables "main"."t"', NotFoundError),
            (path, {"schemas": ["none"]}, "has no schema none; there are the schemas main, s", NotFoundError),
        ]
        for file, options, reason, error in cases:
            with leaving_nothing(file_catalog, lake, reason, error):
                lake.import_duckdb(str(file), **options)
        with leaving_nothing(file_catalog, lake, "is not on a disk", UnsupportedError):
            lake.import_duckdb("s3://bucket/x.duckdb")
        with leaving_nothing(file_catalog, lake, "a path is empty"):
            lake.import_duckdb("")
        lake.import_duckdb(path, tables=["T"])
        assert [row.table_name for row in lake.tables().collect()] == ["t"]
        with leaving_nothing(file_catalog, lake, 'the lake has "main"."t" already', AlreadyExistsError):
            lake.import_duckdb(str(path), schemas=["main"])
    holder.close()


def test_an_import_that_fails_at_the_end_leaves_nothing(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "source.duckdb"
    _make(path, "CREATE TABLE t AS SELECT range AS i FROM range(100)")
    with attached(file_catalog, spark, data_inlining_row_limit=0) as lake:
        with monkeypatch.context() as changed:
            changed.setattr(DuckDBSource, "row_count", lambda self, table: 101)
            with leaving_nothing(
                file_catalog, lake, '100 rows of "main"."t" arrived, and DuckDB counts 101', PenstockError
            ):
                lake.import_duckdb(str(path))
        before = files_of(file_catalog)
        with suppress(ZeroDivisionError), lake.transaction():
            lake.import_duckdb(str(path))
            assert lake.table("t").read().count() / 0
        assert files_of(file_catalog) == before
        with lake.transaction(message="moved"):
            lake.import_duckdb(str(path))
            lake.table("t").delete("i < 50")
        assert (lake.current_snapshot().id, lake.table("t").read().count()) == (1, 50)
