"""Columns of files whose values are in the files' paths."""

from __future__ import annotations

import pytest

from penstock.ducklake.reading.name_mapping import hive_texts
from penstock.errors import InvalidError


def test_a_path_that_lacks_a_column_is_no_null() -> None:
    assert hive_texts("/in/K=1/j=__HIVE_DEFAULT_PARTITION__/a.parquet", ["k", "J"]) == {"k": "1", "j": None}
    with pytest.raises(InvalidError, match=r"/in/k=a=b/a\.parquet is in no directory k=\.\.\., by which the catalog"):
        hive_texts("/in/k=a=b/a.parquet", ["k"])
