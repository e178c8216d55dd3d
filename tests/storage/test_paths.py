from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.duckdb_files import path_literal
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


@pytest.mark.parametrize(
    ("directory", "values"),
    [
        ("region=a%2Fb%20%3D/x/day=__HIVE_DEFAULT_PARTITION__", {"region": "a/b =", "day": None}),
        ("k=1/k=2", {"k": "1"}),
        ("K=1/k=__HIVE_DEFAULT_PARTITION__", {"K": "1"}),
        ("k=a%2Fb %25=c/j=", {"j": ""}),
        ("k==1/=2/k=a?b/k=a\nb", {}),
        ("a\\k%20x=1", {"k%20x": "1"}),
    ],
)
def test_hive_values_are_those_that_duckdb_finds(tmp_path: Path, directory: str, values: dict[str, str | None]) -> None:
    path = tmp_path / directory / "file=1.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), path)
    assert hive_values(str(path)) == values
    read = f"read_parquet({path_literal(str(path))}, hive_partitioning = true, hive_types_autocast = false)"
    [found] = duckdb.sql(f"FROM {read}").to_arrow_table().to_pylist()
    assert found == {"id": 1} | values
