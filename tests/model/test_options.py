from __future__ import annotations

from penstock.model.options import OptionValue, effective

NAME = "parquet_compression"


def test_the_nearest_scope_wins() -> None:
    lake, schema, table = (
        OptionValue(NAME, "g"),
        OptionValue(NAME, "s", "schema", 3),
        OptionValue(NAME, "t", "table", 7),
    )
    assert effective(NAME, [lake, schema, table], 3, 7) == "t"
    assert effective(NAME, [lake, schema, table], 3, 8) == "s"
    assert effective(NAME, [lake, schema, table], 4, 8) == "g"
    assert effective(NAME, [], 3, 7) == "snappy"
    assert effective("unheard_of", [], 3, 7) is None
