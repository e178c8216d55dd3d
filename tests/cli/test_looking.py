"""Commands that look at a lake by its catalog alone: on all databases, against what DuckDB's extension says."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.command_line import penstock, refused
from support.processes import Child, environment

HOSTILE = "[red]🦆\x1b[31m\u202e`.\"'<script>,\n"
SECRET = "s3cret-Passw0rd"


@pytest.fixture
def lake(catalog: Catalog) -> Catalog:
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    with catalog.build(data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE orders (id BIGINT NOT NULL, region VARCHAR DEFAULT 'none', s STRUCT(a INT, b DOUBLE))",
            "ALTER TABLE orders SET PARTITIONED BY (region)",
            "INSERT INTO orders SELECT i, ['r1', 'r2', NULL][(i + 2) % 3 + 1], {'a': i, 'b': i} FROM range(30) t(i)",
            "CREATE VIEW eu AS SELECT * FROM orders WHERE region = 'r1'",
            "CREATE MACRO twice(a) AS 2 * a",
            "CREATE SCHEMA empty",
            "COMMENT ON TABLE orders IS '[bold]all[/]'",
            f'CREATE TABLE {quoted} ("x.y" INTEGER)',
            f"INSERT INTO {quoted} VALUES (1)",
            f"COMMENT ON TABLE {quoted} IS 'NULL'",
            "DELETE FROM orders WHERE id < 4",
        )
    return catalog


def test_ls(lake: Catalog) -> None:
    found = {(line["schema"], line["name"]): line for line in penstock("ls", lake.uri, "--json").json}
    assert found.keys() == {
        ("empty", None), ("main", "eu"), ("main", "twice"), ("main", "orders"), ("main", HOSTILE),
    }  # fmt: skip
    orders = found["main", "orders"]
    assert (orders["kind"], orders["rows"], orders["files"], orders["deleted_rows"]) == ("table", 26, 3, 4)
    assert (orders["partitioned_by"], orders["comment"]) == (["region"], "[bold]all[/]")
    assert (found["main", HOSTILE]["rows"], found["main", HOSTILE]["inlined_rows"]) == (1, 1)
    assert (found["main", "eu"]["kind"], found["main", "eu"]["comment"], found["main", HOSTILE]["comment"]) == (
        "view", None, "NULL",
    )  # fmt: skip
    assert {line["name"]: line["rows"] for line in penstock("ls", lake.uri, "--csv").csv} == {
        "": "", "eu": "", "twice": "", "orders": "26", HOSTILE: "1",
    }  # fmt: skip
    shown = penstock("ls", lake.uri)
    assert "[red]🦆\\x1b[31m\\u202e`.\"'<script>,\\n" in shown.out
    assert "[bold]all[/]" in shown.out
    assert "2 tables, 27 rows, 3 files" in shown.out
    assert "\x1b" not in shown.out
    assert "2 tables" not in penstock("ls", lake.uri, "--quiet").out


@pytest.mark.one_catalog
def test_show(lake: Catalog) -> None:
    facts = penstock("show", lake.uri, "orders", "--json").json
    assert (facts["rows"], facts["files"], facts["deleted_rows"], facts["name"]) == (26, 3, 4, "orders")
    assert [column["column"] for column in facts["columns"]] == ["id", "region", "s"]
    columns = {column["column"]: column for column in penstock("show", lake.uri, "orders", "--schema", "--json").json}
    assert columns.keys() == {"id", "region", "s", "s.a", "s.b"}
    assert (columns["id"]["nullable"], columns["id"]["min_value"], columns["id"]["max_value"]) == (False, "0", "29")
    assert (columns["region"]["default"], columns["s"]["default"]) == ("none", None)
    shown = penstock("show", lake.uri, "orders").out
    assert "main.orders" in shown
    assert "26" in shown
    view = penstock("show", lake.uri, "eu", "--json").json
    assert (view["kind"], view["dialect"]) == ("view", "duckdb")
    name = '"' + HOSTILE.replace('"', '""') + '"'
    assert penstock("show", lake.uri, name, "--json").json["columns"][0]["column"] == '"x.y"'
    assert "\x1b" not in penstock("show", lake.uri, name).out


@pytest.mark.one_catalog
def test_files_and_partitions(lake: Catalog) -> None:
    files = penstock("show", lake.uri, "orders", "--files", "--sort", "deleted", "--json").json
    with lake.reference() as reference:
        known = {row[0] for row in reference.rows("SELECT data_file FROM ducklake_list_files('lk', 'orders')")}
    assert {file["path"] for file in files} == known
    assert [file["deleted_rows"] for file in files] == [2, 1, 1]
    assert files[0]["partition"] == [{"name": "region", "transform": "identity", "value": None}]
    partitions = penstock("show", lake.uri, "orders", "--partitions", "--json").json
    assert [(one["partition"][0]["value"], one["rows"]) for one in partitions] == [(None, 10), ("r1", 10), ("r2", 10)]
    shown = penstock("show", lake.uri, "orders", "--partitions", "--limit", "1").out
    assert "region=NULL" in shown
    assert "2 more: give a greater --limit" in shown
    assert "2 more" not in penstock("show", lake.uri, "orders", "--partitions", "--limit", "1", "--json").out
    assert "there is no order 'colour'" in refused("show", lake.uri, "orders", "--files", "--sort", "colour")
    assert "--sort is for" in refused("show", lake.uri, "orders", "--sort", "size", code=2)
    assert "give one of" in refused("show", lake.uri, "orders", "--files", "--schema", code=2)
    for few in (["--limit", "5"], ["--schema", "-n", "5"]):
        assert "--limit is for --files" in refused("show", lake.uri, "orders", *few, code=2)


def test_snapshots_and_history(lake: Catalog) -> None:
    snapshots = penstock("snapshots", lake.uri, "--json").json
    with lake.reference() as reference:
        known = reference.rows("SELECT snapshot_id, snapshot_time, changes FROM lk.snapshots() ORDER BY 1 DESC")
    assert [(line["snapshot"], line["changes"]) for line in snapshots] == [(row[0], row[2]) for row in known]
    times = [datetime.fromisoformat(line["time"]) for line in snapshots]
    assert [time.replace(microsecond=0) for time in times] == [row[1].replace(microsecond=0) for row in known]
    assert all(line["time"].endswith("+00:00") for line in snapshots)
    few = penstock("snapshots", lake.uri, "--limit", "1", "--before", "3", "--json").json
    assert [line["snapshot"] for line in few] == [2]
    history = penstock("history", lake.uri, "orders", "--json").json
    assert history[0]["rows_removed"] == 4
    assert (history[-1]["actions"], sum(line["rows_added"] for line in history)) == (["created table main.orders"], 30)
    assert history == penstock("show", lake.uri, "orders", "--snapshots", "--json").json
    assert "created table main.orders" in penstock("history", lake.uri, "main.orders").out


@pytest.mark.one_catalog
def test_what_a_lake_did_after_the_snapshot_that_is_looked_at_is_not_listed(
    lake: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*arguments: str) -> list[int]:
        return [line["snapshot"] for line in penstock(*arguments, "--json").json]

    assert listed("show", lake.uri, "orders", "--snapshots", "--at", "3") == [3, 2, 1]
    monkeypatch.setenv("PENSTOCK_LAKE_THEN", lake.uri)
    monkeypatch.setenv("PENSTOCK_LAKE_THEN__SNAPSHOT_VERSION", "3")
    assert listed("history", "then", "orders") == listed("show", "then", "orders", "--snapshots") == [3, 2, 1]
    assert listed("snapshots", "then") == [3, 2, 1, 0]
    assert listed("snapshots", "then", "--before", "99", "--limit", "1") == [3]
    assert "3 more: give a greater --limit" in penstock("snapshots", "then", "--limit", "1").out
    assert "1 more: give a greater --limit" in penstock("snapshots", "then", "--before", "3", "--limit", "2").out


@pytest.mark.one_catalog
def test_at_a_snapshot(lake: Catalog) -> None:
    newest = penstock("snapshots", lake.uri, "--json").json
    last, before = newest[:2]
    of_its_time = 26 if before["time"] == last["time"] else 30  # MySQL may keep whole seconds
    for moment, expected in ((str(before["snapshot"]), 30), (before["time"], of_its_time)):
        rows = {line["name"]: line["rows"] for line in penstock("ls", lake.uri, "--at", moment, "--json").json}
        assert rows["orders"] == expected
    assert "snapshot 999 does not exist" in refused("ls", lake.uri, "--at", "999")
    assert "is not a timestamp" in refused("ls", lake.uri, "--at", "yesterday\x1b")


def test_lakes_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for lake in ("none.ducklake", "ducklake:none.ducklake", "ducklake:sqlite:none.sqlite", "sqlite:none.sqlite"):
        for command in (["ls", lake], ["show", lake, "t"], ["snapshots", lake], ["history", lake, "t"]):
            assert "no DuckLake at" in refused(*command)
    assert "there is no lake named 'sales'" in refused("ls", "sales")
    assert "no such file" in refused("ls", "") or "default lake" in refused("ls", "")
    Path("text.ducklake").write_text("x" * 5000)
    assert "is not a DuckLake" in refused("ls", "text.ducklake", "--json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.ducklake"]


@pytest.mark.one_catalog
def test_tables_that_are_not_there(lake: Catalog) -> None:
    assert "table main.none does not exist" in refused("show", lake.uri, "none")
    assert "table main.none does not exist" in refused("history", lake.uri, "none")
    assert "is a view, not a table" in refused("show", lake.uri, "eu", "--files")
    assert "is not a table name" in refused("show", lake.uri, "a..b")


def test_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_catalog: Catalog) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS a")
    monkeypatch.chdir(tmp_path)
    assert penstock("ls", "lake.sqlite", "--json").json[0]["name"] == "t"
    assert penstock("ls", "sqlite:lake.sqlite", "--json").json[0]["name"] == "t"
    monkeypatch.delenv("PENSTOCK_CONFIG")
    monkeypatch.setenv("PENSTOCK_LAKE_PROD", f"postgres:dbname=x password={SECRET}")
    monkeypatch.setenv("PENSTOCK_LAKE_BROKEN__READ_ONLY", SECRET)
    Path("penstock.toml").write_text(
        "default = 'sales'\n[lakes.sales]\nlocation = 'sqlite:lake.sqlite'\nread_only = true"
    )
    for lake in ("sales", "ducklake:sales", "ducklake:"):
        assert penstock("ls", lake, "--json").json[0]["name"] == "t"
    listed = penstock("lakes", "--json")
    assert SECRET not in listed.out
    assert [line["name"] for line in listed.json] == ["broken", "prod", "sales"]
    assert listed.json[2] == {
        "name": "sales", "location": "ducklake:sqlite:lake.sqlite", "settings": ["read_only"], "error": None,
    }  # fmt: skip
    assert "no lake named 'stock': named lakes are broken, prod, sales" in refused("ls", "stock")
    monkeypatch.delenv("PENSTOCK_LAKE_PROD")
    assert "prod" not in penstock("lakes").out


def test_a_password_with_blanks_is_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG")
    monkeypatch.setenv("PG_HOST", "127.0.0.1")
    monkeypatch.setenv("PW", f"{SECRET} x={SECRET} '{SECRET}")
    monkeypatch.setenv("PENSTOCK_LAKE_E", f"postgres:host=127.0.0.1 port=1 password=q {SECRET} dbname=x")
    Path("penstock.toml").write_text(
        """lakes.a.location = "postgres:host=${PG_HOST} port=1 dbname=x password=${PW}"
        lakes.b.location = "postgres:host=${PG_HOST} port=1 dbname=x password = '${PW}'"
        lakes.c.location = "postgresql://me:${PW}@${PG_HOST}:1/x"
        lakes.d.location = "postgresql://${PG_HOST}:1/x?password=${PW}&sslmode=disable"
        """
    )
    listed = penstock("lakes", "--json")
    assert [line["location"] is not None for line in listed.json] == [True] * 5
    assert "ducklake:postgres:host=127.0.0.1 port=1 dbname=x password=***" in listed.out
    told = listed.out + penstock("lakes").out + "".join(refused("ls", name) for name in "abcde")
    assert SECRET not in told


def test_a_file_that_another_process_writes_to(duckdb_catalog: Catalog) -> None:
    with duckdb_catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT 1 AS a")
    with Child(_hold, (duckdb_catalog.target,)) as holder:
        holder.is_ready()
        assert "is held by another process (a DuckDB file has one writer" in refused("ls", duckdb_catalog.uri)


def _hold(path: str, pipe) -> None:  # type: ignore[no-untyped-def]
    import duckdb

    from support.processes import READY

    with duckdb.connect(path):
        pipe.send(READY)
        pipe.recv()


def test_a_server_that_is_not_there() -> None:
    told = refused("ls", f"ducklake:postgres:host=127.0.0.1 port=1 dbname=x password={SECRET}")
    assert SECRET not in told
    assert "ducklake:postgres:host=127.0.0.1" in told


def test_wrong_usage_and_help() -> None:
    for command in (["ls"], ["nonsense"], ["ls", "a.ducklake", "--nonsense"], ["show", "a", "t", "--limit", "0"]):
        answer = penstock(*command)
        assert (answer.code, answer.out) == (2, "")
    assert "not both" in refused("ls", "a.ducklake", "--json", "--csv", code=2)
    told = penstock("--help")
    assert told.code == 0
    for word in ("ls", "show", "doctor", "maintain", "explore", "copy-catalog", "import", "$ penstock create"):
        assert word in told.out
    assert "$ penstock show sales orders --files" in penstock("show", "--help").out
    assert penstock("--version").out.startswith("penstock ")


def test_errors_that_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(f"broken\n{text}")

    monkeypatch.setattr("penstock.cli.lakes.uri_of", broken)
    told = refused("ls", "a.ducklake\x1b[31m")
    assert "RuntimeError: broken a.ducklake\\x1b[31m (this should not happen; PENSTOCK_TRACEBACK=1 shows" in told
    monkeypatch.setenv("PENSTOCK_TRACEBACK", "1")
    assert penstock("ls", "a.ducklake").code == 1


def test_nothing_of_it_needs_spark(duckdb_catalog: Catalog, tmp_path: Path) -> None:
    with duckdb_catalog.build() as reference:
        reference.execute(f"CREATE TABLE t AS SELECT 1 AS a, {', '.join(f'1 AS c{i}' for i in range(40))}")
    commands = [
        ["create", f"ducklake:{tmp_path}/new.ducklake"],
        ["ls", duckdb_catalog.uri],
        ["show", duckdb_catalog.uri, "t", "--files"],
        ["snapshots", duckdb_catalog.uri],
        ["history", duckdb_catalog.uri, "t"],
        ["copy-catalog", duckdb_catalog.uri, f"ducklake:sqlite:{tmp_path}/copy.sqlite"],
        ["copy-catalog", duckdb_catalog.uri, f"ducklake:{tmp_path}/copy.ducklake"],
        ["lakes"],
    ]
    script = """
