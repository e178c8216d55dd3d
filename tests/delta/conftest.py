"""Tables that several test modules read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake


def _small(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([f"{i % 2}" for i in ids])})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions 0 to 5: create, append, delete, overwrite and a checkpoint, append twice."""
    path = tmp_path_factory.mktemp("written")
    write_deltalake(path, _small(1, 2), partition_by=["p"])
    write_deltalake(path, _small(3, 4), mode="append")
    DeltaTable(path).delete("id = 4")
    write_deltalake(path, _small(5, 6, 7), mode="overwrite")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, _small(8), mode="append")
    write_deltalake(path, _small(9), mode="append")
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    """A copy of the table that deltalake has written, which a test may change."""
    return shutil.copytree(written, tmp_path / "table")
