"""The rules of conflict, as a table: what a transaction does, what others did meanwhile, and what stands in its way."""

from __future__ import annotations

import pytest

from penstock.ducklake.catalog.commits.conflicts import Conflict, OtherChanges, find_conflict
from penstock.ducklake.model.snapshot_changes import parse_changes

SCHEMAS = {0: "main", 1: "Sales", 3: 'odd, "one"'}

CREATED_TOO = "was created by another writer too"
DROPPED_TOO = "was dropped by another writer too"
DROPPED = "was dropped by another writer"
ALTERED = "was altered by another writer"
DELETED = "lost rows that another writer deleted"
COMPACTED = "was compacted by another writer"
NO_SCHEMA = "lost its schema, which was dropped by another writer"
NEW_ENTRY = "got a new entry by another writer"
UNCHECKED = "got rows by another writer that were not checked"

# What the transaction does, what another writer did, and the event, if that is a conflict.
RULES = [
    # Schemas
    ('created_schema:"s"', 'created_schema:"S"', CREATED_TOO),
    ('created_schema:"s"', 'created_schema:"t",created_table:"main"."s",dropped_schema:1', None),
    ("dropped_schema:1", "dropped_schema:1", DROPPED_TOO),
    ("dropped_schema:1", "dropped_schema:3", None),
    ("dropped_schema:1", 'created_table:"sales"."t"', NEW_ENTRY),
    ("dropped_schema:1", 'created_view:"sales"."t"', NEW_ENTRY),
    ("dropped_schema:1", 'created_scalar_macro:"SALES"."m"', NEW_ENTRY),
    ("dropped_schema:3", 'created_table:"odd, ""one"""."t"', NEW_ENTRY),
    ("dropped_schema:1", 'created_table:"main"."sales",inserted_into_table:1,altered_table:1', None),
    # Tables and views
    ('created_table:"main"."t"', 'created_table:"main"."T"', CREATED_TOO),
    ('created_table:"main"."t"', 'created_view:"main"."t"', CREATED_TOO),
    ('created_view:"main"."t"', 'created_table:"main"."t"', CREATED_TOO),
    ('created_table:"main"."t"', 'created_table:"sales"."t",created_table:"main"."u"', None),
    ('created_table:"main"."t"', 'created_scalar_macro:"main"."t"', None),
    ('created_table:"sales"."t"', "dropped_schema:1", NO_SCHEMA),
    ('created_view:"SALES"."t"', "dropped_schema:1", NO_SCHEMA),
    ('created_table:"main"."t"', "dropped_schema:1,dropped_table:1", None),
    ('created_table:"new"."t"', "dropped_schema:1", None),
    ("dropped_table:5", "dropped_table:5", DROPPED_TOO),
    ("dropped_table:5", "dropped_view:5,dropped_table:6", None),
    ("dropped_table:5", "altered_table:5,inserted_into_table:5,inlined_delete:5,merge_adjacent:5", None),
    ("dropped_view:5", "dropped_view:5", DROPPED_TOO),
    ("altered_table:5", "dropped_table:5", DROPPED),
    ("altered_table:5", "altered_table:5", f"{ALTERED} too"),
    ("altered_table:5", "altered_table:6,altered_view:5,dropped_view:5", None),
    ("altered_table:5", "inserted_into_table:5,deleted_from_table:5,merge_adjacent:5,inline_flush:5", None),
    ("checked_table:5", "inserted_into_table:5", UNCHECKED),
    ("checked_table:5", "inlined_insert:5", UNCHECKED),
    ("checked_table:5", "deleted_from_table:5,inlined_delete:5,merge_adjacent:5,inserted_into_table:6", None),
    ("altered_view:5", "dropped_view:5", DROPPED),
    ("altered_view:5", "altered_view:5", f"{ALTERED} too"),
    # Macros
    ('created_scalar_macro:"main"."m"', 'created_scalar_macro:"main"."M"', CREATED_TOO),
    ('created_scalar_macro:"main"."m"', 'created_table_macro:"main"."m",created_table:"main"."m"', None),
    ('created_table_macro:"sales"."m"', "dropped_schema:1", NO_SCHEMA),
    ("dropped_scalar_macro:5", "dropped_scalar_macro:5", DROPPED_TOO),
    # Data
    ("inserted_into_table:5", "dropped_table:5", DROPPED),
    ("inlined_insert:5", "dropped_table:5", DROPPED),
    ("inserted_into_table:5", "altered_table:5", ALTERED),
    ("inlined_insert:5", "altered_table:5", ALTERED),
    ("inserted_into_table:5", "inserted_into_table:5,inlined_insert:5,deleted_from_table:5,inlined_delete:5", None),
    ("inlined_insert:5", "merge_adjacent:5,rewrite_delete:5,compacted_table:5,inline_flush:5", None),
    ("inserted_into_table:5", "dropped_table:6,altered_table:55,dropped_view:5", None),
    ("deleted_from_table:5", "dropped_table:5", DROPPED),
    ("inlined_delete:5", "altered_table:5", ALTERED),
    ("deleted_from_table:5", "deleted_from_table:5", DELETED),
    ("deleted_from_table:5", "inlined_delete:5", DELETED),
    ("inlined_delete:5", "deleted_from_table:5", DELETED),
    ("deleted_from_table:5", "merge_adjacent:5", COMPACTED),
    ("deleted_from_table:5", "rewrite_delete:5", COMPACTED),
    ("inlined_delete:5", "inline_flush:5", COMPACTED),
    ("inlined_delete:5", "flushed_inlined:5", COMPACTED),
    ("deleted_from_table:5", "compacted_table:5", COMPACTED),
    ("deleted_from_table:5", "inserted_into_table:5,inlined_insert:5,deleted_from_table:6", None),
    # Compaction
    ("merge_adjacent:5", "dropped_table:5", DROPPED),
    ("inline_flush:5", "dropped_table:5", DROPPED),
    ("merge_adjacent:5", "deleted_from_table:5", DELETED),
    ("rewrite_delete:5", "inlined_delete:5", DELETED),
    ("inline_flush:5", "inlined_delete:5", DELETED),
    ("merge_adjacent:5", "merge_adjacent:5", COMPACTED),
    ("merge_adjacent:5", "altered_table:5,inserted_into_table:5,inlined_insert:5", None),
]


@pytest.mark.parametrize(("own", "others", "event"), RULES)
def test_rules(own: str, others: str, event: str | None) -> None:
    found = find_conflict(parse_changes(own), OtherChanges.of(parse_changes(others)), SCHEMAS)
    assert (found.event if found else None) == event


def test_a_conflict_says_what_it_is_about() -> None:
    own = parse_changes('inserted_into_table:4,created_table:"main"."a, b",dropped_scalar_macro:7')
    assert find_conflict(own, OtherChanges.of(parse_changes('created_view:"main"."A, B"')), SCHEMAS) == Conflict(
        "table", '"main"."a, b"', CREATED_TOO
    )
    dropped = OtherChanges.of(parse_changes("dropped_scalar_macro:7"))
    assert find_conflict(own, dropped, SCHEMAS) == Conflict("scalar macro", "7", DROPPED_TOO)
    assert find_conflict(own, OtherChanges.of(parse_changes(None)), SCHEMAS) is None


def test_changes_of_an_unknown_kind_stand_in_every_way() -> None:
    found = find_conflict(parse_changes("inlined_insert:4"), OtherChanges.of(parse_changes("cloned_table:9")), SCHEMAS)
    assert found is not None
    assert found.value == "cloned_table"
