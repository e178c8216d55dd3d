"""Queries, macros and defaults of a DuckDB database, as a lake keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from penstock.ducklake.moving.duckdb_macros import exported_definitions, source_macros
from penstock.ducklake.moving.duckdb_source import duckdb_source
from penstock.ducklake.moving.query_names import SourceNames, lake_query
from penstock.ducklake.moving.texts import lake_default
from penstock.ducklake.writing.duckdb_macros import parameter_list
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import Type, parse_type
from penstock.storage.duckdb_sql import duckdb_quoted

_NAMES = SourceNames(
    "shop", {"main", "s"}, {"t", "u"}, {"a", "b", "id", "customer"}, {("main", "f"), ("", "f")}
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT * FROM shop.main.t", "SELECT * FROM main.t"),
        ("SELECT * FROM shop.t", "SELECT * FROM t"),
        ("SELECT shop.t.a, shop.main.f(a) FROM SHOP.t", "SELECT t.a, main.f(a) FROM t"),
        ("SELECT shop.f(a) FROM s.t AS x", "SELECT f(a) FROM s.t AS x"),
        ("SELECT 'shop.t'   AS shop FROM t", "SELECT 'shop.t'   AS shop FROM t"),
        ("SELECT a FROM (SELECT * FROM shop.main.t) WHERE EXISTS (SELECT b FROM shop.s.u)",
         "SELECT a FROM (SELECT * FROM main.t) WHERE EXISTS(SELECT b FROM s.u)"),
        ("SELECT  *  FROM other.main.t", "SELECT  *  FROM other.main.t"),
        ("SELECT count(*) AS t FROM shop.t", "SELECT count_star() AS t FROM t"),
        ("SELECT t.* EXCLUDE (shop.main.t.a) FROM shop.t", "SELECT t.* EXCLUDE (main.t.a) FROM t"),
        ("SELECT shop.address.city FROM 'f.json'", "SELECT shop.address.city FROM 'f.json'"),
        ("SELECT shop.upper(), shop.f() FROM shop.t", "SELECT shop.upper(), f() FROM t"),
    ],
)  # fmt: skip
def test_names_do_not_begin_with_the_database(query: str, kept: str) -> None:
    assert lake_query(query, _NAMES) == kept


def test_a_schema_may_be_called_like_the_database() -> None:
    assert lake_query("SELECT * FROM shop.t", replace(_NAMES, schemas={"main", "shop"})) == "SELECT * FROM shop.t"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT shop.customer.a FROM shop JOIN customer USING (id)",  # a field of shop's column, or customer's column
        "SELECT shop.t.a FROM shop.t JOIN (SELECT 1 AS shop) ON true",
        "SELECT shop.t.a FROM shop.t JOIN u AS shop USING (id)",
        "SELECT (SELECT shop.t.a FROM (SELECT 2 AS a) AS t) FROM shop.t",
        "WITH t AS (SELECT 1 AS a) SELECT * FROM shop.t",
    ],
)
def test_names_that_may_mean_two_things_are_refused(query: str) -> None:
    with pytest.raises(UnsupportedError, match="make it anew without the database's name"):
        lake_query(query, replace(_NAMES, tables={"t", "u", "shop", "customer"}))


def test_a_field_is_no_column_of_the_database() -> None:
    query = "SELECT shop.customer.name FROM shop"
    assert lake_query(query, replace(_NAMES, tables={"shop"})) == query


@pytest.mark.parametrize("file", ["my.shop.duckdb", "main.duckdb", "temp.db", 'it\'s "odd" 💧.v1'])
def test_the_name_that_duckdb_gives_to_a_database(tmp_path: Path, file: str) -> None:
    with duckdb.connect(tmp_path / file) as connection:
        [[name]] = connection.execute("SELECT current_database()").fetchall()
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.execute(f"CREATE VIEW v AS SELECT {duckdb_quoted(name)}.main.t.a FROM {duckdb_quoted(name)}.main.t")
    with duckdb_source(str(tmp_path / file)) as source:
        [view], names = source.views(), source.names()
    assert lake_query(view.query, names) == "SELECT main.t.a FROM main.t"


def test_macros_with_names_that_duckdb_exports_without_quotes(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS shop (STORAGE_VERSION 'v1.5.0')")
        connection.execute('USE shop; CREATE SCHEMA "s) := \'x"; CREATE TABLE t (i INTEGER)')
        for macro in (
            'odd("a b", "sel;ect" := \'é💧) AS (\') AS "a b"',
            "ways(a, b := 1 + 1, c := DATE '2020-01-01') AS a + b, (a) AS TABLE_NAME(a)".replace("TABLE_NAME(a)", "a"),
            "\"s) := 'x\".rows(x INTEGER, y := 'it''s') AS TABLE SELECT * FROM shop.main.t WHERE i = x",
            "none(a := NULL) AS a",
        ):
            connection.execute(f"CREATE MACRO {macro}")
    with duckdb_source(str(path)) as source:
        exported = exported_definitions(source)
        found, refused = {}, []
        for macro in source_macros(source):
            try:
                found[macro.name] = macro.in_lake(source, exported, source.names()).implementations
            except UnsupportedError as error:
                refused.append((macro.name, str(error)))
    told = {
        name: [(way.type, way.sql, [tuple(vars(one).values()) for one in way.parameters]) for way in ways]
        for name, ways in found.items()
    }
    unknown = ("NULL", "unknown")
    assert told == {
        "odd": [("scalar", '"a b"', [("a b", "unknown", *unknown), ("sel;ect", "unknown", "é💧) AS (", "varchar")])],
        "ways": [
            ("scalar", "(a + b)", [("a", "unknown", *unknown), ("b", "unknown", "2", "int32"),
                                   ("c", "unknown", "2020-01-01", "date")]),
            ("scalar", "a", [("a", "unknown", *unknown)]),
        ],
        "rows": [("table", "SELECT * FROM main.t WHERE (i = x)",
                  [("x", "int32", *unknown), ("y", "unknown", "it's", "varchar")])],
    }  # fmt: skip
    assert refused == [("none", "the default of its parameter a is NULL, which DuckLake takes for none")]


_DEFAULTS = {
    "5": "int32", "5::BIGINT": "int64", "5::UTINYINT": "uint8", "0.1": "decimal(2,1)", "0.1::FLOAT": "float32",
    "1e5": "float64", "1.5::DECIMAL(10,4)": "decimal(10,4)", "'{}'::JSON": "json", "'x'": "varchar",
    "now()": "timestamptz", "18446744073709551615::UBIGINT": "uint64", "true": "boolean",
}  # fmt: skip


def test_defaults_of_macros_keep_values_and_types(tmp_path: Path) -> None:
    """DuckDB computes them when a macro is made, and exports numbers without their types."""
    path, told = tmp_path / "shop.duckdb", "typeof(b) || ' ' || b"
    with duckdb.connect(path) as connection:
        connection.execute("SET TimeZone = 'UTC'; CREATE TABLE t AS SELECT 1 AS i")
        for number, sql in enumerate(_DEFAULTS):
            connection.execute(f"CREATE MACRO m{number}(a, b := {sql}) AS a || {told}")
        connection.execute("CREATE MACRO sums(a, b := 0.1::FLOAT) AS a + b")
        connection.execute("CREATE MACRO rows(b := 5::BIGINT) AS TABLE SELECT b AS x FROM t")
        connection.execute("CREATE MACRO away(b := 5::BIGINT) AS (SELECT i + b FROM shop.main.t)")
        connection.execute("CREATE MACRO bits(a, b := '10'::BIT) AS a || b")
        expected = [connection.execute(f"SELECT m{number}('')").fetchall() for number in range(len(_DEFAULTS))]
    with duckdb_source(str(path)) as source:
        exported, names = exported_definitions(source), source.names()
        macros = {macro.name: macro for macro in source_macros(source)}
        made = {name: macro.in_lake(source, exported, names) for name, macro in macros.items()}
    types = {name: one.implementations[0].parameters[-1].default_value_type for name, one in made.items()}
    assert types == {f"m{number}": kind for number, kind in enumerate(_DEFAULTS.values())} | {
        "sums": "float32", "rows": "int64", "away": "int32", "bits": "int32",
    }  # fmt: skip
    notes = {name: one.notes for name, one in made.items() if one.notes}
    assert notes == {
        name: (f"the default {value} of b is int32: DuckDB does not tell of which type it was",)
        for name, value in (("away", 5), ("bits", 10))
    }
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; CREATE TABLE t AS SELECT 1 AS i")
        for name, one in made.items():
            [way] = one.implementations
            kind = " TABLE" if way.type == "table" else ""
            connection.execute(f"CREATE MACRO {name}({parameter_list(way)}) AS{kind} {way.sql}")
        assert [connection.execute(f"SELECT m{number}('')").fetchall() for number in range(len(_DEFAULTS))] == expected


def test_a_default_that_is_computed_again_is_refused(tmp_path: Path) -> None:
    """Files of an older DuckDB may have one."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE MACRO m(a, b := 5) AS a")
    with duckdb_source(str(path)) as source:
        [macro], exported = source_macros(source), exported_definitions(source)
        with pytest.raises(UnsupportedError, match=r"parameter b is no plain constant: now\(\)"):
            macro.in_lake(source, exported.replace("5", "now()"), source.names())


