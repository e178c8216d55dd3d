"""A notebook, run as Jupyter runs it: what it shows of a lake, and how far its long work is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from pyspark.sql import SparkSession

from penstock.storage import progress
from support.terminals import users_environment

VIEW = "application/vnd.jupyter.widget-view+json"
CELLS = [
    """
import time
import penstock
spark = penstock.session("local[2]", spark_driver_memory="1g")
lake = penstock.attach("ducklake:{path}", spark=spark)
orders = lake.create_table("orders", "id BIGINT NOT NULL, total DECIMAL(12, 2) DEFAULT 0")
""",
    "orders.append(spark.sql('SELECT id, CAST(id AS DECIMAL(12, 2)) FROM range(100)'))",
    "lake",
    "orders",
    "orders.explain('id > 1000')",
    """
def slow(batches):
    time.sleep(1)
    yield from batches

rows = spark.range(0, 8000, numPartitions=8).mapInArrow(slow, "id bigint").selectExpr("id", "CAST(0 AS DECIMAL(12, 2))")
made = orders.append(rows, distribution="none")
""",
    "penstock.show_progress(False); made = orders.append(rows, distribution='none')",
    "lake.close(); lake",
]


def html(cell: Any) -> str:
    [output] = [one for one in cell.outputs if "text/html" in one.get("data", {})]
    assert "text/plain" in output.data
    return str(output.data["text/html"])


def ran(*cells: str) -> Any:
    """A notebook that was run, with its widgets."""
    pytest.importorskip("ipywidgets")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True)
    client.execute(env=users_environment())
    return notebook


def widgets(notebook: Any) -> str:
    """What the widgets of a notebook have in them in the end."""
    return json.dumps(notebook.metadata.get("widgets", {}), ensure_ascii=False).replace("\u2007", " ")


@pytest.mark.slow
def test_widgets() -> None:
    cell = """
import time
from penstock.storage.progress import progress, show_progress
with progress("delete <b>", 40) as bar:
    for number in range(40):
        time.sleep(0.1)
        bar.advance()
        assert number < LAST
"""
    notebook = ran(
        cell.replace("LAST", "40"), cell.replace("LAST", "38"), "show_progress(False)" + cell.replace("LAST", "40")
    )
    done, failed, silent = notebook.cells
    assert [VIEW in output.data for output in done.outputs] == [True]
    assert VIEW in failed.outputs[0].data
    assert failed.outputs[1].ename == "AssertionError"
    assert silent.outputs == []
    told = widgets(notebook)
    assert "delete &lt;b&gt;: 100%" in told
    assert " 40/40 files [" in told
    assert told.count('"bar_style": "success"') == told.count('"bar_style": "danger"') == 1


@pytest.mark.spark
@pytest.mark.slow
def test_a_notebook(tmp_path: Path) -> None:
    notebook = ran(*(cell.replace("{path}", str(tmp_path / "lake.ducklake")) for cell in CELLS))
    _, snapshot, lake, orders, explanation, slow, silent, closed = notebook.cells
    assert "Snapshot 2" in html(snapshot)
    assert "main.orders" in html(lake)
    assert "DECIMAL(12,2)" in html(orders)
    assert "0 of 2 files are read, 2 are pruned" in html(explanation)
    assert [VIEW in output.data for output in slow.outputs] == [True]
    assert "append main.orders: 100%" in widgets(notebook)
    assert "8,000 rows]" in widgets(notebook)
    assert '"bar_style": "success"' in widgets(notebook)
    assert silent.outputs == []
    [plain] = closed.outputs
    assert list(plain.data) == ["text/plain"]


def test_the_document(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress._Setting, "shown", None)
    names: dict[str, Any] = {}
    text = (Path(__file__).parents[1] / "docs/notebooks.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(block, names)
    with names["lake"] as lake:
        assert "Lake ducklake:sales.ducklake" in lake._repr_html_()
        findings = lake.health()
        assert findings.where("check IS NULL").count() == 0
        assert ">Health<" in findings._repr_html_()
    assert progress._Setting.shown is False
