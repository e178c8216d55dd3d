"""Which store a path is in, in all spellings."""

from __future__ import annotations

import pytest

from penstock.storage.stores import Store, plain_scheme, split_path, store_of


@pytest.mark.parametrize(
    ("path", "store"),
    [
        ("/a/b", None),
        ("a/b", None),
        ("file:///a", None),
        ("FILE:///a", None),
        ("s3://b/x y", Store("s3", "b")),
        ("S3A://b/x", Store("s3", "b")),
        ("s3n://b", Store("s3", "b")),
        ("gcs://b/x", Store("gcs", "b")),
        ("gs://b/x", Store("gcs", "b")),
        ("abfss://c@acct.dfs.core.windows.net/x", Store("azure", "c@acct.dfs.core.windows.net")),
        ("az://c/x", Store("azure", "c")),
        ("hdfs://nn:8020/x", Store("hdfs", "nn:8020")),
        ("https://h:1/x", Store("http", "h:1")),
        ("odd+1://h/x", Store("other", "h")),
    ],
)
def test_store_of(path: str, store: Store | None) -> None:
    assert store_of(path) == store


def test_plain_scheme() -> None:
    assert plain_scheme("s3a://b/s3a://x") == "s3://b/s3a://x"
    assert plain_scheme("gcs://b/x") == "gs://b/x"
    assert plain_scheme("hdfs://nn:8020/x") == "hdfs://nn:8020/x"
    assert plain_scheme("/s3a/x") == "/s3a/x"


def test_split_path() -> None:
    assert split_path("s3://b") == ("s3://b/", "")
    assert split_path("s3://b/") == ("s3://b/", "")
    assert split_path("abfss://c@a.b:1/x/y%2F z") == ("abfss://c@a.b:1/", "x/y%2F z")
