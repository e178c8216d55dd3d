"""The explorer in a real Chromium: how it looks, works by keyboard, in the dark and on a narrow screen."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from penstock.explorer.access import Access
from penstock.explorer.application import application
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries
from support.browser import program

CHROMIUM = program()
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN = "browser0token"
PAGES = [
    "/",
    "/snapshots",
    "/health",
    "/sql?q=FROM+orders",
    "/tables/1",
    "/tables/1/partitions",
    "/tables/1/files",
    "/tables/1/snapshots",
    "/tables/1/changes?from=12",
    "/tables/1/sample",
    "/tables/1/filter?q=id+%3C+100",
]
HOSTILE_PAGES = ["/", "/snapshots", "/tables/1/partitions", "/tables/1/sample"]
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium or Chrome: `make browser` installs Debian's"),
    pytest.mark.takes(30),
]


class Served:
    """A lake's explorer on a port of its own."""

    def __init__(self, source: LakeSource) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        port = self._socket.getsockname()[1]
        app = application(source, Access(TOKEN, port=port), DuckdbQueries(source))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self.address = f"http://127.0.0.1:{port}"
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()


@pytest.fixture(scope="module")
def served(shop: LakeSource) -> Iterator[Served]:
    found = Served(shop)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def served_hostile(hostile: LakeSource) -> Iterator[Served]:
    found = Served(hostile)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


def visited(browser: Any, served: Served, **how: Any) -> Any:
    """A page of a visitor who was let in; what the console says against it is an error."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **how})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("dialog", lambda dialog: (page.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.goto(f"{served.address}/?token={TOKEN}")
    assert page.url == f"{served.address}/"
    return page


def pictures_are_drawn(page: Any) -> bool:
    page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    for _ in range(300):
        if page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)"):
            return True
        page.wait_for_timeout(100)
    return False


def test_pages_and_their_pictures_are_shown_and_nothing_complains(browser: Any, served: Served) -> None:
    page = visited(browser, served)
    for path in PAGES:
        assert page.goto(served.address + path).status == 200
        assert pictures_are_drawn(page), path
    assert page.said == []


def test_nobody_without_the_token_is_shown_anything(browser: Any, served: Served) -> None:
    page = browser.new_context().new_page()
    assert page.goto(served.address).status == 401
    assert page.goto(f"{served.address}/?token=wrong").status == 401
    assert "orders" not in page.content()


def test_other_sites_can_neither_frame_it_nor_read_it_nor_use_its_cookie(browser: Any, served: Served) -> None:
    page = visited(browser, served)
    other = socket.create_server(("127.0.0.1", 0))  # of the same site, as another server on this machine is
    elsewhere = f"http://127.0.0.1:{other.getsockname()[1]}"
    evil = f"<iframe src='{served.address}/'></iframe><a id=go href='{served.address}/sql?q=SELECT+1'>go</a>"
    page.route(f"{elsewhere}/**", lambda route: route.fulfill(content_type="text/html", body=evil))
    page.goto(f"{elsewhere}/")
    assert (
        page.evaluate(f"fetch('{served.address}/', {{credentials: 'include'}}).then(() => 'read', () => 'refused')")
        == "refused"
    )
    frames = [frame for frame in page.frames if frame != page.main_frame]
    assert all("Tables" not in frame.content() for frame in frames)
    with page.expect_response(lambda response: "/sql" in response.url) as answer:
        page.click("#go")
    assert answer.value.status == 403
    other.close()


def test_nothing_is_wider_than_a_narrow_screen(browser: Any, served: Served, served_hostile: Served) -> None:
    for server, paths in ((served, PAGES), (served_hostile, HOSTILE_PAGES)):
        page = visited(browser, server, viewport={"width": 320, "height": 640})
        for path in paths:
            page.goto(server.address + path)
            width, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert width <= window, (path, width)


def test_hostile_names_run_nothing(browser: Any, served_hostile: Served) -> None:
    page = visited(browser, served_hostile)
    for path in HOSTILE_PAGES:
        page.goto(served_hostile.address + path)
        assert pictures_are_drawn(page)
        assert page.evaluate("document.scripts.length") == 0
    assert page.said == []
    page.goto(served_hostile.address)
    assert "<script>alert(1)</script>" in page.inner_text("main")


def test_it_works_by_keyboard_alone(browser: Any, served: Served) -> None:
    page = visited(browser, served)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    box = page.locator(".skip").bounding_box()
    assert box["x"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    focused = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focused.append(page.evaluate("document.activeElement.innerText || document.activeElement.name"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert "orders" in focused
    page.goto(f"{served.address}/tables/1/filter")
    page.locator("#q").focus()
    page.keyboard.type("region = 'Asia'")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=region"))
    assert "need not be read" in page.inner_text("main")
    page.locator("#at").focus()
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("at=5"))
    assert "You look at snapshot 5" in page.inner_text("body")
    assert "q=region" in page.url


def test_links_of_a_table_keep_the_snapshot_that_is_looked_at(browser: Any, served: Served) -> None:
    page = visited(browser, served)
    page.goto(f"{served.address}/?at=8")
    page.get_by_role("link", name="orders", exact=True).click()
    for tab in ["Partitions", "Files", "Snapshots", "Changes", "Sample", "Filter", "Columns"]:
        page.locator(".tabs").get_by_role("link", name=tab, exact=True).click()
        assert "at=8" in page.url
        assert page.locator(".tabs [aria-current=page]").inner_text() == tab
    page.get_by_role("link", name="Look at the newest").click()
    assert "at=" not in page.url


CONTRASTS = """() => {
  const channel = v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const parsed = text => text.match(/[\\d.]+/g).map(Number);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parsed(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > .9) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.classList.contains('skip')) continue;
    const [a, b] = [light(parsed(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) poor.push([element.textContent.trim().slice(0, 40), contrast]);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_told_from_its_ground(browser: Any, served: Served, scheme: str) -> None:
    page = visited(browser, served, color_scheme=scheme)
    for path in [*PAGES, "/?at=5", "/nowhere", "/sql?q=DROP"]:
        page.goto(served.address + path)
        assert page.evaluate(CONTRASTS) == [], path


def test_nothing_moves_for_those_who_want_that(browser: Any, served: Served) -> None:
    page = visited(browser, served, reduced_motion="reduce")
    moving = "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration !== '0s').length"
    assert page.evaluate(moving) == 0


def test_text_can_be_twice_as_large(browser: Any, served: Served) -> None:
    page = visited(browser, served, viewport={"width": 640, "height": 800})
    for path in ["/", "/tables/1", "/tables/1/filter?q=id+%3C+100"]:
        page.goto(served.address + path)
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        width, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width <= window, path
