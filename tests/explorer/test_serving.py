"""`serve` in a process of its own: what it prints, what it loads, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
import pytest

from penstock.errors import AttachError, InvalidError, NotFoundError
from penstock.explorer import serve
from penstock.explorer.access import Access
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.serving import _in_address

LOADED = """
import atexit, sys
from penstock.explorer import serve
atexit.register(lambda: print('loaded', 'pyspark' in sys.modules, 'altair' in sys.modules, flush=True))
serve({uri!r}, open_browser=False, **{how!r})
"""


@contextmanager
def running(uri: str, **how: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOADED.format(uri=uri, how=how)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found is not None, said + (process.stderr.read() if process.stderr else "")
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def test_the_first_page_needs_neither_spark_nor_what_draws_and_ctrl_c_ends_it(shop: LakeSource) -> None:
    with running(shop.uri) as (process, address):
        with httpx.Client(follow_redirects=True) as client:
            page = client.get(address, timeout=30)
        assert page.status_code == 200
        assert "orders" in page.text
        assert "server" not in page.headers
        assert process.stdout is not None
        assert "Press Ctrl+C" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=30)
    assert "loaded False False" in said
    assert "Traceback" not in errors
    assert "token" not in errors


def test_a_query_that_nobody_waits_for_is_stopped(shop: LakeSource) -> None:
    slow = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    with running(shop.uri) as (process, address), httpx.Client(follow_redirects=True) as client:
        client.get(address, timeout=30)
        server = psutil.Process(process.pid)
        with pytest.raises(httpx.ReadTimeout):
            client.get(re.sub(r"/\?.*", "/sql", address), params={"q": slow}, timeout=httpx.Timeout(30, read=3))
        deadline = time.monotonic() + 20  # less than the limit of 30 that every query has
        while server.children() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not server.children()
        assert client.get(re.sub(r"/\?.*", "/", address), timeout=30).status_code == 200


def test_each_start_has_a_token_of_its_own_unless_one_is_given(shop: LakeSource) -> None:
    with running(shop.uri) as (_, first), running(shop.uri) as (_, second):
        tokens = {re.sub(".*token=", "", address) for address in (first, second)}
        assert len(tokens) == 2
        assert all(len(token) >= 32 for token in tokens)
    with running(shop.uri, token="mine") as (_, address):
        assert address.endswith("/?token=mine")


def test_a_server_for_others_says_what_that_means(shop: LakeSource) -> None:
    with running(shop.uri, host="0.0.0.0", token="mine") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert process.stdout is not None
        assert "can read the lake" in process.stdout.readline()
        assert httpx.get(address.replace("?token=mine", "")).status_code == 401


def test_a_name_stands_for_a_lake_and_all_that_is_said_of_it(shop: LakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", shop.uri)
    monkeypatch.setenv("PENSTOCK_LAKE_SALES__SNAPSHOT_VERSION", "5")
    with running("ducklake:sales") as (_, address), httpx.Client(follow_redirects=True, timeout=30) as client:
        assert "The lake as it was at snapshot 5" in client.get(address).text
    with pytest.raises(NotFoundError, match="snapshot 99 does not exist"):
        serve("ducklake:sales", snapshot_version=99, open_browser=False)
    with pytest.raises(AttachError, match="snapshot_version or snapshot_time, not both"):
        serve("ducklake:sales", snapshot_version=5, snapshot_time="2026-01-01", open_browser=False)
    with pytest.raises(AttachError, match="there is no lake named 'sale'"):
        serve("ducklake:sale", open_browser=False)


@pytest.mark.slow
def test_what_cannot_be_served_is_said_before_there_is_a_page(shop: LakeSource) -> None:
    with pytest.raises(AttachError, match="does not exist"):
        serve("ducklake:/nowhere/at/all.ducklake", open_browser=False)
    with pytest.raises(InvalidError, match="letters and digits"):
        serve(shop.uri, token="a b", open_browser=False)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidError, match="cannot be listened on"):
        serve(shop.uri, port=taken.getsockname()[1], open_browser=False)
    for host, port in [("192.0.2.1", 0), ("127.0.0.1", 99999999)]:
        with pytest.raises(InvalidError, match="cannot be listened on"):
            serve(shop.uri, host=host, port=port, open_browser=False)


def test_addresses_are_those_that_a_browser_takes() -> None:
    names = {
        "127.0.0.1": "127.0.0.1",
        "0.0.0.0": "127.0.0.1",
        "::": "[::1]",
        "::1": "[::1]",
        "lakes.example": "lakes.example",
    }
    assert {host: _in_address(Access("t", host, 1)) for host in names} == names
