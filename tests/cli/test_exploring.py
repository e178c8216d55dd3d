"""The explorer, started from the command line, answers at the address that it prints, and ends with Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from support.catalogs import Catalog
from support.explorer_lakes import make_shop_on_s3
from support.processes import environment
from support.s3_server import S3Server


def test_explore(sqlite_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute("CREATE TABLE orders AS SELECT 1 AS a")
        reference.execute("CREATE TABLE later AS SELECT 1 AS a")
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", sqlite_catalog.uri)
    monkeypatch.setenv("PENSTOCK_LAKE_SALES__SNAPSHOT_VERSION", "1")
    command = [sys.executable, "-m", "penstock.cli", "explore", "sales", "--no-browser"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            address = re.search(r"http://127\.0\.0\.1:\d+\S*", running.stdout.readline())
            assert address is not None
            with build_opener(HTTPCookieProcessor()).open(address[0], timeout=30) as page:
                text = page.read()
            assert b"orders" in text
            assert b"later" not in text
        finally:
            running.send_signal(signal.SIGINT)
    assert running.returncode in (0, 130)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.s3
def test_explore_with_spark(sqlite_catalog: Catalog, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake on S3, for which Spark is started with more than it has of itself."""
    make_shop_on_s3(sqlite_catalog, s3, s3.bucket())
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", sqlite_catalog.uri)
    for name, value in s3.options().items():
        monkeypatch.setenv(f"PENSTOCK_LAKE_SALES__STORAGE_OPTIONS__{name.upper()}", value)
    command = [sys.executable, "-m", "penstock.cli", "explore", "sales", "--no-browser", "--spark"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            address = re.search(r"(http://127\.0\.0\.1:\d+/)\S*", running.stdout.readline())
            assert address is not None
            visitor = build_opener(HTTPCookieProcessor())
            visitor.open(address[0], timeout=30).close()
            with visitor.open(f"{address[1]}tables/1/sample", timeout=120) as page:
                text = page.read()
            assert b"rows from Spark" in text
            assert b"customer 1" in text
        finally:
            running.send_signal(signal.SIGINT)
    assert running.returncode in (0, 130)
