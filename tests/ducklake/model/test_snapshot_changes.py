from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.ducklake.model.snapshot_changes import SnapshotChange, parse_changes, summarise

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4))
def test_names_with_commas_dots_and_quotes_stay_whole(names: list[tuple[str, str]]) -> None:
    values = [f"{_quoted(schema)}.{_quoted(table)}" for schema, table in names]
    text = ",".join(f"created_table:{value}" for value in values)
    assert parse_changes(text) == tuple(SnapshotChange("created_table", value) for value in values)


def test_summary_quotes_only_what_must_be() -> None:
    text = 'created_table:"main"."t",created_table:"main"."Weird ""name",created_table:"s"."order",inlined_insert:4'
    assert summarise(parse_changes(text), {"order"}) == {
        "tables_created": ["main.t", 'main."Weird ""name"', 's."order"'],
        "inlined_insert": ["4"],
    }


def test_no_changes() -> None:
    assert parse_changes(None) == ()
