"""What the loggers `penstock.catalog` and `penstock.commit` are told, on the four catalog databases."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Lake
from penstock.ducklake.attachment import Attachment
from penstock.ducklake.catalog.commits import commit as commits
from penstock.ducklake.catalog.commits.commit import RetryPolicy
from penstock.ducklake.catalog.commits.staged_schemas import set_tag
from penstock.ducklake.catalog.databases import ConnectOptions, Database, connect, statement_log
from penstock.ducklake.catalog.databases.base import CommitInDoubtError
from penstock.ducklake.catalog.location import Location, parse_location
from penstock.ducklake.streaming import written_once
from penstock.errors import CatalogError
from penstock.storage import commit_log
from support.catalogs import Catalog, MySQLCatalog, PostgresCatalog
from support.writers import Writer

SECRET = "s3cret-Passw0rd"
HOSTILE = 'o"d\n\x1b[31m\r😀'


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    """Nobody listens to begin with, and in the end."""
    loggers = [logging.getLogger(name) for name in ("penstock.catalog", "penstock.commit")]
    before = [(logger, logger.level, logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = []
        logger.setLevel(logging.NOTSET)
    yield
    for logger, level, handlers in before:
        logger.handlers = handlers
        logger.setLevel(level)


@pytest.fixture
def database(catalog: Catalog) -> Iterator[Database]:
    with catalog.reference() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)")
    with closing(connect(parse_location(catalog.uri), ConnectOptions())) as opened:
        yield opened


def records(caplog: pytest.LogCaptureFixture, logger: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == logger]


def queries(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["query"] for record in records(caplog, "penstock.catalog")]


def test_each_statement_is_logged_once_with_its_fields(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "penstock.catalog"):
        database.query("SELECT table_name FROM ducklake_table WHERE table_id = ?", [1])
        database.insert("ducklake_schema", ("schema_id", "schema_name"), [(number, SECRET) for number in range(7, 99)])
        database.execute("UPDATE ducklake_schema SET schema_name = ? WHERE schema_id = 7", [SECRET])
        with database.consistent():
            assert sum(map(len, database.batches("SELECT schema_id FROM ducklake_schema", 50))) == 93
    names = [database.identifier(name) for name in ("ducklake_schema", "schema_id", "schema_name")]
    assert [query for query in queries(caplog) if "ducklake_" in query] == [
        "SELECT table_name FROM ducklake_table WHERE table_id = ?",
        f"INSERT INTO {names[0]} ({names[1]}, {names[2]}) VALUES (?, ?)",
        "UPDATE ducklake_schema SET schema_name = ? WHERE schema_id = 7",
        "SELECT schema_id FROM ducklake_schema",
    ]
    assert SECRET not in caplog.text
    for record in records(caplog, "penstock.catalog"):
        fields = vars(record)
        assert record.levelno == logging.DEBUG
        assert fields["catalog"] == str(database.location)
        assert isinstance(fields["elapsed_ms"], float)
        assert 0 < fields["elapsed_ms"] < 60_000
        assert fields["query"] in record.getMessage()


def test_transactions_are_logged_with_their_ends(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "penstock.catalog"):
        with database.transaction():
            database.execute("DELETE FROM ducklake_tag")
        with pytest.raises(ZeroDivisionError), database.transaction():
            raise ZeroDivisionError
        with pytest.raises(CatalogError):
            database.query("SELECT nothing FROM ducklake_nothing")
    told = queries(caplog)
    assert [told.count(end) for end in ("COMMIT", "ROLLBACK")] == [1, 1]
    begins = [query for query in told if query.startswith(("BEGIN", "START TRANSACTION"))]
    assert len(begins) == 2
    assert told.index(begins[0]) < told.index("DELETE FROM ducklake_tag") < told.index("COMMIT")
    assert "failed after" in records(caplog, "penstock.catalog")[-1].getMessage()


def test_nothing_is_made_for_a_log_that_is_off(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise AssertionError(given)

    for module, name in (
        (statement_log, "_logged"), (statement_log, "redact"), (commit_log, "one_line"), (Location, "__str__"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, refused)
    with database.transaction():
        database.insert("ducklake_schema", ("schema_id",), [(7,)])
        assert database.value("SELECT schema_id FROM ducklake_schema WHERE schema_id = ?", [7]) == 7


def test_no_password_is_in_a_log(
    postgres_catalog: PostgresCatalog, mysql_catalog: MySQLCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        location = parse_location(f"{postgres_catalog.uri} password={SECRET}")
        with closing(connect(location, ConnectOptions(parameters={"passfile": "/nothing"}))) as opened:
            opened.query("SELECT 1")
        with closing(connect(parse_location(mysql_catalog.uri), ConnectOptions())) as opened:
            opened.query("SELECT 1")
            with pytest.raises(CatalogError):
                opened.query(f"SELECT password='{SECRET}' FROM nothing")
    assert records(caplog, "penstock.catalog")
    assert SECRET not in "".join(str(vars(record)) for record in caplog.records)
    assert SECRET not in caplog.text


def test_a_commit_says_what_it_did_to_which_tables(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with Writer(catalog.uri, catalog.data_path) as writer:
        with caplog.at_level(logging.INFO, "penstock.commit"):
            writer.create_table(HOSTILE)
            writer.append_file(HOSTILE, 1)
            writer.append(HOSTILE, 2)
            with writer.transaction():
                pass
        location = str(writer.catalog.database.location)
        stored = writer.catalog.database.query(
            "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id"
        )
    told = records(caplog, "penstock.commit")
    assert [record.levelno for record in told] == [logging.INFO] * 3
    assert [(vars(record)["snapshot"], vars(record)["catalog"]) for record in told] == [
        (n, location) for n in (1, 2, 3)
    ]
    assert [vars(record)["changes"] for record in told] == [changes for (changes,) in stored[1:]]
    assert [vars(record)["tables"] for record in told] == [[f"main.{HOSTILE}"]] * 3
    for record in told:
        assert record.getMessage().isprintable()
        assert 'o"d \\x1b[31m 😀' in record.getMessage()


def test_a_dropped_table_has_a_name_in_the_log(file_catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with Writer(file_catalog.uri, file_catalog.data_path) as writer, caplog.at_level(logging.INFO, "penstock.commit"):
        writer.create_table("t")
        with writer.transaction() as transaction:
            table = writer.table(transaction, "t")
            transaction.staging.end("ducklake_table", table_id=table.id)
            transaction.staging.log("dropped_table", table.id)
    assert [vars(record)["tables"] for record in records(caplog, "penstock.commit")] == [["main.t"]] * 2


def test_without_listeners_no_name_is_asked_for(file_catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with Writer(file_catalog.uri, file_catalog.data_path) as writer:
        writer.create_table("t")
        with caplog.at_level(logging.DEBUG, "penstock.catalog"):
            writer.append_file("t", 1)
            assert queries(caplog)[-1] == "COMMIT"
            logging.getLogger("penstock.commit").setLevel(logging.INFO)
            writer.append_file("t", 2)
    assert queries(caplog)[-1] != "COMMIT"


@pytest.mark.parametrize("kind", ["postgres", "sqlite", "mysql"])
def test_each_retry_says_why_and_how_long_it_waits(
    kind: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer takes the number of the snapshot, behind the back of the turns that ours take."""
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    write, times = commits._write, iter([True, True])

    def collide(database: Database, *given: object) -> object:
        made = write(database, *given)  # type: ignore[arg-type]
        if next(times, False):
            database.insert("ducklake_snapshot", ("snapshot_id",), [(made.id,)])
        return made

    with Writer(catalog.uri, catalog.data_path, RetryPolicy(5, 10, 3)) as writer:
        writer.create_table("t")
        monkeypatch.setattr(commits, "_write", collide)
        with caplog.at_level(logging.INFO, "penstock.commit"):
            writer.append_file("t", 1)
        location = str(writer.catalog.database.location)
    *retries, commit = records(caplog, "penstock.commit")
    fields = [vars(record) for record in retries]
    assert [(one["catalog"], one["attempt"], one["wait_ms"]) for one in fields] == [
        (location, 2, 10),
        (location, 3, 30),
    ]
    for record, one in zip(retries, fields, strict=True):
        assert re.search("duplicate|unique", one["reason"], re.IGNORECASE)
        assert location not in one["reason"]
        assert record.levelno == logging.INFO
        assert f"attempt {one['attempt']} to commit follows in {one['wait_ms']:.0f} ms" in record.getMessage()
    assert vars(commit)["snapshot"] == 2


