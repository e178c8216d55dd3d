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


@pytest.mark.spark
@pytest.mark.slow
def test_a_notebook(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(cell.replace("{path}", str(tmp_path / "lake.ducklake"))) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(env=users_environment())
    _, snapshot, lake, orders, explanation, slow, silent, closed = notebook.cells
    assert "Snapshot 2" in html(snapshot)
    assert "main.orders" in html(lake)
    assert "DECIMAL(12,2)" in html(orders)
    assert "0 of 1 files are read" in html(explanation)
    [bar] = [output for output in slow.outputs if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert "append main.orders: 100%" in bar.data["text/plain"]
    widgets = json.dumps(notebook.metadata.widgets)
    assert "append main.orders" in widgets
    assert "8,000 rows" in widgets
    assert '"bar_style": "success"' in widgets
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
