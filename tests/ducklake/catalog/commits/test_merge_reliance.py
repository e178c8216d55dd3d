"""Which rows of others break what a merge relies on, for values of every type that hurt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.ducklake.catalog import objects
from penstock.ducklake.catalog.commits.merge_reliance import MergeReliance
from penstock.ducklake.catalog.databases import Database
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.catalog.snapshots import snapshot_by_version
from penstock.ducklake.catalog.visibility import At
from penstock.predicates import implied_by
from support.catalogs import Catalog

# A column, its type, a row's value, and literals of Spark's that equal it and that do not.
ROWS: list[tuple[str, str, str, list[Any], list[Any] | None]] = [
    ("i", "INT", "5", ["int", 5], ["int", 6]),
    ("u", "UBIGINT", "18446744073709551615", ["decimal(20,0)", "18446744073709551615"], ["decimal(20,0)", "5"]),
    ("s", "VARCHAR", "'🦆'", ["string", "🦆"], ["string", "￰"]),
    ("d", "DATE", "'1969-12-31'", ["date", -1], ["date", 0]),
    ("ts", "TIMESTAMP", "'1969-12-31 23:59:59.999999'", ["timestamp_ntz", -1], ["timestamp_ntz", 0]),
    ("ms", "TIMESTAMP_MS", "'1970-01-01 00:00:00.001'", ["timestamp_ntz", 1000], ["timestamp_ntz", 1]),
    ("tz", "TIMESTAMPTZ", "'1970-01-01 01:00:00+01'", ["timestamp", 0], ["timestamp", 3_600_000_000]),
    ("n", "DECIMAL(38,3)", "9999999999999999.999", ["decimal(38,3)", "9999999999999999.999"], ["decimal(38,3)", "1.5"]),
    ("f", "DOUBLE", "'nan'::DOUBLE", ["double", "NaN"], None),  # a file's statistics say nothing of it
    ("z", "DOUBLE", "-0.0", ["double", "0.0"], ["double", "0.5"]),
    ("b", "BOOLEAN", "true", ["boolean", True], ["boolean", False]),
]


@pytest.fixture(params=[0, 10])
def database(request: pytest.FixtureRequest, file_catalog: Catalog) -> Iterator[Database]:
    """A row of these values in snapshot 2, one of NULLs in snapshot 3: in files, or in the catalog."""
    columns = ", ".join(f"{name} {type}" for name, type, *_ in ROWS)
    values = ", ".join(value for _, _, value, *_ in ROWS)
    with file_catalog.reference(data_inlining_row_limit=request.param) as reference:
        reference.execute(
            f"CREATE TABLE t ({columns}, l INT[])",
            f"INSERT INTO t VALUES ({values}, [1])",
            "INSERT INTO t (i) VALUES (NULL)",
        )
    catalog = open_catalog(file_catalog.uri, AttachOptions(file_catalog.data_path))
    yield catalog.database
    catalog.database.close()


def reliance(database: Database, filter: Any) -> MergeReliance:
    table = objects.find_table(database, At(3), "", "main", "t")
    columns = objects.columns_at(objects.column_versions(database, table.id), At(3))
    return MergeReliance(table.id, tuple(columns), (), implied_by([json.dumps(filter)], columns))


def test_rows_that_may_match_and_rows_that_cannot(database: Database) -> None:
    before, between, after = (snapshot_by_version(database, version) for version in (1, 2, 3))

    def broken(filter: Any) -> tuple[bool, bool, bool]:
        found = reliance(database, filter)
        first, second, third = (found.is_broken(database, base) for base in (before, between, after))
        return first, second, third

    for name, _, _, same, other in ROWS:
        for operator in ("=", "in"):
            assert broken([operator, ["column", name], ["literal", *same]]) == (True, False, False), name
            if other:
                assert broken([operator, ["column", name], ["literal", *other]]) == (False, False, False), name
    one = ["=", ["column", "i"], ["literal", "int", 5]]
    another = ["=", ["column", "b"], ["literal", "boolean", False]]
    assert broken(["and", one, another]) == (False, False, False)
    assert broken(["or", one, another]) == (True, False, False)
    assert broken(["isnull", ["column", "i"]]) == (True, True, False)
    assert broken(["unknown"]) == (True, True, False)
    assert broken(["literal", "boolean", False]) == (False, False, False)
