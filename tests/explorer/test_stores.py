"""Lakes on S3 in the explorer: data files there, and the catalog too; the keys are those that the lake was given."""

from __future__ import annotations

import shutil

import pytest

from explorer.conftest import visitor
from penstock.explorer.lake_source import LakeSource
from penstock.storage import options
from support.catalogs import Catalog
from support.explorer_lakes import make_shop_on_s3
from support.s3_server import SECRET, S3Server

pytestmark = pytest.mark.s3


@pytest.fixture(autouse=True)
def _no_store_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(options, "_options", {})


def test_data_on_s3(sqlite_catalog: Catalog, s3: S3Server) -> None:
    make_shop_on_s3(sqlite_catalog, s3, s3.bucket())
    client = visitor(LakeSource(sqlite_catalog.uri, storage_options=s3.options()))
    assert "customer 1" in client.get("/tables/1/sample").text
    assert "files that the catalog names are there" in client.get("/health?store=yes").text
    # What is wrong with a key is said where the store is asked, and only there.
    wrong = s3.options(aws_secret_access_key="wrong-" + SECRET)
    client = visitor(LakeSource(sqlite_catalog.uri, storage_options=wrong))
    assert client.get("/tables/1/files").status_code == 200
    for page in ("/tables/1/sample", "/health?store=yes"):
        answer = client.get(page)
        assert (answer.status_code, "aws_secret_access_key is wrong" in answer.text) == (400, True)
        assert SECRET not in answer.text


def test_data_on_s3_with_the_keys_of_the_environment(
    sqlite_catalog: Catalog, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_shop_on_s3(sqlite_catalog, s3, s3.bucket())
    for name, value in s3.options().items():
        monkeypatch.setenv(name.upper(), value)
    assert "customer 1" in visitor(LakeSource(sqlite_catalog.uri)).get("/tables/1/sample").text


def test_a_catalog_on_s3(file_catalog: Catalog, s3: S3Server) -> None:
    bucket = s3.bucket()
    make_shop_on_s3(file_catalog, s3, bucket)
    shutil.copy(file_catalog.target, s3.objects / bucket / "lake.ducklake")
    source = LakeSource(f"ducklake:s3://{bucket}/lake.ducklake", storage_options=s3.options())
    client = visitor(source)
    assert "orders" in client.get("/").text
    assert "customer 1" in client.get("/tables/1/sample").text
    source.close()
