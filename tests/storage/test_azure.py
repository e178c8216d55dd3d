"""Paths on Azure: the spellings of Hadoop, DuckDB and Polars are one place."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import InvalidError
from penstock.storage import options
from penstock.storage.azure import AzureAccess, azure_place, duckdb_path, hadoop_path
from penstock.storage.options import StorageOptions
from penstock.storage.stores import Store, store_of

SPELLINGS = [
    "abfss://lake@acct.dfs.core.windows.net/a b/%2F#?.parquet",
    "abfs://lake@acct.blob.core.windows.net/a b/%2F#?.parquet",
    "az://acct.blob.core.windows.net/lake/a b/%2F#?.parquet",
    "azure://lake@acct.dfs.core.windows.net/a b/%2F#?.parquet",
]


@pytest.mark.parametrize("path", SPELLINGS)
def test_the_account_is_in_the_path(path: str) -> None:
    assert azure_place(path) == ("acct", "core.windows.net", "lake", "a b/%2F#?.parquet")
    assert store_of(path) == Store("azure", "lake@acct.dfs.core.windows.net")
    assert hadoop_path(path) == "abfss://lake@acct.dfs.core.windows.net/a b/%2F#?.parquet"
    assert duckdb_path(path) == "az://acct.blob.core.windows.net/lake/a b/%2F#?.parquet"


def test_the_account_is_in_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "az://lake/x/y.parquet"
    assert azure_place(path) == (None, "core.windows.net", "lake", "x/y.parquet")
    given = {"account_name": "acct", "account_key": "hush", "azure_endpoint": "http://127.0.0.1:1/acct"}
    monkeypatch.setitem(options._options, Store("azure", "lake"), StorageOptions.of(given))
    assert hadoop_path(path) == "abfs://lake@acct.dfs.core.windows.net/x/y.parquet"
    assert duckdb_path(path) == path


def test_another_cloud() -> None:
    access = AzureAccess.of("abfss://lake@acct.dfs.core.chinacloudapi.cn/", StorageOptions.of(None))
    assert (access.account, access.domain) == ("acct", "core.chinacloudapi.cn")
    assert access.hadoop_authority == "lake@acct.dfs.core.chinacloudapi.cn"


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("az://lake/x/", {}, "does not name its account; give azure_storage_account_name"),
        ("abfss://lake@a.dfs.core.windows.net/", {"account_name": "b"}, "of the account a, and .* is b"),
        ("az://lake/", {"account_name": "a", "azure_endpoint": "https://h"}, "does not end in the account"),
    ],
)
def test_what_makes_no_sense(path: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        AzureAccess.of(path, StorageOptions.of(given))


def test_no_text_shows_a_key() -> None:
    access = AzureAccess.of("az://lake/", StorageOptions.of({"account_name": "a", "sas_token": "?sig=hush"}))
    assert "hush" not in repr(access)
    assert access.sas_token == "sig=hush"
    assert pickle.loads(pickle.dumps(access)) == access
