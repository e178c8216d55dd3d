"""The explorer over lakes that are made once: a shop's, and one of hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from penstock.explorer.access import Access
from penstock.explorer.application import application
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries, Limits
from support.catalogs import DuckDBCatalog
from support.explorer_lakes import make_hostile, make_shop

TOKEN = "f00dfacef00dface"
PORT = 8123
ADDRESS = f"http://127.0.0.1:{PORT}"


def stranger(source: LakeSource, limits: Limits | None = None, host: str = "127.0.0.1") -> TestClient:
    """A client that has shown no token yet."""
    access = Access(TOKEN, host, PORT)
    queries = DuckdbQueries(source, limits or Limits())
    return TestClient(application(source, access, queries), base_url=ADDRESS, follow_redirects=False)


def visitor(source: LakeSource, limits: Limits | None = None) -> TestClient:
    """A client that was let in."""
    client = stranger(source, limits)
    assert client.get(f"/?token={TOKEN}").status_code == 303
    return client


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> LakeSource:
    """The shop's lake, in a DuckDB file."""
    return _made(tmp_path_factory.mktemp("shop"), make_shop)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> LakeSource:
    """A lake whose names are meant to break pages."""
    return _made(tmp_path_factory.mktemp("hostile"), make_hostile)


@pytest.fixture
def client(shop: LakeSource) -> TestClient:
    """Somebody who looks at the shop's lake."""
    return visitor(shop)


def _made(directory: Path, make: Callable[..., None]) -> LakeSource:
    catalog = DuckDBCatalog(directory)
    with catalog.build() as reference:
        make(reference)
    return LakeSource(catalog.uri)
