"""What the pages show: what the extension says of the lake, for every catalog, at every snapshot, a page at a time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote_plus
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from explorer.conftest import TOKEN, visitor
from penstock.ducklake.catalog.databases import Database
from penstock.errors import InvalidError
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries
from penstock.explorer.rendering import table_of
from support.catalogs import Catalog, DuckDBCatalog
from support.explorer_lakes import EVIL, HOSTILE_NAMES, make_shop
from support.reference import identifier

TABLE_PAGES = (
    "",
    "/partitions",
    "/files",
    "/snapshots",
    "/changes",
    "/changes?from=1",
    "/sample",
    "/filter",
    "/filter?q=n%3D1",
)
PICTURES = ("/partitions.svg", "/files.svg", "/snapshots.svg", "/filter.svg?q=n%3D1")


def text_of(client: TestClient, path: str) -> str:
    """A page's text, without its tags, as people read it."""
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def test_every_catalog_shows_its_tables_files_partitions_and_history(catalog: Catalog) -> None:
    with catalog.build() as reference:
        make_shop(reference)
        info = {r["table_name"]: r for r in reference.records("FROM ducklake_table_info('lk')")}
        snapshots = reference.value("SELECT count(*) FROM lk.snapshots()")
        rows = reference.value("SELECT count(*) FROM orders")
    client = visitor(LakeSource(catalog.uri))
    lake = text_of(client, "/")
    for word in ["orders", "customers", "rates", "finance", "big_orders", "doubled", "orders_of", f"{rows:,}"]:
        assert word in lake
    assert f"{info['orders']['file_count']}" in lake
    assert text_of(client, "/snapshots").count("load of day") == 6
    assert f"{snapshots} snapshots" in text_of(client, "/snapshots")
    columns = text_of(client, "/tables/1")
    assert "in euros" in columns
    assert "5999" in columns  # the greatest id
    assert "region = Asia, month(placed) = 2" in text_of(client, "/tables/1/partitions")
    assert f"{info['orders']['file_count']} files" in text_of(client, "/tables/1/files")
    history = text_of(client, "/tables/1/snapshots")
    assert "deleted from main.orders" in history
    assert "etl" in history
    assert "need not be read" in text_of(client, "/tables/1/filter?q=" + quote_plus("id < 100 AND region = 'Asia'"))
    assert client.get("/health").status_code == 200
    for picture in ("/snapshots.svg", "/tables/1/partitions.svg", "/tables/1/files.svg", "/tables/1/snapshots.svg"):
        assert ElementTree.fromstring(client.get(picture).text).tag.endswith("svg")


def test_every_page_can_be_of_an_older_snapshot(client: TestClient) -> None:
    assert "1,000" in text_of(client, "/?at=5")
    assert "finance" not in text_of(client, "/?at=5")
    assert "You look at snapshot 5" in text_of(client, "/?at=5")
    assert "channel" in text_of(client, "/tables/1")
    assert "channel" not in text_of(client, "/tables/1?at=5")
    assert "4 files" in text_of(client, "/tables/1/files?at=5")
    assert "There is no" not in text_of(client, "/tables/1/sample?at=5")
    page = client.get("/tables/1/files?at=5&order=size").text
    links = re.findall(r'href="(/[^"]*)"', page)
    inside = [link for link in links if not link.startswith("/static") and "Look at the newest" not in link]
    assert sum("at=5" in link for link in inside) >= len(inside) - 1  # all but the one to the newest
    assert client.get("/?at=999").status_code == 404
    assert client.get("/tables/1?at=0").status_code == 404


def test_a_lake_as_it_was_shows_nothing_newer_on_any_page(shop: LakeSource) -> None:
    source = LakeSource(shop.uri, moment=(5, None))
    client = visitor(source)
    lake = text_of(client, "/")
    assert "The lake as it was at snapshot 5" in lake
    assert "Newest snapshot 5," in lake
    assert "Snapshots 6 " in lake
    assert "1,000" in lake
    assert "finance" not in lake
    assert "channel" not in text_of(client, "/tables/1")
    assert "6 snapshots" in text_of(client, "/snapshots")
    for path in ("/snapshots", "/tables/1/snapshots", "/tables/1/changes"):
        assert "load of day 0" in text_of(client, path) or path.endswith("changes")
        assert not re.search(r"load of day 1|[?&;]at=(6|7|8)\b|value=\"(6|7|8)\"", client.get(path).text), path
    for sql in ("SELECT 'n' || count(*) FROM orders", "SELECT 'n' || count(*) FROM orders WHERE id < 5000"):
        assert "n1000" in text_of(client, "/sql?q=" + quote_plus(sql))
    assert "n2000" not in text_of(client, "/sql?q=" + quote_plus("SELECT 'n' || count(*) FROM orders"))
    assert "channel" not in text_of(client, "/tables/1/sample")
    assert "You look at snapshot 4" in text_of(client, "/?at=4")
    assert client.get("/health").status_code == 200
    assert client.get("/?at=6").status_code == 404
    assert client.get("/tables/1/sample?at=6").status_code == 404
    assert client.get("/tables/1/changes?from=5&to=6").status_code == 400
    assert client.get("/tables/1/changes?from=6").status_code == 400
    with source.opened() as view:
        at_a_time = LakeSource(shop.uri, moment=(None, view.snapshot.time))
    with at_a_time.opened() as view:
        assert (view.newest.id, view.attached_version) == (5, 5)


