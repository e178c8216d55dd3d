from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.paths import hive_values, resolve, to_uri

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00/"), min_size=1, max_size=12)


def test_relative_and_absolute_paths() -> None:
    assert resolve("/data/main/t/", "a.parquet", True) == "/data/main/t/a.parquet"
    assert resolve("s3://bucket/lake/", "x/a.parquet", True) == "s3://bucket/lake/x/a.parquet"
    assert resolve("/data/", "/elsewhere/a.parquet", False) == "/elsewhere/a.parquet"
    assert resolve("/data/", "s3://bucket/a.parquet", False) == "s3://bucket/a.parquet"
    assert resolve("/data/", "a.parquet", False) == str(Path.cwd() / "a.parquet")


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_a_uri_names_the_same_file(names: list[str]) -> None:
    path = "/" + "/".join(names)
    parsed = urlparse(to_uri(path))
    assert (parsed.scheme, unquote(parsed.path), parsed.query, parsed.fragment) == ("file", path, "", "")


def test_hive_values() -> None:
    path = "/data/region=a%2Fb%20%3D/day=__HIVE_DEFAULT_PARTITION__/file=1.parquet"
    assert hive_values(path) == {"region": "a/b =", "day": None}
