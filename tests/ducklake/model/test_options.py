from __future__ import annotations

from penstock.ducklake.model.options import OptionValue, effective_value

NAME = "parquet_compression"


def test_the_nearest_scope_wins() -> None:
    lake, schema, table = (
        OptionValue(NAME, "g"),
        OptionValue(NAME, "s", "schema", 3),
        OptionValue(NAME, "t", "table", 7),
    )
    assert effective_value(NAME, [lake, schema, table], 3, 7) == "t"
    assert effective_value(NAME, [lake, schema, table], 3, 8) == "s"
    assert effective_value(NAME, [lake, schema, table], 4, 8) == "g"
    assert effective_value(NAME, [], 3, 7) == "snappy"
    assert effective_value("unheard_of", [], 3, 7) is None


def test_what_was_attached_with_stands_before_the_default_only() -> None:
    attached = {"data_inlining_row_limit": "50"}
    assert effective_value("data_inlining_row_limit", [], 3, 7, attached) == "50"
    stored = [OptionValue("data_inlining_row_limit", "20")]
    assert effective_value("data_inlining_row_limit", stored, 3, 7, attached) == "20"
