"""Files behind http, as PyArrow and DuckDB get them."""

from __future__ import annotations

import os
import socket
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import UnsupportedError
from penstock.storage import web_files
from penstock.storage.duckdb_files import path_literal
from penstock.storage.filesystems import delete_file, list_files, make_directory, open_file, open_output, read_bytes
from penstock.storage.paths import absolute
from penstock.storage.web_files import web_address
from support.web_server import WebServer

NAME = "a b%20#?é🦆=+&\"'.bin"
CONTENT = os.urandom(400_000)


@pytest.fixture
def path(web: WebServer) -> str:
    (web.folder / NAME).write_bytes(CONTENT)
    return f"{web.url}/{NAME}"


def test_random_reads(path: str, web: WebServer) -> None:
    with open_file(path) as file:
        assert file.size() == len(CONTENT)
        for start, count in ((399_990, 100), (0, 16), (200_000, 150_000), (5, 10), (400_000, 1)):
            file.seek(start)
            assert file.read(count) == CONTENT[start : start + count]
    assert all(asked.range for asked in web.asked("GET"))
    assert read_bytes(path) == CONTENT


def test_parquet(web: WebServer) -> None:
    table = pa.table({"a": range(100_000), "b": [str(number) for number in range(100_000)]})
    pq.write_table(table, web.folder / "t.parquet", row_group_size=20_000)
    with open_file(f"{web.url}/t.parquet") as file:
        assert pq.ParquetFile(file).read(["b"]) == table.select(["b"])


@pytest.mark.parametrize("trouble", ["no ranges", "no HEAD", "5xx", "cut short", "redirects", "neither", "no sizes"])
def test_servers_with_habits(path: str, web: WebServer, trouble: str) -> None:
    web.knows_ranges = trouble not in ("no ranges", "neither")
    web.knows_head = trouble not in ("no HEAD", "neither")
    web.tells_sizes = trouble != "no sizes"
    web.failures = [503, 429] if trouble == "5xx" else []
    web.cut_short = 2 if trouble == "cut short" else 0
    if trouble == "redirects":
        web.redirects["/elsewhere"] = web_address(path)
        path = f"{web.url}/elsewhere"
    with open_file(path) as file:
        assert file.read() == CONTENT


def test_other_bytes_than_were_asked_for(path: str, web: WebServer) -> None:
    with open_file(path) as file:
        web.shifted = 3
        with pytest.raises(OSError, match="the server gives bytes 3-"):
            file.read(16)


def test_failures(web: WebServer, path: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file http://.*/none: the server answers 404"):
        open_file(f"{web.url}/none")
    web.failures = [503] * 10
    with pytest.raises(OSError, match="cannot be read: the server answers 503"):
        open_file(path)
    assert len(web.failures) == 4  # three times for its head, three for its first byte
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:9/x cannot be read: .*refused"):
        open_file("http://127.0.0.1:9/x")
    web.redirects["/round"] = "/round"
    with pytest.raises(OSError, match="/round cannot be read"):
        open_file(f"{web.url}/round")


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_files, "_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(OSError, match="cannot be read: timed out"):
            open_file(f"http://127.0.0.1:{silent.getsockname()[1]}/x")
        assert time.monotonic() - start < 1


def test_a_path_is_literal_and_an_address_is_not(web: WebServer, path: str) -> None:
    assert web_address(path).startswith(f"{web.url}/a%20b%2520%23%3F%C3%A9%F0%9F%A6%86")
    assert absolute(f"{web.url}/a%20b%2520") == f"{web.url}/a b%20"
    assert path_literal(path) == "'" + web_address(path).replace("'", "''") + "'"


def test_a_name_that_the_server_has_decoded(web: WebServer) -> None:
    (web.folder / "p=a b").write_bytes(b"here")
    assert read_bytes(f"{web.url}/p=a%20b") == b"here"


def test_nothing_can_be_written_or_listed(web: WebServer) -> None:
    folder = f"{web.url}/folder/"
    for verb in (open_output, make_directory, delete_file, lambda path: list(list_files(path))):
        with pytest.raises(UnsupportedError, match="can only be read: nothing can be listed, written or deleted"):
            verb(folder)
    assert not web.requests
