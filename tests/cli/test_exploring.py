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
from support.processes import environment


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
