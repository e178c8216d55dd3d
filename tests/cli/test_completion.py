"""What a shell is told that asks how a line may go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.processes import environment


def completed(line: str, folder: Path) -> list[str]:
    """What Bash would offer for the last word."""
    asked = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli"],
        env={**environment(), **asked},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_lakes_and_tables(duckdb_catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb_catalog.build() as reference:
        reference.execute("CREATE TABLE orders (a INTEGER)", "CREATE SCHEMA eu", 'CREATE TABLE eu."o.dd" (a INTEGER)')
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", duckdb_catalog.uri)
    (tmp_path / "sales.ducklake").touch()
    assert completed("penstock sn", tmp_path) == ["snapshots"]
    assert completed("penstock ls sa", tmp_path) == ["sales", "sales.ducklake"]
    assert completed("penstock show sales ord", tmp_path) == ["orders"]
    assert completed("penstock history lake.ducklake main.", tmp_path) == ["main.orders"]
    assert completed("penstock show none.ducklake o", tmp_path) == []
    assert not (tmp_path / "none.ducklake").exists()
