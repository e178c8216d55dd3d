"""What notebooks show of lakes, tables, snapshots, explanations and findings: without Spark, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

import penstock
from penstock import Lake, Snapshot, Table
from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits.commit import CommitInfo
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.inspection.findings import Finding
from penstock.ducklake.notebook_views import _MOST_TABLES
from penstock.spark.explanation import Explanation
from support.catalogs import Catalog, PostgresCatalog
from support.pages import Page
from support.writers import Writer

SECRET = "s3cret-Passw0rd"
HOSTILE = "<script>alert(1)</script>\"'&\n\x1b[31m😀"
SHOWN = "<script>alert(1)</script>\"'& \\x1b[31m😀"


class NoSpark:
    """A session that may not be asked for anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark was asked for {name}")


@contextmanager
def lake_of(catalog: Catalog, **parameters: str) -> Iterator[Lake]:
    opened = open_catalog(catalog.uri, AttachOptions(catalog.data_path, metadata_parameters=parameters))
    attachment = Attachment(opened, NoSpark())  # type: ignore[arg-type]
    with Lake(attachment) as lake:
        yield lake


def texts(of: Any) -> list[str]:
    page = Page(of._repr_html_())
    assert page.open == []
    assert "script" not in page.seen
    return page.texts


def facts_of(shown: list[str]) -> dict[str, str]:
    """What stands beside names, the first time that these do."""
    return dict(reversed(list(zip(shown[1::2], shown[2::2], strict=False))))