@pytest.mark.parametrize(
    ("kind", "sql", "value", "type", "initial"),
    [
        ("varchar", "'it''s'", "it's", "literal", "it's"),
        ("varchar", "'NULL'", "'NULL'", "expression", "NULL"),
        ("varchar", "NULL", "NULL", "literal", None),
        ("int32", "'5'", "5", "literal", "5"),
        ("decimal(5,2)", "-1.5", "-1.5", "literal", "-1.50"),
        ("timestamp", "now()", "now()", "expression", None),
        ("boolean", "CAST('t' AS BOOLEAN)", "CAST('t' AS BOOLEAN)", "expression", None),
    ],
)
def test_defaults(kind: str, sql: str, value: str, type: str, initial: str | None) -> None:
    found = lake_default(Column(1, "c", parse_type(kind), 0), sql)
    assert (found.value, found.kind, found.initial) == (value, type, initial)


@pytest.mark.parametrize(
    ("kind", "sql", "reason"),
    [
        (Type("int64"), "nextval('numbers')", "numbers"),
        (Type("int32"), "'x'", "x"),
        (Type("varchar"), "'a'::mood", "mood"),
        (Type("list"), "[1]", "nested"),
    ],
)
def test_defaults_that_no_lake_has(kind: Type, sql: str, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        lake_default(Column(1, "c", kind, 0), sql)
