"""Files that are deleted, many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.storage.file_deletion import delete_all


def test_a_path_given_twice_is_deleted_once(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(200)]
    for path in paths:
        Path(path).touch()
    assert delete_all([path for path in paths for _ in range(4)]) == [True] * 800
    assert list(tmp_path.iterdir()) == []


def test_cleanups_at_once_do_not_trip_over_each_other(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(500)]
    for path in paths:
        Path(path).touch()
    with ThreadPoolExecutor(4) as pool:
        for gone in pool.map(delete_all, [paths] * 4):
            assert all(gone)


def test_one_that_is_not_there_is_gone(tmp_path: Path) -> None:
    missing, present = str(tmp_path / "missing"), tmp_path / "present"
    present.touch()
    assert delete_all([missing, str(present)]) == [True, True]
    assert delete_all([]) == []