def test_a_snapshot_that_is_the_newest_is_not_pinned(client: TestClient) -> None:
    assert "You look at snapshot" not in text_of(client, "/")


def test_deep_links_say_all_that_is_seen(client: TestClient) -> None:
    page = client.get("/tables/1/filter?q=id%3D3&at=8&page=1").text
    pictures = re.findall(r'(?:src|srcset)="(/tables/1/filter.svg[^"]*)"', page)
    assert len(pictures) == 4
    for picture in map(html.unescape, pictures):
        assert "at=8" in picture
        assert "q=id%3D3" in picture
        assert client.get(picture).headers["content-type"].startswith("image/svg+xml")
    form = re.search(r'<form class="at".*?</form>', page, re.DOTALL)
    assert form is not None
    assert 'name="q" value="id=3"' in form[0]


def test_rows_that_changed_are_told_and_a_wrong_span_is_an_error(client: TestClient) -> None:
    page = text_of(client, "/tables/1/changes?from=12&to=12")
    assert "update_preimage" in page
    assert "update_postimage" in page
    assert client.get("/tables/1/changes?from=9&to=3").status_code == 400
    assert client.get("/tables/1/changes?from=3&to=999").status_code == 400


def test_numbers_that_no_list_and_no_table_has_are_the_visitors_mistake(client: TestClient) -> None:
    for page in ("files", "partitions", "sample"):
        assert client.get(f"/tables/1/{page}?page=2305843009213693952").status_code == 400
    assert client.get("/tables/" + "9" * 5000).status_code == 404
    assert client.get("/tables/999999999999999999").status_code == 404


