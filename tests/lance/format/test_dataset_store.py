"""What is asked of many datasets comes in order, whatever the store: elsewhere some are asked ahead, and not more."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.lance.format.dataset_store import DATASETS_AT_ONCE, DatasetStore

STORES = [DatasetStore("/here/"), DatasetStore("s3://elsewhere/")]


@pytest.mark.parametrize("store", STORES, ids=str)
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-100, 100), max_size=40))
def test_answers_come_in_order_until_one_fails(store: DatasetStore, items: list[int]) -> None:
    def call(item: int) -> int:
        if item == 7:
            raise ValueError(item)
        return -item

    found = []
    try:
        for answer in store.each(call, items):
            found.append(answer)
    except ValueError:
        assert 7 in items
    else:
        assert 7 not in items
    assert found == [-item for item in items[: items.index(7) if 7 in items else None]]


@pytest.mark.parametrize(("store", "ahead"), [(STORES[0], 1), (STORES[1], DATASETS_AT_ONCE + 1)])
def test_no_more_are_asked_than_are_soon_needed(store: DatasetStore, ahead: int) -> None:
    asked: list[int] = []
    lock = threading.Lock()

    def call(item: int) -> int:
        with lock:
            asked.append(item)
        return item

    answers = store.each(call, range(1000))
    for taken, answer in enumerate(answers):
        assert answer == taken
        assert len(asked) <= taken + ahead
        if taken == 20:
            break
    answers.close()  # type: ignore[attr-defined]
    assert len(asked) <= 20 + ahead
