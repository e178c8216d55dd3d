"""Which files are put together: those of a partition, up to the target, none alone."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import AddFile, DeletionVectorDescriptor, Metadata
from penstock.delta.format.properties import target_file_size
from penstock.delta.format.schema import TableSchema
from penstock.delta.writing.file_bins import file_bins, live_size

STRUCT = T.StructType([T.StructField("id", T.LongType()), T.StructField("at", T.TimestampType())])
SCHEMA = TableSchema(STRUCT, ("at",))
SAME = ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05.000+00:00")
VALUES = (None, "", *SAME, "1969-12-31T23:59:59.999999Z")


def file(number: int, size: int, at: str | None = None) -> AddFile:
    return AddFile(f"{number}", {"at": at}, size, 0, True)


@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from(VALUES))), st.integers(1, 256))
def test_bins_hold_each_small_file_once_and_never_more_than_the_target(
    given_files: list[tuple[int, str | None]], target: int
) -> None:
    files = [file(number, size, at) for number, (size, at) in enumerate(given_files)]
    bins = file_bins(files, SCHEMA, target)
    paths = [one.path for bin in bins for one in bin.files]
    assert len(set(paths)) == len(paths)
    for bin in bins:
        assert len(bin.files) > 1
        assert sum(one.size for one in bin.files) <= target
        assert (
            len({"" if not one.partition_values["at"] else one.partition_values["at"][:10] for one in bin.files}) == 1
        )
    groups: dict[str, list[AddFile]] = {}
    for one in files:
        groups.setdefault((one.partition_values["at"] or "")[:10], []).append(one)
    for group in groups.values():
        alone = sorted(one.size for one in group if one.path not in paths and one.size < target)
        assert all(first + second > target for first, second in pairwise(alone))


def test_the_same_value_in_other_words_is_the_same_partition() -> None:
    [bin] = file_bins([file(number, 1, at) for number, at in enumerate(SAME)], SCHEMA, 10)
    assert bin.partition == (SAME[0],)
    [bin] = file_bins([file(1, 1, None), file(2, 1, "")], SCHEMA, 10)
    assert bin.partition == (None,)


def test_a_timestamp_without_a_zone_keeps_its_text() -> None:
    """Spark reads it in the zone of its session: in UTC it would be another."""
    texts = ["2026-01-02 03:04:05"] * 2 + ["2026-01-02 03:04:05.000000"] * 2 + list(SAME)
    bins = file_bins([file(number, 1, at) for number, at in enumerate(texts)], SCHEMA, 10)
    assert {(bin.partition, len(bin.files)) for bin in bins} == {((texts[0],), 2), ((texts[2],), 2), ((SAME[0],), 3)}


def test_deleted_rows_do_not_weigh() -> None:
    vector = DeletionVectorDescriptor("i", "x", 1, 75)
    half = AddFile("a", {}, 1000, 0, True, json.dumps({"numRecords": 100}), deletion_vector=vector)
    assert live_size(half) == 250
    assert live_size(AddFile("a", {}, 1000, 0, True, "no JSON", deletion_vector=vector)) == 1000


def test_what_tables_say_of_the_size_of_their_files() -> None:
    told = {"1": 1, "100mb": 100 * 2**20, "2 KiB": 2048, "3GB": 3 * 2**30, "7 bytes": 7, "5b": 5, "1t": 2**40}
    for text, size in told.items():
        assert target_file_size(Metadata("", "{}", configuration={"delta.targetFileSize": text})) == size
    for text in ("", "large", "-1", "0", "1.5gb"):
        assert target_file_size(Metadata("", "{}", configuration={"delta.targetFileSize": text})) is None