def test_changes_are_those_of_the_table_whatever_has_its_name_by_then(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute(
            "CREATE TABLE a (i INTEGER)", "INSERT INTO a VALUES (1)", "ALTER TABLE a RENAME TO b",
            "INSERT INTO b VALUES (2)", "CREATE TABLE a (z VARCHAR)", "INSERT INTO a VALUES ('of the new a')",
            "DROP TABLE a",
        )  # fmt: skip
    source = LakeSource(file_catalog.uri)
    queries = DuckdbQueries(source)
    with source.opened() as view:
        old = table_of(view, 1)
    with source.opened(6) as view:
        new = table_of(view, 2)
        assert [row[-1] for row in queries.changes(view, old, 1, 2, 0, 9).rows] == ["1"]
        assert [row[-1] for row in queries.changes(view, old, 1, 6, 0, 9).rows] == ["1", "2"]
        assert [row[-1] for row in queries.changes(view, new, 5, 6, 0, 9).rows] == ["of the new a"]
        for first, last in ((1, 2), (5, 7)):
            with pytest.raises(InvalidError, match="a was not there at snapshot"):
                queries.changes(view, new, first, last, 0, 9)


def test_the_sql_box_shows_rows_or_what_is_wrong_and_keeps_the_query(client: TestClient) -> None:
    query = 'SELECT \'<b>&"\' AS "<i>", count(*) FROM orders WHERE note IS NULL'
    page = client.get("/sql?q=" + quote_plus(query)).text
    assert html.escape('<b>&"', quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    wrong = client.get("/sql?q=" + quote_plus("DROP TABLE orders"))
    assert wrong.status_code == 200
    assert "only a SELECT can be run here" in wrong.text
    assert "DROP TABLE orders</textarea>" in wrong.text
    assert 'aria-invalid="true"' in wrong.text
    assert "orders" in text_of(client, "/")


def test_a_wrong_filter_is_said_so(client: TestClient) -> None:
    for wrong in ["nonexistent = 3", "id =", "1); DROP TABLE t; --", "count(*) > 1"]:
        assert "DuckDB does not take this as a filter" in text_of(client, "/tables/1/filter?q=" + quote_plus(wrong))


def test_hostile_names_are_text_on_every_page(hostile: LakeSource) -> None:
    client = visitor(hostile)
    pages = ["/", "/snapshots", "/health", "/sql", "/sql?q=" + quote_plus(f"SELECT * FROM {identifier(EVIL)}")]
    with hostile.opened() as view:
        numbers = [number for (number,) in view.catalog.database.query("SELECT table_id FROM ducklake_table")]
    assert len(numbers) == len(HOSTILE_NAMES)
    for page in [*pages, *(f"/tables/{number}{page}" for number in numbers for page in TABLE_PAGES)]:
        answer = client.get(page)
        assert answer.status_code == 200, (page, answer.text)
        assert "<script" not in answer.text.lower()
        assert "<!-- %2F" not in answer.text
        assert "\u202e" not in answer.text
        assert " 49 " not in answer.text  # 7*7
    lake = text_of(client, "/")
    for shown in [
        EVIL,
        "a\"b'c`d",
        "naïve 😀 \\u202egnirts",
        "line\\nbreak\\ttab",
        "{{ 7*7 }} {% raw %}",
        "&amp; <!-- %2F.. /../",
    ]:
        assert shown in lake


@pytest.mark.slow
def test_hostile_names_are_text_inside_of_pictures(hostile: LakeSource) -> None:
    client = visitor(hostile)
    with hostile.opened() as view:
        numbers = [number for (number,) in view.catalog.database.query("SELECT table_id FROM ducklake_table")]
    for number in numbers:
        for picture in PICTURES:
            svg = client.get(f"/tables/{number}{picture}").text
            tree = ElementTree.fromstring(svg)
            assert not [
                one.tag for one in tree.iter() if one.tag.split("}")[-1] in ("script", "foreignObject", "image", "a")
            ]
            assert not re.search(r"\bon\w+=|javascript:|\u202e", svg)
    names = " ".join(ElementTree.fromstring(client.get(f"/tables/{numbers[0]}/partitions.svg").text).itertext())
    assert "alert(1)" in names
    assert "😀" in names


def test_pictures_follow_the_theme_and_the_width_and_are_drawn_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    light, dark, narrow = (client.get(f"/tables/1/files.svg{how}").text for how in ("", "?theme=dark", "?narrow=1"))
    assert len({light, dark, narrow}) == 3
    assert float(ElementTree.fromstring(narrow).attrib["width"]) < 330
    monkeypatch.setattr("penstock.explorer.pictures.file_sizes", lambda *given: 1 / 0)
    assert client.get("/tables/1/files.svg").text == light


def test_a_table_without_files_or_rows_has_pages_too(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute(
            "CREATE TABLE nothing (i INTEGER)", "CREATE TABLE few (i INTEGER)", "INSERT INTO few VALUES (1)"
        )
    client = visitor(LakeSource(file_catalog.uri))
    for number in (1, 2):
        for page in (
            *TABLE_PAGES[:-1],
            "/filter?q=i%3D1",
            "/partitions.svg",
            "/files.svg",
            "/snapshots.svg",
            "/filter.svg?q=i%3D1",
        ):
            assert client.get(f"/tables/{number}{page}").status_code == 200, page
    assert "1 row in the catalog" in text_of(client, "/tables/2/filter?q=i%3D1")


def test_labels_headings_and_landmarks_are_there(client: TestClient) -> None:
    for path in [
        "/",
        "/snapshots",
        "/health",
        "/sql",
        *(f"/tables/1{page}" for page in ("", "/files", "/filter", "/changes")),
    ]:
        page = client.get(path).text
        assert page.count("<h1") == 1
        assert page.count("<main") == 1
        assert 'lang="en"' in page
        assert 'href="#main"' in page
        labelled = set(re.findall(r'<label for="(\w+)"', page))
        for tag in re.findall(r"<(?:input|textarea|select)[^>]*>", page):
            assert 'type="hidden"' in tag or re.search(r'id="(\w+)"', tag)[1] in labelled, tag  # type: ignore[index]
        assert all("alt=" in tag for tag in re.findall(r"<img[^>]*>", page))
        assert all("scope=" in tag for tag in re.findall(r"<th[ >][^>]*>?", page))
        for nav in re.findall(r"<nav[^>]*>", page):
            assert "aria-label=" in nav
        assert len(set(re.findall(r'id="([^"]*)"', page))) == len(re.findall(r'\bid="([^"]*)"', page))


MANY = 100_000


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> LakeSource:
    """A lake of 100,000 files in a thousand partitions and as many snapshots, of which only the catalog is real."""
    catalog = DuckDBCatalog(tmp_path_factory.mktemp("many"))
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE events (id BIGINT, day DATE)",
            "ALTER TABLE events SET PARTITIONED BY (day)",
            "CALL lk.set_option('data_inlining_row_limit', 0)",
            "INSERT INTO events VALUES (1, '2020-01-01')",
        )
    day = "(DATE '2020-01-01' + (i // 100)::INTEGER)::VARCHAR"
    name = "ducklake-00000000-0000-7000-8000-"
    catalog.tamper(
        f"""INSERT INTO ducklake_snapshot SELECT s.snapshot_id + 1 + i, s.snapshot_time + to_seconds(i),
            s.schema_version, s.next_catalog_id, {MANY + 10} FROM ducklake_snapshot s, range(1000) r(i)
            WHERE s.snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)""",
        """INSERT INTO ducklake_snapshot_changes SELECT snapshot_id, 'inserted_into_table:1', 'etl', NULL, NULL
           FROM ducklake_snapshot WHERE snapshot_id NOT IN (SELECT snapshot_id FROM ducklake_snapshot_changes)""",
        f"""INSERT INTO ducklake_data_file BY NAME SELECT 10 + i AS data_file_id, 1 AS table_id,
            f.begin_snapshot + i // 100 AS begin_snapshot,
            'day=' || {day} || '/{name}' || (100000000000 + i) || '.parquet' AS path,
            true AS path_is_relative, 'parquet' AS file_format, 1000 AS record_count, 1000 + i * 37 % 5000000
            AS file_size_bytes, 500 AS footer_size, 1000 * i AS row_id_start, f.partition_id FROM ducklake_data_file f,
            range({MANY}) r(i)""",
        f"""INSERT INTO ducklake_file_partition_value SELECT 10 + i, 1, 0, {day}
            FROM range({MANY}) r(i)""",
        f"""INSERT INTO ducklake_file_column_stats BY NAME SELECT 10 + i AS data_file_id, 1 AS table_id,
            c AS column_id,
            1000 AS value_count, 0 AS null_count,
            CASE c WHEN 1 THEN (1000 * i)::VARCHAR ELSE {day} END AS min_value,
            CASE c WHEN 1 THEN (1000 * i + 999)::VARCHAR ELSE {day} END AS max_value
            FROM range({MANY}) r(i), range(1, 3) k(c)""",
    )
    return LakeSource(catalog.uri)


@contextmanager
def counted_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each query of the catalog gives."""
    counts: list[int] = []
    asked = Database.query

    def query(self: Database, *given: Any) -> Any:
        rows = asked(self, *given)
        counts.append(len(rows))
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(Database, "query", query)
        yield counts


@pytest.mark.takes(20)
def test_a_hundred_thousand_files_are_shown_a_page_at_a_time(
    many_files: LakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = visitor(many_files)
    found = quote_plus("day = DATE '2021-03-04' AND id > 0")
    paths = {
        "/": "100,001",
        "/snapshots": "1,004 snapshots",
        "/snapshots.svg": "",
        "/tables/1": "",
        "/tables/1/partitions": "1,000 partitions",
        "/tables/1/partitions?page=20&order=bytes": "page 20 of 20",
        "/tables/1/partitions.svg": "",
        "/tables/1/files": "100,001 files",
        "/tables/1/files?page=2001": "page 2,001 of 2,001",
        "/tables/1/files?order=size": "",
        "/tables/1/files.svg": "",
        "/tables/1/snapshots": "",
        "/tables/1/snapshots.svg": "",
        "/tables/1/changes": "",
        f"/tables/1/filter?q={found}": "100 files of 100,001",
        f"/tables/1/filter.svg?q={found}": "",
    }
    for path, text in paths.items():
        with counted_rows(monkeypatch) as counts:
            answer = client.get(path)
        assert answer.status_code == 200, answer.text
        assert text in html.unescape(re.sub(r"<[^>]*>", " ", answer.text)), path
        assert len(answer.content) < 150_000, path
        # A table's snapshots are found in the lake's, of which there are a thousand; files are never listed.
        assert sum(counts) < 3_000, (path, counts)


def test_a_page_that_is_not_there_is_said_so_in_the_same_clothes(client: TestClient) -> None:
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert "style.css" in answer.text
    assert TOKEN not in answer.text
