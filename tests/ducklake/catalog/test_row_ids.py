"""Conditions on row ids: as many as a database takes, whatever the history."""

from __future__ import annotations

from penstock.ducklake.catalog.visible_files import RowIdSpan


def test_a_long_history_makes_no_long_condition() -> None:
    counted = tuple((10 * n, 10 * n + n % 7) for n in range(5_000))
    sql = RowIdSpan(5, 9, counted).sql
    assert sql.count("BETWEEN") == 100
    assert "BETWEEN 60 AND 66" in sql  # a long one
