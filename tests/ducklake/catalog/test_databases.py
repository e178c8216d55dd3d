"""The four catalog databases as places to write: bulk rows, transactions, collisions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from penstock.ducklake.catalog.databases import ConnectOptions, Database, connect
from penstock.ducklake.catalog.location import parse_location
from penstock.errors import AttachError, CatalogError
from support.catalogs import Catalog
from support.effort import tries
from support.reference import METADATA

STATISTICS = (
    "data_file_id",
    "table_id",
    "column_id",
    "column_size_bytes",
    "value_count",
    "null_count",
    "min_value",
    "max_value",
    "contains_nan",
    "extra_stats",
)
NASTY = ["", "'", '"', "\\", "\\N", "a\tb\nc\r", "/ = % $ ?", "%s %(x)s", "😀", "x" * 300, None]


@pytest.fixture
def database(catalog: Catalog) -> Iterator[Database]:
    """The catalog of a new lake, made by the extension."""
    with catalog.reference() as reference:
        reference.execute("CREATE SCHEMA s")
    with _connected(catalog) as opened:
        yield opened


@contextmanager
def _connected(catalog: Catalog) -> Iterator[Database]:
    with closing(connect(parse_location(catalog.uri), ConnectOptions())) as opened:
        yield opened


def test_bulk_rows(database: Database) -> None:
    """Thousands of files with statistics of 16 columns."""
    files = tries(2_000, 10_000)
    rows = [(f, 1, c, 100 * c, 5, 0, NASTY[c % 11], f"z{f}", c == 3, None) for f in range(files) for c in range(16)]
    with database.transaction():
        database.insert("ducklake_file_column_stats", STATISTICS, rows)
    stored = database.query(f"SELECT {', '.join(STATISTICS)} FROM ducklake_file_column_stats WHERE data_file_id = 1777")
    assert sorted(stored, key=lambda row: row[2]) == rows[1777 * 16 : 1778 * 16]
    assert database.value("SELECT count(*) FROM ducklake_file_column_stats") == len(rows)


def test_values_in_the_extensions_form(catalog: Catalog, database: Database) -> None:
    moment = datetime(2026, 11, 15, 3, 11, 22, 71160, timezone(timedelta(hours=2)))
    scheduled = ("data_file_id", "path", "path_is_relative", "schedule_start")
    database.insert("ducklake_files_scheduled_for_deletion", scheduled, [(1, "a", True, moment), (2, None, None, None)])
    database.insert("ducklake_schema", ("schema_id", "schema_uuid"), [(9, "437edb7f-559b-4560-9297-eeb3ef6cb0e5")])
    database.execute("UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id = 1", [moment])
    stored = "SELECT schedule_start FROM ducklake_files_scheduled_for_deletion WHERE path_is_relative = ?"
    instant = moment.astimezone(UTC).replace(microsecond=0 if database.engine == "mysql" else 71160)
    assert database.time(database.value(stored, [True])) == instant
    if database.engine == "sqlite":
        types = "typeof(path_is_relative) || ' ' || schedule_start"
        row = database.value(f"SELECT {types} FROM ducklake_files_scheduled_for_deletion WHERE data_file_id = 1")
        assert row == "integer 2026-11-15 01:11:22.07116+00"
    database.close()
    with catalog.reference() as reference:
        assert reference.value("SELECT snapshot_time FROM lk.snapshots() WHERE snapshot_id = 1") == instant
        uuid = reference.value(f"SELECT schema_uuid::VARCHAR FROM {METADATA}.ducklake_schema WHERE schema_id = 9")
        assert uuid == "437edb7f-559b-4560-9297-eeb3ef6cb0e5"


def test_transactions_are_all_or_nothing(catalog: Catalog, database: Database) -> None:
    with suppress(ZeroDivisionError), database.transaction():
        _add_snapshot(database, 50)
        raise ZeroDivisionError
    assert _newest(database) == 1
    with database.transaction():
        _add_snapshot(database, 50)
        with database.consistent():
            assert _newest(database) == 50
    with _connected(catalog) as other:
        assert _newest(other) == 50


def test_scratch_leaves_nothing(catalog: Catalog, database: Database) -> None:
    with _connected(catalog) as other:
        with database.scratch():
            _add_snapshot(database, 50)
            assert _newest(database) == 50
            assert _newest(other) == 1
            if database.engine != "sqlite":
                with other.transaction():
                    _add_snapshot(other, 40)
                assert database.value("SELECT count(*) FROM ducklake_snapshot WHERE snapshot_id = 40") == 0
        with suppress(ZeroDivisionError), database.scratch():
            _add_snapshot(database, 60)
            raise ZeroDivisionError
        assert _newest(database) == _newest(other) == (1 if database.engine == "sqlite" else 40)


def test_collisions_are_told_from_mistakes(catalog: Catalog, database: Database) -> None:
    with _connected(catalog) as other:
        with other.transaction():
            _add_snapshot(other, 2)
        assert database.is_collision(_failure(database, "INSERT INTO ducklake_snapshot (snapshot_id) VALUES (2)"))
        for mistake in ("INSERT INTO ducklake_metadata (scope_id) VALUES (1)", "DELETE FROM nothing", "SELEC 1"):
            assert not database.is_collision(_failure(database, mistake))
        assert not database.is_collision(ValueError("database is locked"))
        with database.transaction():
            _add_snapshot(database, 3)


def test_what_drivers_raise_is_an_error_of_ours(database: Database) -> None:
    for mistake in ("INSERT INTO ducklake_metadata (scope_id) VALUES (1)", "DELETE FROM nothing", "SELEC 1"):
        error = _failure(database, mistake)
        assert isinstance(error, CatalogError)
        assert str(database.location) in str(error)
        assert isinstance(error.__cause__, database.errors)
    row = (1, "a", None)
    with pytest.raises(CatalogError, match="ducklake"):
        database.insert("ducklake_metadata", ("nothing", "key", "value"), [row] * 50)
    with pytest.raises(CatalogError, match="ducklake"):
        database.inlined("nothing", [], "1 = 1", [], "row_id")
    assert _newest(database) == 1


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_connection_that_broke_is_opened_again(kind: str, request: pytest.FixtureRequest) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    own, kill, settings = {
        "postgres": ("pg_backend_pid()", "SELECT pg_terminate_backend({})", "current_setting('TimeZone')"),
        "mysql": ("connection_id()", "KILL {}", "@@session.sql_mode LIKE '%ANSI_QUOTES%'"),
    }[kind]
    with catalog.reference(), _connected(catalog) as database, _connected(catalog) as other:

        def break_connection() -> None:
            other.query(kill.format(database.value(f"SELECT {own}")))
            time.sleep(0.2)  # the server hangs up a moment later

        before = database.value(f"SELECT {settings}")
        break_connection()
        assert _newest(database) == 0
        assert database.value(f"SELECT {settings}") == before
        break_connection()
        with database.transaction():
            _add_snapshot(database, 1)
        break_connection()
        with database.consistent():
            assert _newest(database) == 1
        add, look = lambda: _add_snapshot(database, 2), lambda: _newest(database)
        with pytest.raises(CatalogError, match="nothing was committed") as caught:
            _inside(database.transaction(), add, break_connection, look)
        assert isinstance(caught.value.__cause__, database.errors)
        assert _newest(database) == _newest(other) == 1
        with pytest.raises(CatalogError, match="whether it was is not known"):
            _inside(database.transaction(), add, break_connection)
        assert _newest(database) == 1
        if kind == "mysql":  # whose lock is lost with the connection
            with pytest.raises(CatalogError, match="broke"):
                _inside(database.turn(), break_connection, look)
        with other.transaction():
            _add_snapshot(other, 2)
        assert _newest(database) == 2
        with pytest.raises(CatalogError, match="broke"):
            _inside(database.consistent(), break_connection, look)
        database.close()


def test_writers_stand_in_line(catalog: Catalog, database: Database) -> None:
    """Each takes the next number; none collides but on DuckDB, where nothing keeps them apart."""
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with _connected(catalog) as writer:
                done = 0
                while done < 10:
                    try:
                        with writer.transaction():
                            _add_snapshot(writer, _newest(writer) + 1)
                        done += 1
                    except Exception as error:
                        if writer.engine != "duckdb" or not writer.is_collision(error):
                            raise
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert _newest(database) == 41


@pytest.mark.parametrize("moment", ["BEGIN", "ROLLBACK"])
def test_an_interrupt_leaves_no_transaction_behind(
    catalog: Catalog, database: Database, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that the next BEGIN fails at, or commits; nor a lock that others wait for."""
    said: list[str] = []
    execute, newest = database._execute, _newest(database)

    def interrupted(sql: str, parameters: Sequence[Any]) -> None:
        begins = sql.startswith(("BEGIN", "START"))
        if sql != "ROLLBACK":
            execute(sql, parameters)
        if begins if moment == "BEGIN" else sql == "ROLLBACK":
            said.append(sql)
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(database, "_execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _inside(database.transaction(), lambda: _add_snapshot(database, newest + 1), interrupt)
    assert said
    assert _newest(database) == newest
    with database.transaction():
        _add_snapshot(database, newest + 1)
    assert _newest(database) == newest + 1
    if catalog.kind != "duckdb":  # whose file one process holds
        with _connected(catalog) as other, other.transaction():
            _add_snapshot(other, newest + 2)
        assert _newest(database) == newest + 2


def test_an_interrupt_between_a_question_and_its_answer(
    mysql_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next question would be given that answer."""
    with mysql_catalog.reference() as reference:
        reference.execute("CREATE SCHEMA s")
    with _connected(mysql_catalog) as database:
        connection: Any = vars(database)["_connection"]

        def interrupted(**_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(connection, "_read_query_result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.query("SELECT 41")
        monkeypatch.undo()
        assert database.query("SELECT 42") == [(42,)]


def test_a_file_that_another_program_holds_is_waited_for_once(sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.reference() as reference:
        reference.execute("CREATE SCHEMA s")
    with _connected(sqlite_catalog) as holder, _connected(sqlite_catalog) as waiting:
        waiting.execute("PRAGMA busy_timeout = 100")
        with holder.transaction():
            with pytest.raises(CatalogError, match="is in use: another program has held it") as error:
                _inside(waiting.transaction())
            assert not waiting.is_collision(error.value)


def test_closed(database: Database) -> None:
    database.close()
    for call in (lambda: database.execute("SELECT 1"), lambda: database.insert("t", ["a"], [(1,)])):
        with pytest.raises(AttachError, match="closed"):
            call()
    with pytest.raises(AttachError, match="closed"), database.transaction():
        pass


def _inside(block: AbstractContextManager[None], *acts: Callable[[], object]) -> None:
    with block:
        for act in acts:
            act()


def interrupt() -> None:
    raise KeyboardInterrupt


def _add_snapshot(database: Database, number: int) -> None:
    database.insert("ducklake_snapshot", ("snapshot_id", "schema_version"), [(number, 1)])


def _newest(database: Database) -> int:
    newest: int = database.value("SELECT max(snapshot_id) FROM ducklake_snapshot")
    return newest


def _failure(database: Database, sql: str) -> Exception:
    try:
        with database.transaction():
            database.execute(sql)
    except Exception as error:
        return error
    raise AssertionError(f"{sql} was expected to fail")
