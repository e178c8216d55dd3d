"""Who may ask the explorer, and what an answer lets a browser do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from explorer.conftest import ADDRESS, PORT, TOKEN, stranger
from penstock.explorer.access import Access
from penstock.explorer.lake_source import LakeSource


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(shop: LakeSource) -> None:
    answer = stranger(shop).get(f"/tables/1/files?order=size&token={TOKEN}&at=5")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/tables/1/files?order=size&at=5"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"penstock_{PORT}=")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
    assert TOKEN not in cookie


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "é"])
def test_nothing_is_shown_without_the_token(shop: LakeSource, token: str | None) -> None:
    client = stranger(shop)
    for path in ["/", "/sql?q=SELECT+1", "/tables/1", "/static/style.css", "/nowhere", "/snapshots.svg"]:
        mark = "&" if "?" in path else "?"
        answer = client.get(path if token is None else f"{path}{mark}token={token}")
        assert answer.status_code == 401
        assert "orders" not in answer.text
        assert "set-cookie" not in answer.headers


def test_the_cookie_of_another_server_opens_nothing(shop: LakeSource) -> None:
    for name, value in [
        (f"penstock_{PORT}", "0" * 64),
        (f"penstock_{PORT}", TOKEN),
        (f"penstock_{PORT}", Access(TOKEN, port=PORT + 1).cookie),
        ("penstock_1", Access(TOKEN, port=PORT).cookie),
    ]:
        client = stranger(shop)
        client.cookies.set(name, value)
        assert client.get("/").status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MERGE"])
def test_nothing_can_be_sent(client: TestClient, method: str) -> None:
    for path in ["/", "/sql", "/tables/1/files"]:
        answer = client.request(method, path, content="DROP TABLE orders")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "127.0.0.1@evil",
        "[::1",
        "10.0.0.7",
        "192.168.1.5:80",
        "0.0.0.0",
        "127.0.0.1:x",
        "127.0.0.1/evil",
    ],
)
def test_a_name_that_was_let_point_here_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", f"127.0.0.1:{PORT}", f"localhost:{PORT}", "LOCALHOST", "[::1]:99"])
def test_this_machines_own_names_are_known(shop: LakeSource, host: str) -> None:
    assert stranger(shop).get("/", headers={"host": host}).status_code == 401


def test_on_other_addresses_numbers_and_the_given_name_are_known(shop: LakeSource) -> None:
    everywhere = stranger(shop, host="0.0.0.0")
    assert everywhere.get("/", headers={"host": "192.168.1.5:8000"}).status_code == 401
    assert everywhere.get("/", headers={"host": "evil.example"}).status_code == 421
    named = stranger(shop, host="lakes.example")
    assert named.get("/", headers={"host": "lakes.example:8000"}).status_code == 401
    assert named.get("/", headers={"host": "other.example"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},  # another server of this machine
        {"sec-fetch-site": "none", "origin": "https://evil.example"},
    ],
)
def test_other_sites_cannot_ask_in_somebodys_name(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.get("/sql?q=SELECT+1", headers=headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_its_own_pages_can_ask(client: TestClient) -> None:
    own = {"sec-fetch-site": "same-origin", "origin": f"http://127.0.0.1:{PORT}"}
    assert client.get("/", headers=own).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "none"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/nowhere", "/tables/9999", "/static/style.css", "/tables/1/files.svg"])
def test_every_answer_forbids_scripts_frames_and_referrers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_pages_load_nothing_from_elsewhere_and_have_no_scripts(client: TestClient) -> None:
    for path in [
        "/",
        "/sql",
        "/health",
        "/snapshots",
        "/tables/1",
        "/tables/1/partitions",
        "/tables/1/filter?q=id%3D3",
    ]:
        page = client.get(path).text
        assert not re.search(r"<script|<iframe|<object|<style|\bon\w+=|style=|javascript:", page, re.IGNORECASE)
        for address in re.findall(r'(?:src|href|srcset|action)="([^"]*)"', page):
            assert re.match(r"/|#", address), address
            assert not address.startswith("//")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../rendering.py",
        "/static/%2e%2e/rendering.py",
        "/static/..%2frendering.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/..\\rendering.py",
        "/tables/1/../../../etc/passwd",
        "/tables/-1",
        "/tables/1e3",
        "/tables/1%00",
        "/%00",
        "//evil.example/",
        "/static/",
        "/static",
        "/templates/base.html",
    ],
)
def test_path_tricks_are_refused(client: TestClient, path: str) -> None:
    answer = client.get(ADDRESS + path)
    assert answer.status_code in (404, 400, 405, 307)
    assert "root:" not in answer.text
    assert "penstock.explorer" not in answer.text
    assert not answer.headers.get("location", "/").startswith("//")


def test_a_token_beside_another_servers_name_does_not_lead_there(shop: LakeSource) -> None:
    answer = stranger(shop).get(f"{ADDRESS}//evil.example/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "query", ["at=abc", "at=-1", "at=1e3", "at=99999999999999999999", "page=x", "order=id;DROP", "at=١"]
)
def test_parameters_that_make_no_sense_are_said_so(client: TestClient, query: str) -> None:
    answer = client.get(f"/tables/1/files?{query}")
    assert answer.status_code == 400
    assert "Traceback" not in answer.text


def test_errors_show_no_secret(tmp_path: Path) -> None:
    source = LakeSource("ducklake:postgres:host=127.0.0.1 port=1 dbname=x user=me password=hunter2secret")
    client = stranger(source)
    client.get(f"/?token={TOKEN}")
    for path in ["/", "/health", "/sql?q=SELECT+1", "/tables/1"]:
        answer = client.get(path)
        assert answer.status_code == 503
        assert "hunter2secret" not in answer.text
        assert "Traceback" not in answer.text
    assert "hunter2secret" not in repr(source)
    assert "hunter2secret" not in source.without_secrets("failed: password=hunter2secret and again hunter2secret")
    options = {"aws_region": "eu-central-1", "allow_http": "true", "aws_secret_access_key": "a/b+c"}
    source = LakeSource("ducklake:nothing.ducklake", storage_options=options)
    assert source.without_secrets("true: a/b+c in eu-central-1") == "true: *** in eu-central-1"
