from __future__ import annotations

import pytest

from penstock.ducklake.model.names import parse_table_name
from penstock.errors import NotFoundError


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("orders", ("main", "orders")),
        ("sales.orders", ("sales", "orders")),
        ('"odd.schema"."odd ""table"', ("odd.schema", 'odd "table')),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("with space.🦆", ("with space", "🦆")),
    ],
)
def test_names(name: str, parts: tuple[str, str]) -> None:
    assert parse_table_name(name) == parts


@pytest.mark.parametrize("name", ["", "a.", ".a", "a.b.c", '"open', '"a"b'])
def test_what_is_not_a_name_is_an_error_that_says_so(name: str) -> None:
    with pytest.raises(NotFoundError, match=r"write|quote"):
        parse_table_name(name)
