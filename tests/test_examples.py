"""The programs and the notebook of `examples/` do what they say, twice in a row where they are made for it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from pyspark.sql import SparkSession

from support.documents import ROOT
from support.processes import environment

EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "first_lake.ipynb"
# What each says, the first time and the second, in the same folder.
SAID = {
    "nightly_pipeline.py": (["night 0: 100 orders", "|     Ada|1683.00|"], ["night 1: 200 orders"]),
    "stream.py": (["|home|     2|", "|shop|     1|"], ["|home|     4|", "|shop|     2|"]),
    "duckdb_and_spark.py": (["|    EU|374280.0|", "10 rows, before and after"],) * 2,
}


@pytest.mark.parametrize("name", SAID)
def test_programs_say_what_they_did(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    for said in SAID[name]:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr().out
        assert [line for line in said if line not in printed] == [], printed


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", [*SAID, "demo.py"])
def test_programs_run_by_themselves(name: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    # Spark's own catalog makes a folder for tables when it is first asked for a name, and nothing in it.
    assert [path.name for path in tmp_path.rglob("*") if path.name != "spark-warehouse"] == []


def cells() -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_notebook_is_kept_without_what_it_showed() -> None:
    assert [(cell.outputs, cell.execution_count) for cell in cells()] == [([], None)] * len(cells())


def test_cells_of_the_notebook(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for cell in cells():
        exec(compile(cell.source, NOTEBOOK.name, "exec"), names)
    printed = capsys.readouterr().out
    assert "3000 rows at first, 2990 now" in printed
    assert "region = 'EU' AND id > 2900: 1 of" in printed


@pytest.mark.slow
@pytest.mark.spark
def test_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("rows at first" in output.get("text", "") for output in shown)
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 3
