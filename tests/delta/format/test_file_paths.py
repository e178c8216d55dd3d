"""Directories of partition values, and paths in the log and back."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delta.format.file_paths import file_path, log_path, partition_directory


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "__HIVE_DEFAULT_PARTITION__"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        ("__HIVE_DEFAULT_PARTITION__", "%5F_HIVE_DEFAULT_PARTITION__"),
        ("2026-01-02 03:04:05", "2026-01-02 03%3A04%3A05"),
        ("a/b=c%d$e", "a%2Fb%3Dc%25d$e"),
        ("\x00\t\x7f", "%00%09%7F"),
        ("🚰 é", "🚰 é"),
    ],
)
def test_directories(value: str | None, name: str) -> None:
    assert partition_directory(["a=b"], [value]) == f"a%3Db={name}/"


def test_log_paths_as_delta_writes_them() -> None:
    path = partition_directory(["ts"], ["2026-01-02 03:04:05"]) + "x.parquet"
    assert log_path(path) == "ts=2026-01-02%2003%253A04%253A05/x.parquet"
    assert partition_directory([], []) == ""
    assert log_path("s3://bucket/a/b.parquet") == "s3://bucket/a/b.parquet"
    assert file_path("file:/tmp/a%20b") == "/tmp/a b"


def test_directories_of_long_values() -> None:
    for unit in ("x", "é", "💧", "/", "%"):
        names = {partition_directory(["p"], [unit * 300 + end]) for end in ("", "a", "b")}
        assert len(names) == 3
        for name in names:
            assert 200 < len(name.encode()) <= 251
            assert unquote(name).rpartition("-")[0].removeprefix("p=").strip(unit) == ""
    assert partition_directory(["p"], ["x" * 248]) == f"p={'x' * 248}/"


@given(st.text(max_size=20), st.sampled_from(["", "/", "s3://bucket/", "file:///"]))
def test_paths_come_back(value: str, root: str) -> None:
    path = root + partition_directory(["p"], [value]) + "f.parquet"
    assert file_path(log_path(path)) == path
    assert log_path(path).isascii()
    name = path.removeprefix(root).split("/")
    assert len(name) == 2
    assert unquote(name[0]).removeprefix("p=") == (value or "__HIVE_DEFAULT_PARTITION__")
