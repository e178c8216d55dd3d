"""Schema evolution as pure rules: which rows a change ends and adds, what it refuses, and that history replays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.ducklake.catalog.objects import columns_at
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.model import schema_evolution
from penstock.ducklake.model.column_defaults import (
    NO_DEFAULT,
    Default,
    expression_default,
    literal_default,
    with_default,
)
from penstock.ducklake.model.objects import ColumnVersion
from penstock.ducklake.model.schema_evolution import ColumnRow, Evolution, check_names, column_rows, find_at, parse_path
from penstock.ducklake.model.type_promotions import may_promote, refusal
from penstock.errors import InvalidError, NotFoundError, PenstockError
from penstock.schema.columns import Column
from penstock.schema.types import Type, parse_type

FIVE = literal_default("5", "5")


def column(number: int, name: str, kind: str, *children: Column, default: Default = NO_DEFAULT) -> Column:
    return with_default(Column(number, name, parse_type(kind), 0, children=children), default)


def new(name: str, kind: str, *children: Column, default: Default = NO_DEFAULT) -> Column:
    return column(0, name, kind, *children, default=default)


TABLE: tuple[Column, ...] = (
    column(1, "id", "int32"),
    column(2, "s", "struct", column(3, "a", "int8"), column(4, "n", "struct", column(5, "x", "float32"))),
    column(6, "l", "list", column(7, "element", "struct", column(8, "a", "int32"), column(9, "b.c", "varchar"))),
    column(
        10,
        "m",
        "map",
        column(11, "key", "struct", column(12, "k", "int32"), column(13, "l", "int32")),
        column(14, "value", "struct", column(15, "y", "uint8"), column(16, "z", "date")),
    ),
    column(17, "d", "decimal(5,2)", default=literal_default("1.5", "1.50")),
)


def summary(change: Evolution) -> tuple[tuple[int, ...], list[tuple[int, str, str, int | None]]]:
    return change.ended, [(row.id, row.name, row.type, row.parent_id) for row in change.added]


def test_paths() -> None:
    assert parse_path("l.element.`b.c`") == parse_path('l.element."b.c"') == ("l", "element", "b.c")
    assert parse_path('"a""b".`c``d`') == ('a"b', "c`d")
    assert find_at(TABLE, "L.ELEMENT.`B.C`").id == 9
    assert find_at(TABLE, ("m", "value", "y")).id == 15
    for text in ("", ".", "a.", "a..b", '"a', "a`b`"):
        with pytest.raises(InvalidError, match="is not a path"):
            parse_path(text)
    with pytest.raises(NotFoundError, match=r"m\.value has no field 'q'; there are y, z"):
        find_at(TABLE, "m.value.q")


def test_adding() -> None:
    added = schema_evolution.add_column(
        TABLE, 18, (), new("n", "struct", new("q", "list", new("element", "uuid"))), has_rows=True
    )
    assert summary(added) == ((), [(18, "n", "struct", None), (19, "q", "list", 18), (20, "element", "uuid", 19)])
    field = schema_evolution.add_column(TABLE, 18, "m.value", new("c", "int32", default=FIVE), has_rows=True)
    assert field.added == (ColumnRow(18, 18, "c", "int32", 14, True, "5", "5", "literal", "duckdb"),)
    assert find_at(field.columns, "m.value.c").id == 18
    required = replace(new("r", "int32", default=FIVE), nulls_allowed=False)
    assert schema_evolution.add_column(TABLE, 18, (), required, has_rows=True).added[0].nulls_allowed is False


def test_dropping_ends_everything_inside() -> None:
    assert summary(schema_evolution.drop_column(TABLE, "m")) == ((10, 11, 12, 13, 14, 15, 16), [])
    assert summary(schema_evolution.drop_column(TABLE, "l.element.a")) == ((8,), [])


def test_renaming_keeps_default_and_place() -> None:
    renamed = schema_evolution.rename_column(TABLE, "d", "D2")
    assert renamed.ended == (17,)
    assert renamed.added == (ColumnRow(17, 17, "D2", "decimal(5,2)", None, True, "1.50", "1.5", "literal", "duckdb"),)
    assert summary(schema_evolution.rename_column(TABLE, "m.key.k", "K")) == ((12,), [(12, "K", "int32", 11)])
    assert summary(schema_evolution.rename_column(TABLE, "s", "s")) == ((), [])


def test_types() -> None:
    promoted = schema_evolution.set_type(TABLE, 18, "l.element.a", new("t", "int64"))
    assert summary(promoted) == ((8,), [(8, "a", "int64", 7)])
    assert summary(schema_evolution.set_type(TABLE, 18, "id", new("t", "int32"))) == ((), [])
    assert summary(schema_evolution.set_type(TABLE, 18, "m.key.k", new("t", "int64"))) == (
        (12,),
        [(12, "k", "int64", 11)],
    )


def test_a_whole_struct_type() -> None:
    """As the extension does it: fields are added, dropped and promoted at any depth, and their order stays."""
    inner = new("n", "struct", new("z", "int32"), new("x", "float64"))
    changed = schema_evolution.set_type(
        TABLE, 18, "s", new("t", "struct", new("w", "list", new("element", "date")), inner)
    )
    assert changed.ended == (3, 5)
    assert [(row.id, row.name, row.type, row.parent_id) for row in changed.added] == [
        (5, "x", "float64", 4),
        (20, "z", "int32", 4),
        (18, "w", "list", 2),
        (19, "element", "date", 18),
    ]
    assert [field.name for field in find_at(changed.columns, "s").children] == ["n", "w"]


def test_not_null_and_defaults() -> None:
    required = schema_evolution.set_not_null(TABLE, "id", has_nulls=False)
    assert [(row.id, row.nulls_allowed) for row in required.added] == [(1, False)]
    assert schema_evolution.drop_not_null(required.columns, "id").columns == TABLE
    changed = schema_evolution.set_default(TABLE, "d", expression_default("random()"))
    [row] = changed.added
    assert (row.initial_default, row.default_value, row.default_value_type) == ("1.50", "random()", "expression")
    [row] = schema_evolution.drop_default(changed.columns, "d").added
    assert (row.initial_default, row.default_value, row.default_value_type) == ("1.50", "NULL", "literal")
    assert schema_evolution.set_default(TABLE, "s.n.x", FIVE).ended == (5,)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda: schema_evolution.add_column(TABLE, 18, (), new("ID", "int32"), has_rows=False), "'id' has it"),
        (lambda: schema_evolution.add_column(TABLE, 18, "s.n", new("X", "int32"), has_rows=False), "'x' has it"),
        (lambda: schema_evolution.add_column(TABLE, 18, "l", new("q", "int32"), has_rows=False), r"at l\.element"),
        (lambda: schema_evolution.add_column(TABLE, 18, "id", new("q", "int32"), has_rows=False), "not a struct"),
        (
            lambda: schema_evolution.add_column(TABLE, 18, "m.key", new("q", "int32"), has_rows=False),
            "key of the map m",
        ),
        (lambda: schema_evolution.add_column(TABLE, 18, (), new("Row_Id", "int32"), has_rows=False), "reserved"),
        (
            lambda: schema_evolution.add_column(TABLE, 18, (), new("", "int32"), has_rows=False),
            "at least one character",
        ),
        (
            lambda: schema_evolution.add_column(
                TABLE, 18, (), new("q", "uuid", default=expression_default("uuid()")), has_rows=False
            ),
            "not constant",
        ),
        (
            lambda: schema_evolution.add_column(
                TABLE, 18, (), replace(new("q", "int32"), nulls_allowed=False), has_rows=True
            ),
            "give it a default",
        ),
        (
            lambda: schema_evolution.add_column(
                TABLE, 18, "s", replace(new("q", "int8"), nulls_allowed=False), has_rows=False
            ),
            "whole columns only",
        ),
        (lambda: schema_evolution.drop_column(TABLE[:1], "id"), "all that the table has"),
        (lambda: schema_evolution.drop_column(TABLE, "s.n.x"), r"all that the struct s\.n has"),
        (lambda: schema_evolution.drop_column(TABLE, "l.element"), "not a struct"),
        (lambda: schema_evolution.drop_column(TABLE, "m.key.k"), "keys must stay distinct"),
        (lambda: schema_evolution.drop_column(TABLE, "s", in_use={5: "the table is sorted by it"}), "sorted by it"),
        (lambda: schema_evolution.drop_column(TABLE, "nope"), "no column 'nope'; there are id, s, l, m, d"),
        (lambda: schema_evolution.rename_column(TABLE, "l.element", "e"), "not a struct"),
        (lambda: schema_evolution.rename_column(TABLE, "s.a", "N"), "'n' has it"),
        (lambda: schema_evolution.rename_column(TABLE, "id", "end_snapshot"), "reserved"),
        (lambda: schema_evolution.set_type(TABLE, 18, "id", new("t", "int16")), "int32 cannot become int16: .* int64"),
        (lambda: schema_evolution.set_type(TABLE, 18, "d", new("t", "decimal(9,2)")), "cannot be changed"),
        (lambda: schema_evolution.set_type(TABLE, 18, "s", new("t", "int32")), "struct cannot become int32"),
        (
            lambda: schema_evolution.set_type(TABLE, 18, "m.key", new("t", "struct", new("k", "int64"))),
            "are the key of a map",
        ),
        (
            lambda: schema_evolution.set_type(
                TABLE, 18, "s", new("t", "struct", new("a", "int8")), in_use={5: "it is a partition column"}
            ),
            "partition column",
        ),
        (lambda: schema_evolution.set_not_null(TABLE, "s.a", has_nulls=False), "whole columns only"),
        (lambda: schema_evolution.set_not_null(TABLE, "id", has_nulls=True), "holds NULLs"),
        (lambda: schema_evolution.drop_not_null(TABLE, "id"), "no NOT NULL"),
        (lambda: schema_evolution.set_default(TABLE, "s", FIVE), "no defaults for nested types"),
    ],
)
def test_refusals(change: Callable[[], Evolution], why: str) -> None:
    with pytest.raises((InvalidError, NotFoundError), match=why):
        change()


def test_names_of_a_table() -> None:
    check_names((*TABLE, column(30, "Id ", "int8")))
    for columns, why in (
        ((), "at least one column"),
        ((column(1, "a", "int8"), column(2, "A", "int8")), "two columns named 'A'"),
        ((column(1, "s", "struct", column(2, "a", "int8"), column(3, "A", "int8")),), "struct 's' has two"),
        ((column(1, "", "int8"),), "at least one character"),
        ((column(1, "_ducklake_internal_row_id", "int8"),), "reserved"),
    ):
        with pytest.raises(InvalidError, match=why):
            check_names(columns)
    check_names((column(1, "s", "struct", column(2, "row_id", "int8")),))
    check_names((column(1, "row_id", "int8"),), inlining=False)


def test_promotions() -> None:
    assert may_promote(Type("uint8"), Type("uint64"))
    assert not may_promote(Type("uint8"), Type("int16"))
    assert refusal(Type("float64"), Type("float32")).endswith("the type of a column of float64 cannot be changed")


NAMES = st.sampled_from(["a", "b", "A", "x.y"])
KINDS = st.sampled_from(["int8", "int32", "int64", "uint8", "float32", "float64", "varchar"])
TREES = st.recursive(
    st.builds(new, NAMES, KINDS, default=st.sampled_from([NO_DEFAULT, FIVE])),
    lambda inner: st.one_of(
        st.builds(
            lambda name, fields: new(name, "struct", *{f.name.lower(): f for f in fields}.values()),
            NAMES,
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda name, child: new(name, "list", replace(child, name="element")), NAMES, inner),
        st.builds(
            lambda name, key, value: new(name, "map", replace(key, name="key"), replace(value, name="value")),
            NAMES,
            inner,
            inner,
        ),
    ),
    max_leaves=5,
)


def _paths(columns: Iterable[Column], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [
        path for column in columns for path in ((*above, column.name), *_paths(column.children, (*above, column.name)))
    ]


@st.composite
def _change(draw: st.DrawFn, columns: tuple[Column, ...], next_id: int) -> Evolution | None:
    path = draw(st.sampled_from(_paths(columns)))
    operation = draw(st.sampled_from(["add", "add", "drop", "rename", "type", "type", "null", "default"]))
    try:
        match operation:
            case "add":
                parent = draw(st.sampled_from([(), path]))
                return schema_evolution.add_column(columns, next_id, parent, draw(TREES), has_rows=True)
            case "drop":
                return schema_evolution.drop_column(columns, path)
            case "rename":
                return schema_evolution.rename_column(columns, path, draw(NAMES))
            case "type":
                return schema_evolution.set_type(columns, next_id, path, draw(TREES))
            case "null":
                if find_at(columns, path).nulls_allowed:
                    return schema_evolution.set_not_null(columns, path, has_nulls=False)
                return schema_evolution.drop_not_null(columns, path)
            case _:
                return schema_evolution.set_default(columns, path, draw(st.sampled_from([NO_DEFAULT, FIVE])))
    except PenstockError:
        return None


def _version(row: ColumnRow, snapshot: int) -> ColumnVersion:
    defaults = (row.initial_default, row.default_value, row.default_value_type, row.default_value_dialect)
    column = Column(row.id, row.name, parse_type(row.type), snapshot, row.nulls_allowed, *defaults)
    return ColumnVersion(column, row.parent_id, row.order, None)


def _undated(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, begin_snapshot=0, children=_undated(column.children)) for column in columns)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_history_replays(data: st.DataObject) -> None:
    columns, trees = TABLE, {0: TABLE}
    versions = [_version(row, 0) for row in column_rows(columns)]
    for snapshot in range(1, 8):
        used = {version.column.id for version in versions}
        change = data.draw(_change(columns, max(used) + 1))
        if change is None:
            continue
        current = {v.column.id for v in versions if v.end_snapshot is None}
        assert set(change.ended) <= current
        fresh = [row.id for row in change.added if row.id not in change.ended]
        assert not used & set(fresh)
        versions = [
            replace(v, end_snapshot=snapshot) if v.end_snapshot is None and v.column.id in change.ended else v
            for v in versions
        ]
        versions.extend(_version(row, snapshot) for row in change.added)
        columns = trees[snapshot] = change.columns
        ids = [item.id for column in columns for item in column.walk()]
        assert len(ids) == len(set(ids))
        check_names(columns)
    for snapshot, tree in trees.items():
        assert _undated(columns_at(versions, At(snapshot))) == _undated(tree)