def test_a_batch_of_a_stream_that_is_written_again_is_logged(
    sqlite_catalog: Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer alters the table while a batch is on its way."""
    monkeypatch.setattr(written_once, "running_query", lambda _: None)  # it asks Spark
    tried: list[int] = []
    with Writer(sqlite_catalog.uri, sqlite_catalog.data_path) as writer:
        writer.create_table("t")
        attachment = Attachment(writer.catalog, None, retries=RetryPolicy(5, 10, 3))  # type: ignore[arg-type]

        def write() -> None:
            tried.append(1)
            with attachment.statement() as transaction:
                writer.stage_file(transaction, "t", 1)
            if len(tried) < 3:
                with Writer(sqlite_catalog.uri, sqlite_catalog.data_path) as other, other.transaction() as altering:
                    set_tag(altering.staging, other.table(altering, "t").id, "comment", "altered")
                    altering.staging.log("altered_table", other.table(altering, "t").id)

        with caplog.at_level(logging.INFO, "penstock.commit"):
            assert written_once.write_batch(attachment, "o\nrders", 7, write)
        location = str(writer.catalog.database.location)
    told = [vars(record) for record in records(caplog, "penstock.commit") if hasattr(record, "attempt")]
    assert [(one["catalog"], one["attempt"], one["wait_ms"]) for one in told] == [(location, 2, 10), (location, 3, 30)]
    for one in told:
        assert one["reason"].startswith("batch 7 of stream o\nrders is written again: ")
        assert "altered" in one["reason"]
    assert all(record.getMessage().isprintable() for record in records(caplog, "penstock.commit"))


def test_a_commit_whose_answer_was_lost_is_logged(
    file_catalog: Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Writer(file_catalog.uri, file_catalog.data_path) as writer:
        writer.create_table("t")
        database = writer.catalog.database
        commit = database._commit

        def lost() -> None:
            commit()
            monkeypatch.undo()
            raise CommitInDoubtError("nobody heard the answer")

        with caplog.at_level(logging.INFO, "penstock.commit"):
            monkeypatch.setattr(database, "_commit", lost)
            writer.append_file("t", 1)
    [record] = records(caplog, "penstock.commit")
    assert vars(record)["snapshot"] == 2


def test_threads_log_their_own_statements(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "penstock.catalog"):
        threads = [threading.Thread(target=database.query, args=(f"SELECT {number}",)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(queries(caplog)) == [f"SELECT {number}" for number in range(5)]


def test_the_document(file_catalog: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[3] / "docs/logging.md").read_text()
    with Writer(file_catalog.uri, file_catalog.data_path) as writer:
        writer.create_table("orders")
        with Lake(Attachment(writer.catalog, None)) as lake:  # type: ignore[arg-type]
            names: dict[str, object] = {"lake": lake}
            for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                exec(block, names)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert all(re.match(r" *\d+\.\d ms  \w", line) for line in shown)


def test_penstock_brings_no_handler() -> None:
    names = ("penstock", "penstock.catalog", "penstock.commit")
    assert not any(logging.getLogger(name).handlers for name in names)