import sys
from penstock.cli.application import run
for command in {commands}:
    assert run(command) == 0, command
assert not any(map(sys.modules.get, ("pyspark", "py4j", "pandas")))
from penstock.cli.delayed_imports import bring_back
bring_back()
import pandas, pyarrow
assert pyarrow.array(pandas.Series([float("nan")])).null_count == 1
"""
    done = subprocess.run(
        [sys.executable, "-c", script.format(commands=commands)], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "there is a lake at" in done.stderr


def test_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
    around = {**environment(), "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"}
    done = subprocess.run([sys.executable, "-m", "penstock.cli", "ls"], env=around, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "penstock: typer is not installed: pip install 'penstock[cli]'\n"


def test_outputs_that_take_little(duckdb_catalog: Catalog, tmp_path: Path) -> None:
    with duckdb_catalog.build() as reference:
        reference.execute('CREATE TABLE "🦆" (a INTEGER)')
    script = f"""
import os, sys
from penstock.cli.application import run
def written_to(number, *options):
    os.dup2(number, 1)
    print(run(["ls", {duckdb_catalog.uri!r}, *options]), file=sys.stderr)
written_to(os.open({str(tmp_path / "out")!r}, os.O_WRONLY | os.O_CREAT))
full = os.open("/dev/full", os.O_WRONLY)
written_to(full)
written_to(full, "--json")
written_to(full, "--help")
reads, writes = os.pipe()
os.close(reads)
written_to(writes)
written_to(writes, "--csv")
sys.stdout = None
written_to(writes, "--csv")
"""
    around = {**environment(), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], env=around, capture_output=True, text=True)
    full = ["penstock: standard output cannot be written to: No space left on device", "1"]
    closed = ["penstock: standard output is closed; send it to a file, or to /dev/null", "1"]
    assert done.stderr.splitlines() == ["0", *full * 3, "0", "0", *closed]
    assert done.returncode == 0
    assert "\\U0001f986" in (tmp_path / "out").read_text("ascii")


def test_an_interrupt_at_once() -> None:
    script = """
