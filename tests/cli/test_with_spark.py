"""Commands whose work is Spark's, and the prompt: few, on one lake each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pyspark.sql import SparkSession

import penstock as library
from support.catalogs import Catalog
from support.command_line import penstock, refused

pytestmark = pytest.mark.classic


@pytest.fixture
def lake(catalog: Catalog, spark: SparkSession) -> str:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (a INTEGER, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'NULL'), (2, NULL), (3, '')",
            "INSERT INTO t VALUES (4, '[red]\x1b[31m🦆')",
            "DELETE FROM t WHERE a = 1",
        )
    return catalog.uri


@pytest.mark.one_catalog
def test_sql(lake: str) -> None:
    rows = penstock("sql", lake, "SELECT * FROM t ORDER BY a", "--json").json
    assert rows == [{"a": 2, "b": None}, {"a": 3, "b": ""}, {"a": 4, "b": "[red]\x1b[31m🦆"}]
    assert penstock("sql", lake, "SELECT * FROM t ORDER BY a", "--csv").out.splitlines()[:3] == ["a,b", "2,", '3,""']
    shown = penstock("sql", lake, "SELECT * FROM t ORDER BY a")
    assert "[red]\\x1b[31m🦆" in shown.out
    assert "NULL" in shown.out
    assert penstock("sql", lake, "FROM t SELECT a LIMIT 1", "--dialect", "duckdb", "--json").code == 0
    assert "the first 1 rows" in penstock("sql", lake, "SELECT * FROM t", "--limit", "1").out
    assert [line["a"] for line in penstock("sql", lake, "SELECT a FROM t", "--limit", "1", "--json").json] != []
    told = refused("sql", lake, "SELECT nonsense FROM t", "--json")
    assert "nonsense" in told
    assert "this should not happen" not in told
    assert "cannot be changed" in refused("sql", lake, "DELETE FROM t", "--read-only")
    assert penstock("sql", lake, "DELETE FROM t WHERE a = 2", "--csv").code == 0
    rows = penstock("sql", lake, "--csv", given="SELECT count(*) AS n\nFROM t;\nSELECT 1 AS one").out.splitlines()
    assert rows == ["n", "2", "one", "1"]


@pytest.mark.one_catalog
def test_values_for_programs(lake: str) -> None:
    values = """SELECT CAST('NaN' AS DOUBLE) AS nan, CAST(0.5 AS DECIMAL(38, 37)) AS exact, DATE '1969-12-31' AS day,
        TIMESTAMP '9999-12-31 23:59:59.999999' AS moment, TIMESTAMP_NTZ '1969-12-31 23:59:59.5' AS local,
        X'00ff' AS bytes, array(1, null) AS list, map(1, 'x') AS map, named_struct('a', 1) AS struct, 1 AS a, 2 AS a"""
    [row] = penstock("sql", lake, values, "--json").json
    assert row == {
        "nan": "nan", "exact": "0." + "5" + "0" * 36, "day": "1969-12-31", "moment": "9999-12-31T23:59:59.999999+00:00",
        "local": "1969-12-31T23:59:59.500000", "bytes": "00ff", "list": [1, None], "map": {"1": "x"},
        "struct": {"a": 1}, "a": 1, "a_2": 2,
    }  # fmt: skip


@pytest.mark.one_catalog
def test_values_that_python_lacks(catalog: Catalog, spark: SparkSession) -> None:
    kinds = {"d": "DATE", "t": "TIMESTAMP", "z": "TIMESTAMPTZ"}
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            f"""CREATE TABLE far (i INT, {", ".join(f"{name} {kind}" for name, kind in kinds.items())},
                l DATE[], m MAP(VARCHAR, TIMESTAMP), s STRUCT(a INT, t STRUCT(z TIMESTAMPTZ)))""",
            *(
                f"""INSERT INTO far
                    SELECT {i}, x, x, x, [x, NULL], MAP {{'k': x::TIMESTAMP}}, {{'a': 1, 't': {{'z': x}}}}
                    FROM (SELECT '{value}' AS x)"""
                for i, value in enumerate(("infinity", "-infinity", "1969-12-31"))
            ),
            "INSERT INTO far (i, s) VALUES (3, {'a': 1, 't': NULL})",
        )
    found = penstock("sql", catalog.uri, "SELECT * EXCEPT (i) FROM far ORDER BY i", "--json").json
    for row, text in zip(found, ("infinity", "-infinity"), strict=False):
        assert row == {
            "d": text, "t": text, "z": text, "l": [text, None], "m": {"k": text}, "s": {"a": 1, "t": {"z": text}},
        }  # fmt: skip
    assert found[2] == {
        "d": "1969-12-31", "t": "1969-12-31T00:00:00", "z": "1969-12-31T00:00:00+00:00", "l": ["1969-12-31", None],
        "m": {"k": "1969-12-31T00:00:00"}, "s": {"a": 1, "t": {"z": "1969-12-31T00:00:00+00:00"}},
    }  # fmt: skip
    assert found[3] == {"d": None, "t": None, "z": None, "l": None, "m": None, "s": {"a": 1, "t": None}}
    values = """SELECT DATE '+12345-06-07' AS d, make_interval(1, 2, 0, 3) AS i, INTERVAL '1-2' YEAR TO MONTH AS y,
        map(DATE '9999-12-31', array(TIMESTAMP '+12345-06-07 08:09:10')) AS m,
        from_json('{"a": 1}', 'a INT, b DATE') AS s, array(named_struct('a', 1, 'a', DATE '0001-01-01')) AS l"""
    [row] = penstock("sql", catalog.uri, values, "--json").json
    assert row == {
        "d": "12345-06-07", "i": "1 years 2 months 3 days", "y": "INTERVAL '1-2' YEAR TO MONTH",
        "m": {"9999-12-31": ["12345-06-07T08:09:10.000000+00:00"]}, "s": {"a": 1, "b": None},
        "l": [{"a": 1, "a_2": "0001-01-01"}],
    }  # fmt: skip
    assert "infinity" in penstock("sql", catalog.uri, "SELECT * FROM far").out


@pytest.mark.one_catalog
def test_changes(lake: str) -> None:
    rows = penstock("changes", lake, "t", "2", "4", "--json").json
    assert sorted((row["snapshot_id"], row["change_type"], row["a"]) for row in rows) == [
        (2, "insert", 1), (2, "insert", 2), (2, "insert", 3), (3, "insert", 4), (4, "delete", 1),
    ]  # fmt: skip
    assert len(penstock("changes", lake, "t", "4", "--csv").csv) == 1
    assert "snapshot" in refused("changes", lake, "t", "99")


def test_maintain(lake: str, catalog: Catalog) -> None:
    before = penstock("snapshots", lake, "--json").json
    planned = penstock("maintain", lake, "rewrite", "--dry-run", "--json").json
    assert planned == []  # two of three rows are there: below the threshold
    steps = {line["step"]: line["count"] for line in penstock("maintain", lake, "--dry-run", "--json").json}
    assert steps == {
        "flush_inlined_data": steps["flush_inlined_data"], "expire_snapshots": 0, "rewrite_data_files": 0,
        "merge_adjacent_files": 0, "cleanup_old_files": 0, "delete_orphaned_files": 0,
    }  # fmt: skip
    penstock("sql", lake, "INSERT INTO t VALUES (5, 'x')", "--quiet")
    penstock("sql", lake, "ALTER TABLE t SET TBLPROPERTIES ('ducklake.data_inlining_row_limit' = '0')", "--quiet")
    penstock("maintain", lake, "flush", "--quiet")
    penstock("sql", lake, "INSERT INTO t VALUES (6, 'y')", "--quiet")
    [line] = penstock("maintain", lake, "merge", "--table", "t", "--dry-run", "--json").json
    assert len(penstock("snapshots", lake, "--json").json) > len(before)
    assert penstock("maintain", lake, "merge", "--table", "main.t", "--json").json == [line]
    shown = penstock("maintain", lake, "expire", "--keep-last", "1", "--dry-run")
    assert "nothing was done" in shown.out
    expired = penstock("maintain", lake, "expire", "--keep-last", "1", "--json").json
    assert expired[0]["snapshot"] == 0
    assert expired[0]["time"].endswith("+00:00")
    cleaned = penstock("maintain", lake, "cleanup", "--all", "--csv").csv
    assert len(cleaned) >= 2
    assert not any(Path(line["path"]).exists() for line in cleaned)
    assert penstock("maintain", lake, "orphans", "--older-than", "1 day", "--json").json == []
    quiet = penstock("maintain", lake, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    with catalog.reference() as reference:
        assert reference.value("SELECT count(*) FROM t") == 5


@pytest.mark.one_catalog
def test_what_the_doctor_says_helps(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (a INTEGER)", *(f"INSERT INTO t VALUES ({i})" for i in range(20)))
    [remedy] = [one["remedy"] for one in penstock("doctor", catalog.uri, "--json").json if one["table"] == "t"]
    program, *command = shlex.split(remedy)
    assert program == "penstock"
    assert penstock(*command).code == 0
    assert not [one for one in penstock("doctor", catalog.uri, "--json").json if one["table"] == "t"]


@pytest.mark.one_catalog
def test_import_duckdb(catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    shop = tmp_path / "a shop.duckdb"
    with duckdb.connect(str(shop)) as source:
        source.execute("CREATE TABLE orders AS SELECT i AS id, 'é' AS note FROM range(5) r(i)")
        source.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, kind ENUM ('a', 'b'))")
        source.execute("INSERT INTO odd VALUES (1, 'a')")
        source.execute("CREATE VIEW big AS SELECT * FROM orders WHERE id > 3")
        source.execute("CREATE SEQUENCE numbers")
    with catalog.build():
        pass
    shown = penstock("import", "duckdb", str(shop), catalog.uri, "--dry-run").out
    assert re.search('"main"."odd"."kind" +column +changed', shown)
    planned = penstock("import", "duckdb", str(shop), catalog.uri, "--dry-run", "--json").json
    assert [line["snapshot"] for line in penstock("snapshots", catalog.uri, "--json").json] == [0]
    report = penstock("import", "duckdb", str(shop), catalog.uri, "--json").json
    assert planned == report
    assert {(line["object"], line["kind"], line["action"], line["rows"]) for line in report} == {
        ('"main"."orders"', "table", "brought", 5), ('"main"."odd"', "table", "brought", 1),
        ('"main"."odd"."kind"', "column", "changed", None), ('"main"."odd"', "constraint", "left", None),
        ('"main"."big"', "view", "brought", None), ('"main"."numbers"', "sequence", "left", None),
    }  # fmt: skip
    assert all(line["note"] for line in report if line["action"] != "brought")
    assert [line["snapshot"] for line in penstock("snapshots", catalog.uri, "--json").json] == [1, 0]
    with catalog.reference() as reference:
        assert reference.rows("FROM orders ORDER BY id") == [(i, "é") for i in range(5)]
        assert reference.rows("FROM odd") == [(1, "a")]
        assert reference.rows("SELECT id FROM big") == [(4,)]
    # What is there already stays as it is.
    assert "already" in refused("import", "duckdb", str(shop), catalog.uri)


@pytest.mark.parametrize(
    "options",
    [
        ["merge", "--older-than", "1 day"],
        ["expire", "--table", "t"],
        ["--all"],
        ["flush", "--keep-last", "1"],
        ["dance"],
    ],
)
def test_options_of_other_work(options: list[str]) -> None:
    assert penstock("maintain", "a.ducklake", *options).code == 2


@pytest.mark.parametrize(
    ("age", "told"),
    [
        ("7", "has no unit: write '7 days'"), (" +1.5 ", "has no unit"), ("-10 days", "yet to come"),
        ("7 days ago", "yet to come"), ("2126-04-10", "yet to come"), ("soon", "is not understood"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("work", ["expire", "cleanup", "orphans"])
def test_ages_that_nobody_means(work: str, age: str, told: str) -> None:
    answer = penstock("maintain", "none.ducklake", work, "--older-than", age)
    assert (answer.code, told in " ".join(answer.err.replace("│", "").split())) == (2, True), answer.err


@pytest.mark.one_catalog
def test_ages(lake: str) -> None:
    for age in ("99999 years", "300000 years"):
        assert penstock("maintain", lake, "expire", "--older-than", age, "--json").json == []
    assert penstock("maintain", lake, "expire", "--older-than", "2000-01-01", "--json").json == []


@pytest.fixture
def attached(sqlite_catalog: Catalog, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[library.Lake]:
    with sqlite_catalog.build() as reference:
        reference.execute('CREATE TABLE orders (id INTEGER, "odd name" INTEGER)', "INSERT INTO orders VALUES (41, 1)")
    monkeypatch.setenv("XDG_STATE_HOME", str(sqlite_catalog.directory / "state"))
    with library.attach(sqlite_catalog.uri, spark=spark) as opened:
        yield opened


def typed(lake: library.Lake, keys: str) -> None:
    """What somebody types at the prompt."""
    from penstock.cli.prompt import Asked, at_prompt, prompt_session

    asked = Asked(lake, "spark", 10)
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        at_prompt(asked, prompt_session(asked, input=pipe, output=DummyOutput()))


def test_prompt(attached: library.Lake, capsys: pytest.CaptureFixture[str], sqlite_catalog: Catalog) -> None:
    typed(
        attached,
        "SELECT id + 1\rAS answer FROM main.o\t;\r"  # two lines, and a name that is completed
        "SELECT nonsense;\r.tables\r.help\r.dialect duckdb\rFROM orders SELECT id * 2 AS twice;\r\r.quit\r",
    )
    out = capsys.readouterr().out
    assert "answer" in out
    assert "42" in out
    assert "nonsense" in out
    assert "main.orders" in out
    assert "Tab completes names" in out
    assert "82" in out
    history = sqlite_catalog.directory / "state" / "penstock" / "history"
    assert "SELECT nonsense" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_completed_names(attached: library.Lake) -> None:
    from penstock.cli.prompt import Asked

    words = Asked(attached, "spark", None).words()
    assert {"orders", "main.orders", "`odd name`", "id", "SELECT"} <= set(words)
    assert '"odd name"' in Asked(attached, "duckdb", None).words()


def test_statements_of_a_file() -> None:
    from penstock.cli.prompt import statements

    text = "SELECT 1;\n\nSELECT ';'\n  AS b ; \nSELECT 3"
    assert list(statements(text.splitlines())) == ["SELECT 1", "SELECT ';'\n  AS b ", "SELECT 3"]
    assert list(statements(["\n", " "])) == []
