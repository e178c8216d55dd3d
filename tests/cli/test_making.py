"""Commands that make lakes and catalogs, and the doctor: without Spark."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.command_line import penstock, refused
from support.reference import Reference


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_create(catalog: Catalog, folder: Path) -> None:
    answer = penstock("create", catalog.uri, "--data-path", catalog.data_path, "--encrypted")
    assert (answer.code, answer.out) == (0, "")
    assert "there is a lake at ducklake:" in answer.err
    assert penstock("ls", catalog.uri, "--csv").csv[0]["kind"] == "schema"
    with Reference() as reference:
        reference.attach(catalog.uri, **({"encrypted": True} if catalog.kind != "mysql" else {}))
        assert reference.rows("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lk'") == [("main",)]
    assert "there is a lake at ducklake:" in refused("create", catalog.uri)


def test_create_shows_no_password(postgres_catalog: Catalog, folder: Path) -> None:
    uri = f"{postgres_catalog.uri} password=hunter2"
    told = penstock("create", uri, "--data-path", "files").err
    command = told.partition("next: ")[2]
    assert "hunter2" not in told
    assert shlex.split(command)[2] == f"{postgres_catalog.uri} password=***"


def test_create_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no lake named 'sales'" in refused("create", "sales")
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", "sqlite:a.sqlite")
    monkeypatch.setenv("PENSTOCK_DEFAULTS__CREATE_IF_NOT_EXISTS", "false")
    assert "give data_path" in refused("create", "sales")
    monkeypatch.setenv("PENSTOCK_LAKE_SALES__DATA_PATH", "files")
    assert penstock("create", "sales", "--quiet").err == ""
    assert penstock("ls", "a.sqlite", "--json").json[0]["kind"] == "schema"
    assert "check that the directory" in refused("create", "ducklake:no/such/folder.ducklake")
    assert sorted(path.name for path in folder.iterdir()) == ["a.sqlite"]


def test_copy_catalog(catalog: Catalog, folder: Path) -> None:
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    answer = penstock("copy-catalog", catalog.uri, "ducklake:sqlite:copy.sqlite")
    assert (answer.code, answer.out) == (0, "")
    assert "copied up to snapshot 1" in answer.err
    with Reference() as reference:
        assert reference.attach("ducklake:sqlite:copy.sqlite").rows("FROM t") == [(5,)]
    assert "there is a DuckLake at" in refused("copy-catalog", catalog.uri, "ducklake:sqlite:copy.sqlite")
    assert "no lake named 'backup'" in refused("copy-catalog", catalog.uri, "backup")
    assert not Path("backup").exists()
    assert "no DuckLake at" in refused("copy-catalog", "none.ducklake", "x.ducklake")
    assert not Path("x.ducklake").exists()


def test_doctor(catalog: Catalog, folder: Path) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (a INTEGER)", *(f"INSERT INTO t VALUES ({i})" for i in range(20)))
        [file] = reference.rows("SELECT data_file FROM ducklake_list_files('lk', 't') LIMIT 1")
    findings = penstock("doctor", catalog.uri, "--json").json
    small = next(one for one in findings if one["table"] == "t" and one["check"].replace("_", " ") == "small files")
    assert small["severity"] in ("advice", "problem")
    assert small["remedy"] == f"penstock maintain {shlex.quote(catalog.uri)} merge --table main.t"
    assert "merge_adjacent_files" in small["verb"]
    healthy = penstock("doctor", catalog.uri)
    assert (healthy.code, "no problems" in healthy.out) == (0, True)
    assert penstock("doctor", catalog.uri, "--quiet").out.count("\n") < healthy.out.count("\n")
    Path(file[0]).unlink()
    assert penstock("doctor", catalog.uri, "--no-store").code == 0
    sick = penstock("doctor", catalog.uri)
    assert (sick.code, "1 problem" in sick.out) == (1, True)
    assert any(one["severity"] == "problem" for one in penstock("doctor", catalog.uri, "--json").json)


def test_import_needs_a_file(folder: Path) -> None:
    assert "there is no file 'none.duckdb'" in refused("import", "duckdb", "none.duckdb", "a.ducklake")
    assert penstock("import", "oracle", "x", "y").code == 2
