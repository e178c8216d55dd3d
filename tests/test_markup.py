"""The HTML of notebooks: every text is escaped, and what cannot be had is no error."""

from __future__ import annotations

import pytest

from penstock.markup import card, facts, if_possible, note, share, table
from penstock.texts import size_text
from support.pages import Page

HOSTILE = '<script>alert("1")</script>\'&amp;\x1b[31m\n😀'
SHOWN = '<script>alert("1")</script>\'&amp;\\x1b[31m 😀'


def test_hostile_texts_are_texts() -> None:
    html = card(HOSTILE, note(HOSTILE), facts({HOSTILE: HOSTILE}), table([HOSTILE], [[HOSTILE]]), share(0.25))
    page = Page(html)
    assert page.texts == [SHOWN] * 6
    assert page.open == []
    assert page.seen == {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_numbers_and_what_is_not_there() -> None:
    assert Page(facts({"rows": 1234567, "comment": None, "sorted by": "", "deleted": 0})).texts == [
        "rows", "1,234,567", "deleted", "0",
    ]  # fmt: skip
    assert Page(table(["a"], [[None], [True], [1.5]])).texts == ["a", "True", "1.5"]


def test_no_colour_is_set_that_a_dark_page_lacks() -> None:
    html = card("x", note("y"), facts({"a": 1}), table(["a"], [[1]]), share(1))
    assert "#" not in html
    for word in ("black", "white", "<style"):
        assert word not in html


@pytest.mark.parametrize(("part", "width"), [(-1, "0.0%"), (0, "0.0%"), (0.125, "12.5%"), (1, "100.0%"), (7, "100.0%")])
def test_shares(part: float, width: str) -> None:
    assert f"width:{width};" in share(part)


def test_what_fails_is_left_to_the_plain_text() -> None:
    assert if_possible(lambda: f"{1 / 0}") is None
    with pytest.raises(KeyboardInterrupt):
        if_possible(_interrupted)


def _interrupted() -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (5e9, "5.0 GB"), (10**19, "10,000.0 PB")]
)
def test_sizes(size: float, text: str) -> None:
    assert size_text(size) == text
