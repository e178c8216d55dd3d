"""A DuckDB database that is brought into a lake: DuckDB reads both, and finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock.ducklake.catalog.catalog_tables import TABLES
from penstock.errors import AlreadyExistsError, InvalidError, NotFoundError, UnsupportedError
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_same_tables
from support.dumps import rows
from support.reference import Reference, identifier, quote
from support.writing import attached, leaving_nothing

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
    ("DATE", "DATE", "'0044-03-15 (BC)'; '1969-12-31'; '9999-12-31'; 'infinity'; '-infinity'"),
    ("TIME", "TIME", "'00:00:00'; '23:59:59.999999'"),
    ("TIME", "VARCHAR", "'24:00:00'; '12:00:00.000001'"),
    ("TIME_NS", "TIME", "'23:59:59.999999'; '00:00:00'"),
    ("TIME_NS", "VARCHAR", "'23:59:59.999999999'; '00:00:00'"),
    ("TIMETZ", "TIME WITH TIME ZONE", "'23:59:59.999999+00'; '00:00:00+00'"),
    ("TIMETZ", "VARCHAR", "'24:00:00+00'; '12:00:00+05:30'"),
    ("TIMESTAMP", "TIMESTAMP", "'1582-10-15 00:00:00.000001'; '9999-12-31 23:59:59.999999'; 'infinity'; '-infinity'"),
    ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "'1900-01-01 00:00:00+05:30'; '2024-06-30 23:59:59.999999-08'"),
    ("TIMESTAMP_S", "TIMESTAMP_S", "'1900-01-01 00:00:01'; '9999-12-31 23:59:59'"),
    ("TIMESTAMP_S", "TIMESTAMP", "'1900-01-01 00:00:01'; 'infinity'"),
    ("TIMESTAMP_MS", "TIMESTAMP_MS", "'1900-01-01 00:00:00.001'; '9999-12-31 23:59:59.999'"),
    ("TIMESTAMP_NS", "TIMESTAMP_NS", "'1900-01-01 00:00:00.000000001'; '2262-04-11 23:47:16.854775806'"),
    ("INTERVAL", "INTERVAL", "'1 year 2 months 3 days 04:05:06.789'; '0 seconds'"),
    ("INTERVAL", "VARCHAR", "'-1 month'; '00:00:00.000001'"),
    ("UUID", "UUID", "'00000000-0000-0000-0000-000000000000'; 'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    ("JSON", "JSON", """'{"a": [1, null, "it''s"]}'; 'null'; '1e400'"""),
    ("VARIANT", "VARIANT", "5::VARIANT; {'a': [1, 2]}::VARIANT; 'x'::VARIANT"),
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


_OBJECTS = r'''
    CREATE SCHEMA "select"; CREATE SCHEMA "it's ""odd"" 💧"; CREATE SEQUENCE numbers; CREATE TYPE mood AS ENUM ('a', 'b');
    CREATE TABLE plain (id INTEGER NOT NULL, v VARCHAR DEFAULT 'it''s', e VARCHAR DEFAULT '', ts TIMESTAMP DEFAULT now(),
        bo BOOLEAN DEFAULT true, ne DECIMAL(5,2) DEFAULT -1.5, i INTEGER DEFAULT '5', d DATE DEFAULT DATE '2020-01-01',
        dd DATE DEFAULT '2020-01-02', f DOUBLE DEFAULT 1e5, c INTEGER DEFAULT 1 + 2, n INTEGER DEFAULT NULL,
        "q u" VARCHAR DEFAULT 'x', b BLOB DEFAULT '\x00\xFF'::BLOB, s STRUCT(a INTEGER, "b c" VARCHAR[]));
    INSERT INTO plain (id) VALUES (1), (2);
    CREATE TABLE "select"."from" ("rowid" INTEGER, "💧 ""x""" VARCHAR);
    INSERT INTO "select"."from" VALUES (7, 'a'), (7, NULL);
    CREATE TABLE "it's ""odd"" 💧"."a.b/c=%20" (i INTEGER);
    CREATE VIEW "select".last AS SELECT * FROM middle;
    CREATE VIEW middle (a, "b ""c") AS SELECT id, v FROM source.main.first_one;
    CREATE VIEW first_one AS SELECT * FROM plain WHERE id > 0;
    CREATE MACRO plus(a, b := 2) AS a + b, (a) AS a;
    CREATE MACRO typed(x INTEGER, y VARCHAR := 'q') AS y || x;
    CREATE MACRO "select".ids(x) AS TABLE SELECT id FROM source.main.plain WHERE id <= x;
'''
_BEYOND = """
    CREATE TABLE strict (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, m mood DEFAULT 'a', g INTEGER AS (id * 2),
        n BIGINT DEFAULT nextval('numbers'), l INTEGER[] DEFAULT [1], CHECK (u > 0));
    INSERT INTO strict (id, u) VALUES (1, 2), (2, 3);
    CREATE TABLE child (id INTEGER REFERENCES strict (id));
    CREATE INDEX places ON plain (v);
    CREATE VIEW moods AS SELECT * FROM strict WHERE m = 'a'::mood;
    CREATE VIEW of_moods AS SELECT * FROM moods;
    CREATE VIEW of_files AS SELECT * FROM read_csv('/nowhere.csv');
    CREATE MACRO listed(c := [1, 2]) AS c;
    COMMENT ON TABLE plain IS 'it''s 💧'; COMMENT ON COLUMN plain.v IS 'v'; COMMENT ON VIEW middle IS 'between';
"""


def _make(path: Path, *statements: str) -> None:
    with source(path) as duck:
        for statement in statements:
            duck.execute(statement)


_IDS = {f"{kind}_{what}" for kind in ("schema", "table", "view", "macro") for what in ("id", "uuid")}


def _without_ids(table: str, found: list[tuple[Any, ...]]) -> list[str]:
    """What the rows of a catalog's table say, but for ids, which the extension gives out in another order."""
    names = TABLES[table].column_names
    return sorted(
        repr([(name, value) for name, value in zip(names, row, strict=True) if name not in _IDS]) for row in found
    )


def test_the_catalog_of_the_extension(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Where COPY FROM DATABASE goes, the catalog is the same, and DuckDB runs views and macros."""
    path, twin = tmp_path / "source.duckdb", DuckDBCatalog(tmp_path / "twin")
    (tmp_path / "twin").mkdir()
    _make(path, _OBJECTS.replace("CREATE SEQUENCE numbers;", ""))
    with attached(file_catalog, spark) as lake:
        lake.import_duckdb(str(path))
    with twin.reference() as reference:
        reference.execute(f"ATTACH {quote(str(path))} AS {_SOURCE} (READ_ONLY)", f"COPY FROM DATABASE {_SOURCE} TO lk")
    ours, theirs = rows(file_catalog), rows(twin)
    for name in ("schema", "table", "column", "view", "macro", "macro_impl", "macro_parameters"):
        found, expected = (_without_ids(f"ducklake_{name}", one[f"ducklake_{name}"]) for one in (ours, theirs))
        assert found == expected, name
    with file_catalog.reference() as reference:
        assert reference.rows('FROM "select".last') == [(1, "it's"), (2, "it's")]
        assert reference.rows('SELECT plus(1), plus(1, 5), typed(3), (SELECT max(id) FROM "select".ids(1))') == [
            (1, 6, "q3", 1)
        ]