import os, signal, sys, threading
from penstock.cli import main
sys.argv = ["penstock", "ls", "none.ducklake"]
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
main()
"""
    line = f'{sys.executable} -c "$0"; exit $?'
    done = subprocess.run(["bash", "-c", line, script], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_numbers_that_are_too_large() -> None:
    for options in (["--at", "9" * 5000], ["--at", "9" * 20]):
        assert "no snapshot has a number of" in refused("ls", "none.ducklake", *options, code=2)
    for command in (["snapshots", "none.ducklake"], ["sql", "none.ducklake", "SELECT 1"]):
        assert "2147483646" in refused(*command, "--limit", "9" * 20, code=2)
    assert "2147483646" in refused("show", "none.ducklake", "t", "--files", "--limit", "9" * 20, code=2)
    assert "9" * 18 in refused("snapshots", "none.ducklake", "--before", "1" + "0" * 18, code=2)
    assert "no snapshot has a number of" in refused("changes", "none.ducklake", "t", "9" * 20, code=2)


def test_a_reader_that_has_seen_enough(duckdb_catalog: Catalog) -> None:
    with duckdb_catalog.build() as reference:
        reference.execute(*(f"CREATE TABLE t{i} (a INTEGER)" for i in range(5)))
    line = f"{sys.executable} -m penstock.cli ls {duckdb_catalog.uri} --json | true"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], env=environment(), capture_output=True, text=True)
    assert done.stderr == ""
