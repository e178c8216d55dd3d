"""Files named by folders and patterns: those that DuckDB finds by the same words."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from penstock.errors import InvalidError
from penstock.storage.patterns import named_files


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links to a file, to folders inside and outside, to nothing, and to itself."""
    root = tmp_path / "root"
    for name in ("run/f.parquet", "plain/g.parquet", "plain/deep/h.parquet", "../elsewhere/e.parquet"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    for name, target in (
        ("plain/latest", "run"), ("plain/l.parquet", "run/f.parquet"), ("plain/gone.parquet", "nothing"),
        ("top", "plain"), ("me", "."), ("out", "../elsewhere"),
    ):  # fmt: skip
        (root / name).symlink_to(root / target)
    return root


@pytest.mark.parametrize(
    "pattern",
    [
        "**/*.parquet", "*/*.parquet", "*/*/*.parquet", "plain/latest/*.parquet", "plain/l*/*.parquet",
        "**/latest/*.p*", "me/**/*.parquet", "top/**/*.parquet", "**/deep/*.parquet", "out/**/*.parquet",
        "plain/?.parquet",
    ],
)  # fmt: skip
def test_links(linked: Path, pattern: str) -> None:
    found = duckdb.execute("SELECT list(file ORDER BY file) FROM glob(?)", [f"{linked}/{pattern}"]).fetchall()
    assert [(named_files(f"{linked}/{pattern}"),)] == found


def test_folders_that_are_passed_over(tmp_path: Path) -> None:
    """Those that Spark does not read, below a folder of whatever name; a pattern takes what DuckDB takes by it."""
    root = tmp_path / "_we ird [x]*?"
    kept = ["_c.parquet", "_k=1/.j=2/a.parquet", "deep/b.parquet"]
    for name in (*kept, "_temporary/0/d.parquet", "k=1/_delta_log/e.parquet", ".hidden/f.parquet"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    for path in (root, f"{root}/", f"file://{root}"):
        assert named_files(str(path)) == [f"{str(path).rstrip('/')}/{name}" for name in kept]
    found = duckdb.execute("SELECT list(file ORDER BY file) FROM glob(?)", [f"{tmp_path}/*/**/*.parquet"]).fetchall()
    assert [(named_files(f"{tmp_path}/*/**/*.parquet"),)] == found


def test_folders_with_links(linked: Path) -> None:
    """Each file once, however often links lead to it."""
    names = ["plain/deep/h.parquet", "plain/g.parquet", "plain/l.parquet", "run/f.parquet"]
    assert named_files(str(linked)) == [f"{linked}/{name}" for name in names]
    assert named_files(f"file://{linked}/out") == [f"file://{linked}/out/e.parquet"]
    assert named_files(f"{linked}/run/**/**") == [f"{linked}/run/f.parquet"]
    with pytest.raises(InvalidError, match="there is no file"):
        named_files(f"{linked}/run/f.parquet/*")
