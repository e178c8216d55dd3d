"""The rows that a schema change ends and adds are those that DuckDB's extension writes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.column_defaults import NO_DEFAULT, expression_default, literal_default, with_default
from penstock.ducklake.model.schema_evolution import ColumnRow, Evolution, column_rows
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.catalogs import Catalog
from support.reference import METADATA, Reference

Change = Callable[[tuple[Column, ...], int], Evolution]
CREATED = """CREATE TABLE t (
    id BIGINT NOT NULL, s STRUCT(a INTEGER, b VARCHAR, n STRUCT(x INTEGER, y INTEGER)),
    l STRUCT(a INTEGER, b INTEGER)[], m MAP(VARCHAR, STRUCT(p UTINYINT, o INTEGER)),
    d DECIMAL(5,2) DEFAULT 1.5, f FLOAT, r DOUBLE)"""


def _new(name: str, kind: str, *children: Column) -> Column:
    return with_default(Column(0, name, parse_type(kind), 0, children=children), NO_DEFAULT)


SEVEN = with_default(_new("c", "int32"), literal_default("7", "7"))
STRUCT = _new("t", "struct", _new("b", "varchar"), _new("a", "int64"), _new("n", "struct", _new("y", "int32"), SEVEN))
STEPS: list[tuple[str, Change]] = [
    ("ADD COLUMN c INTEGER DEFAULT 7", lambda t, i: schema_evolution.add_column(t, i, (), SEVEN, has_rows=False)),
    (
        "ADD COLUMN s.n.c INTEGER DEFAULT 7",
        lambda t, i: schema_evolution.add_column(t, i, "s.n", SEVEN, has_rows=False),
    ),
    (
        "ADD COLUMN m.value.q STRUCT(r DATE)[]",
        lambda t, i: schema_evolution.add_column(
            t, i, "m.value", _new("q", "list", _new("element", "struct", _new("r", "date"))), has_rows=False
        ),
    ),
    ("RENAME d TO dd", lambda t, i: schema_evolution.rename_column(t, "d", "dd")),
    ("RENAME l.element.a TO aa", lambda t, i: schema_evolution.rename_column(t, "l.element.a", "aa")),
    ("ALTER f SET TYPE DOUBLE", lambda t, i: schema_evolution.set_type(t, i, "f", _new("t", "float64"))),
    (
        "ALTER s SET TYPE STRUCT(b VARCHAR, a BIGINT, n STRUCT(y INTEGER, c INTEGER))",
        lambda t, i: schema_evolution.set_type(t, i, "s", STRUCT),
    ),
    ("ALTER id DROP NOT NULL", lambda t, i: schema_evolution.drop_not_null(t, "id")),
    ("ALTER c SET DEFAULT 9", lambda t, i: schema_evolution.set_default(t, "c", literal_default("9", "9"))),
    ("ALTER r SET DEFAULT random()", lambda t, i: schema_evolution.set_default(t, "r", expression_default("random()"))),
    ("ALTER c DROP DEFAULT", lambda t, i: schema_evolution.drop_default(t, "c")),
    ("DROP COLUMN m.value.o", lambda t, i: schema_evolution.drop_column(t, "m.value.o")),
    ("DROP COLUMN l", lambda t, i: schema_evolution.drop_column(t, "l")),
    ("ADD COLUMN l VARCHAR", lambda t, i: schema_evolution.add_column(t, i, (), _new("l", "varchar"), has_rows=False)),
]


def test_rows_of_every_change(duckdb_catalog: Catalog) -> None:
    columns = _table()
    used = len(list(column_rows(columns)))
    with duckdb_catalog.build() as reference:
        reference.execute(CREATED)
        assert _rows(reference, "begin") == _comparable(column_rows(columns))
        for sql, change in STEPS:
            made = change(columns, used + 1)
            columns = made.columns
            used = max(used, *(row.id for row in made.added), 0)
            reference.execute(f"ALTER TABLE t {sql}")
            assert _rows(reference, "begin") == _comparable(made.added), sql
            assert {row[0] for row in _rows(reference, "end")} == set(made.ended), sql


def _table() -> tuple[Column, ...]:
    inner = _new("n", "struct", _new("x", "int32"), _new("y", "int32"))
    value = _new("value", "struct", _new("p", "uint8"), _new("o", "int32"))
    fields = (
        _new("id", "int64"),
        _new("s", "struct", _new("a", "int32"), _new("b", "varchar"), inner),
        _new("l", "list", _new("element", "struct", _new("a", "int32"), _new("b", "int32"))),
        _new("m", "map", _new("key", "varchar"), value),
        with_default(_new("d", "decimal(5,2)"), literal_default("1.5", "1.50")),
        _new("f", "float32"),
        _new("r", "float64"),
    )
    columns: tuple[Column, ...] = ()
    for field in fields:
        next_id = 1 + len(list(column_rows(columns)))
        columns = schema_evolution.add_column(columns, next_id, (), field, has_rows=False).columns
    return schema_evolution.set_not_null(columns, "id", has_nulls=False).columns


def _rows(reference: Reference, edge: str) -> list[tuple[object, ...]]:
    """The versions that begin, or end, with the newest snapshot.

    Of fields that change, the extension loses the default and the nullability: those are left out.
    """
    return reference.rows(
        f"""SELECT column_id, column_order, column_name, column_type, parent_column,
                CASE WHEN parent_column IS NULL THEN [nulls_allowed::VARCHAR, initial_default, default_value,
                    default_value_type, default_value_dialect] END
            FROM {METADATA}.ducklake_column
            WHERE {edge}_snapshot = (SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot) ORDER BY column_id"""
    )


def _comparable(rows: Iterable[ColumnRow]) -> list[tuple[object, ...]]:
    return [_visible(row) for row in sorted(rows, key=lambda row: row.id)]


def _visible(row: ColumnRow) -> tuple[object, ...]:
    top = [
        str(row.nulls_allowed).lower(),
        row.initial_default,
        row.default_value,
        row.default_value_type,
        row.default_value_dialect,
    ]
    return row.id, row.order, row.name, row.type, row.parent_id, top if row.parent_id is None else None
