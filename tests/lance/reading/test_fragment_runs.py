"""Small fragments are read together: each once and in order, and no scanner reads too many, or any of unknown size."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.lance.reading.fragment_runs import FragmentRun, joined_runs

MEGABYTE = 2**20
SIZES = st.one_of(st.integers(0, 1000), st.integers(0, 10 * MEGABYTE))


@given(st.lists(SIZES, max_size=200))
def test_every_fragment_is_read_once_and_in_order(sizes: list[int]) -> None:
    runs = list(joined_runs(FragmentRun((n,), f"{n}.lance", size) for n, size in enumerate(sizes)))
    assert [number for run in runs for number in run.numbers] == list(range(len(sizes)))
    for run in runs:
        assert run.first_file == f"{run.numbers[0]}.lance"
        assert run.size == sum(sizes[number] for number in run.numbers)
        assert len(run.numbers) == 1 or (run.size <= 4 * MEGABYTE and len(run.numbers) <= 32)
        assert len(run.numbers) == 1 or all(sizes[number] for number in run.numbers)
    for run, after in pairwise(runs):
        assert not run.takes(FragmentRun(after.numbers[:1], "", sizes[after.numbers[0]]))