def test_a_lake_and_its_tables(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        name = HOSTILE.replace('"', '""')
        reference.execute(
            f'CREATE TABLE "{name}" (id INTEGER NOT NULL, "{name}" STRUCT(a DECIMAL(38, 3), "b c" VARCHAR[]) )',
            f"""COMMENT ON TABLE "{name}" IS '{HOSTILE.replace("'", "''")}'""",
            f"""COMMENT ON COLUMN "{name}".id IS 'which one'""",
            f"INSERT INTO \"{name}\" VALUES (1, NULL), (2, {{'a': 1.5, 'b c': ['x']}}), (3, NULL)",
            f'DELETE FROM "{name}" WHERE id = 2',
            "CREATE SCHEMA s",
            "CREATE TABLE s.plain (id INTEGER DEFAULT 7)",
            "ALTER TABLE s.plain SET PARTITIONED BY (id)",
            "CREATE VIEW v AS SELECT 1 AS one",
        )
    with lake_of(catalog) as lake:
        shown = texts(lake)
        assert shown[0] == f"Lake {lake._attachment.catalog.database.location}"
        facts = facts_of(shown)
        assert facts["data path"] == catalog.data_path
        assert (facts["tables"], facts["views"], facts["rows"], facts["files"]) == ("2", "1", "2", "1")
        assert facts["snapshot"].startswith(f"{lake.current_snapshot().id} of 2")
        at = shown.index("comment") + 1
        assert shown[at : at + 2] == [f"main.{SHOWN}", "2"]
        assert shown[-5:] == ["s.plain", "0", "0", "0 bytes", "id"]
        table = Table(lake._attachment, "main", HOSTILE)
        shown = texts(table)
        assert shown[0] == f"Table main.{SHOWN} of {lake._attachment.catalog.database.location}"
        facts = facts_of(shown)
        assert (facts["comment"], facts["rows"], facts["deleted rows"]) == (SHOWN, "2", "1")
        at = shown.index("column")
        assert shown[at:] == [
            "column", "type", "NULL", "default", "comment",
            "id", "INTEGER", "no", "which one",
            SHOWN, 'STRUCT("a" DECIMAL(38,3), "b c" VARCHAR[])', "yes",
        ]  # fmt: skip
        assert texts(lake.table("s.plain"))[-4:] == ["id", "INTEGER", "yes", "7"]
        assert repr(table).isprintable()


def test_a_lake_without_tables(file_catalog: Catalog) -> None:
    with lake_of(file_catalog) as lake:
        assert "tables" in texts(lake)
        assert "partitioned by" not in texts(lake)


@pytest.mark.slow
def test_many_tables_are_counted(file_catalog: Catalog) -> None:
    with Writer(file_catalog.uri, file_catalog.data_path) as writer, writer.transaction() as transaction:
        for number in range(_MOST_TABLES + 1234):
            writer.stage_table(transaction, f"t{number:05}")
    with lake_of(file_catalog) as lake:
        shown = texts(lake)
    assert shown[-1] == "and 1,234 more: lake.tables() lists all of them"
    assert f"main.t{_MOST_TABLES - 1:05}" in shown
    assert f"main.t{_MOST_TABLES:05}" not in shown


def test_a_transaction_shows_what_it_has_staged(file_catalog: Catalog) -> None:
    with lake_of(file_catalog) as lake:
        writer = Writer.__new__(Writer)
        writer.catalog = lake._attachment.catalog
        with pytest.raises(ZeroDivisionError), lake._attachment.transaction(CommitInfo()) as transaction:  # noqa: PT012
            writer.stage_table(transaction, "staged")
            assert "main.staged" in texts(lake)
            assert "0, and what this transaction has staged" in texts(Table(lake._attachment, "main", "staged"))
            raise ZeroDivisionError
        assert "main.staged" not in texts(lake)


def test_what_is_closed_or_gone_has_its_plain_text(file_catalog: Catalog) -> None:
    with lake_of(file_catalog) as lake:
        gone = Table(lake._attachment, "main", "gone")
        assert gone._repr_html_() is None
        assert "gone" in repr(gone)
    assert lake._repr_html_() is None
    assert repr(lake) == f"Lake('{lake._attachment.catalog.database.location}')"


def test_an_unreachable_database_is_no_error(
    postgres_catalog: PostgresCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake_of(postgres_catalog) as lake:
        database = lake._attachment.catalog.database

        def unreachable(*, create: bool) -> None:
            raise penstock.AttachError("it cannot be reached")

        monkeypatch.setattr(database, "_connect", unreachable)
        database._close()
        assert lake._repr_html_() is None
        assert Table(lake._attachment, "main", "t")._repr_html_() is None
        assert "postgres" in repr(lake)


def test_no_password_is_shown(postgres_catalog: PostgresCatalog) -> None:
    opened = open_catalog(f"{postgres_catalog.uri} password={SECRET}", AttachOptions(postgres_catalog.data_path))
    with Lake(Attachment(opened, NoSpark())) as lake:  # type: ignore[arg-type]
        assert "password=***" in texts(lake)[0]
        assert SECRET not in f"{lake._repr_html_()}{lake!r}"


def test_a_snapshot() -> None:
    time = datetime(1969, 12, 31, 23, 59, 59, 7, UTC)
    made = Snapshot(1234, time, 3, 4, 5, f'created_table:"main"."{HOSTILE}",inserted_into_table:1', HOSTILE, "<b>why")
    shown = texts(made)
    assert shown[:3] == ["Snapshot 1234", "time", "1969-12-31 23:59:59.000007 UTC"]
    assert shown[3:5] == ["changes", f'created_table:"main"."{SHOWN}", inserted_into_table:1']
    assert shown[5:] == ["author", SHOWN, "message", "<b>why", "schema version", "3"]
    assert texts(Snapshot(0, time, 0, 0, 0)) == ["Snapshot 0", *shown[1:3], "schema version", "0"]


def test_an_explanation() -> None:
    told = Explanation("a < '<i>' AND b = 1", 2000, 500, {"partition": 1000, "statistics of b": 500})
    assert texts(told) == [
        "a < '<i>' AND b = 1", "500 of 2,000 files are read, 1,500 are pruned",
        "pruned by", "files", "partition", "1,000", "statistics of b", "500",
    ]  # fmt: skip
    assert "width:25.0%;" in told._repr_html_()
    assert texts(Explanation("x", 0, 0, {})) == ["x", "0 of 0 files are read, 0 are pruned"]


def test_a_finding() -> None:
    found = Finding("small files", "advice", "s", HOSTILE, "many <files>", {"files": 1234}, "penstock x", "lake.x()")
    assert texts(found) == [
        f"advice: small files of s.{SHOWN}", "many <files>", "files", "1,234", "command", "penstock x",
        "in Python", "lake.x()",
    ]  # fmt: skip
