"""Which data files become one: each once, in their order, only with files like it, up to the target."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ducklake.catalog import file_bins
from penstock.ducklake.catalog.compactable_files import CompactableFile, TableHistory
from penstock.ducklake.catalog.file_bins import Bin, SizeLimits, merge_bins, rewrite_bins
from penstock.ducklake.files.delete_files import DeletableFile

NEWEST = 30


def file(
    number: int, size: int, begin: int = 1, value: str | None = None, deleted: int = 0, key: str | None = None
) -> CompactableFile:
    path = f"/lake/main/t/{number}.parquet"
    deletes = DeletableFile(number, path, 100) if deleted else None
    return CompactableFile(
        number, path, f"{number}.parquet", True, 100, size, None, begin, 1 if value else None, None, None, key,
        (value,) if value else (), deletes, deleted,
    )  # fmt: skip


FILES = st.lists(
    st.tuples(
        st.integers(0, 120), st.integers(1, NEWEST), st.sampled_from([None, "NULL", "a", ""]),
        st.sampled_from([0, 0, 0, 5, 50, 95, 100]), st.sampled_from([None, None, "key"]),
    )
).map(lambda rows: [file(number, *row) for number, row in enumerate(sorted(rows, key=lambda row: row[1]))])  # fmt: skip
HISTORIES = st.tuples(st.sets(st.integers(2, NEWEST)), st.integers(1, NEWEST)).map(
    lambda given: TableHistory((), [1, *sorted(given[0])], given[1])
)


def checked(bins: list[Bin], target: int) -> list[int]:
    """What holds of every plan. Returns the files in it."""
    numbers = [one.id for bin in bins for one in bin.files]
    assert len(set(numbers)) == len(numbers)
    for bin in bins:
        assert all(first.id < second.id for first, second in pairwise(bin.files))
        assert len({(one.partition_id, one.partition_values) for one in bin.files}) == 1
        assert sum(one.encryption_key is not None for one in bin.files) <= file_bins._MOST_READ_ALONE
    return numbers


@given(FILES, HISTORIES, st.integers(1, 150), st.integers(0, 100), st.integers(1, 150))
def test_merges(files: list[CompactableFile], history: TableHistory, target: int, smallest: int, largest: int) -> None:
    limits = SizeLimits(target, smallest, largest)
    bins = merge_bins(files, history, limits)
    taken = set(checked(bins, target))
    for bin in bins:
        assert len(bin.files) > 1
        assert sum(one.size for one in bin.files[:-1]) < target
        assert all(one.deletes is None and smallest <= one.size < min(target, largest) for one in bin.files)
        versions = {max(history.version(one.begin_snapshot), history.forgotten) for one in bin.files}
        assert versions == {bin.columns_at}
        # Time travel to every kept snapshot shows the file as the sources were shown.
        assert all(bin.begin_snapshot <= one.begin_snapshot or one.begin_snapshot < history.oldest for one in bin.files)
    left = [
        one
        for one in files
        if one.id not in taken and one.deletes is None and limits.take(one) and history.knows(one.begin_snapshot)
    ]
    for group in {(max(history.version(one.begin_snapshot), history.forgotten), one.partition_values) for one in left}:
        alone = [
            one
            for one in left
            if (max(history.version(one.begin_snapshot), history.forgotten), one.partition_values) == group
        ]
        assert len(alone) <= 1 or all(one.size >= target for one in alone[:-1])
    assert merge_bins(files, history, limits, 1) == bins[:1]


@given(FILES, st.floats(0, 1), st.integers(1, 150))
def test_rewrites(files: list[CompactableFile], threshold: float, target: int) -> None:
    bins = rewrite_bins(files, threshold, target, NEWEST)
    expected = {one.id for one in files if one.delete_count and one.delete_count >= threshold * one.record_count}
    assert set(checked(bins, target)) == expected
    assert {bin.columns_at for bin in bins} <= {NEWEST}


@pytest.mark.parametrize("many", [3, 7])
def test_files_that_need_a_query_each_are_bounded(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(file_bins, "_MOST_READ_ALONE", 3)
    history = TableHistory((), [1], 1)
    files = [file(number, 1, key="key") for number in range(many)]
    assert [len(bin.files) for bin in merge_bins(files, history, SizeLimits(1000))] == {3: [3], 7: [3, 3]}[many]
    plain = [replace(one, encryption_key=None) for one in files]
    assert [len(bin.files) for bin in merge_bins(plain, history, SizeLimits(1000))] == [many]
