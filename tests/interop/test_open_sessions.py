"""Sessions that stay open while the other side writes: both see what the other did."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest
from pyspark.sql import SparkSession

from penstock import Lake
from support import dumps
from support.catalogs import Catalog
from support.dumps import twin
from support.reference import METADATA, Reference
from support.writers import Writer
from support.writing import attached

_OWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|_[0-9a-f]{8}_penstock|\d{4}-\d\d-\d\d \d\d:.*")
TABLE = ("CREATE TABLE t (id BIGINT)", "INSERT INTO t SELECT range FROM range(15)")


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest) -> Catalog:
    """A catalog that the extension and Penstock have open at the same time, and that the extension changes rows in."""
    made: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return made


def versions(reference: Reference) -> list[tuple[int, ...]]:
    return reference.rows(f"SELECT snapshot_id, schema_version FROM {METADATA}.ducklake_snapshot ORDER BY 1")


def inlined_tables(reference: Reference) -> list[tuple[Any, ...]]:
    return reference.rows(f"SELECT table_id, schema_version FROM {METADATA}.ducklake_inlined_data_tables ORDER BY ALL")


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mysql"])
def test_duckdb_sees_the_first_rows_that_the_catalog_keeps_of_a_table(
    kind: str, request: pytest.FixtureRequest
) -> None:
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    with catalog.reference(data_inlining_row_limit=0) as reference:
        reference.execute(*TABLE)
        assert reference.value("SELECT count(*) FROM t") == 15
        with Writer(catalog.uri, catalog.data_path) as writer:
            writer.append("t", 100, 101)
            if kind == "mysql":  # whose connector remembers tables too, until it is told: also those of another DuckDB
                with pytest.raises(duckdb.Error, match=r"ducklake_inlined_data_1_2_\w+ does not exist"):
                    reference.rows("FROM t")
                reference.execute("CALL mysql_clear_cache()")
            assert reference.rows("SELECT count(*), max(id) FROM t") == [(17, 101)]
            feed = reference.rows(
                "SELECT snapshot_id, change_type, id FROM ducklake_table_changes('lk', 'main', 't', 3, 3)"
            )
            assert sorted(feed) == [(3, "insert", 100), (3, "insert", 101)]
            writer.append("t", 102)
        assert reference.rows("SELECT count(*), max(id) FROM t") == [(18, 102)]
        assert [version for _, version in versions(reference)] == [0, 1, 1, 2, 2]
        if kind != "mysql":
            reference.execute("UPDATE t SET id = id + 1000 WHERE id = 100", "DELETE FROM t WHERE id = 101")
    with catalog.reference() as reference:
        expected = [(100,), (101,), (102,)] if kind == "mysql" else [(102,), (1100,)]
        assert reference.rows("FROM t WHERE id >= 100 ORDER BY 1") == expected


def test_a_catalog_with_late_inlined_tables_is_as_the_extension_makes_it(
    catalog: Catalog, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with twin(catalog, tmp_path / "twin", request) as theirs:
        for one in (catalog, theirs):
            with one.build(data_inlining_row_limit=0) as reference:
                reference.execute(*TABLE)
        with theirs.build(data_inlining_row_limit=10) as reference:
            reference.execute("INSERT INTO t VALUES (100), (101)", "INSERT INTO t VALUES (102)")
        with Writer(catalog.uri, catalog.data_path) as writer:
            writer.append("t", 100, 101)
            writer.append("t", 102)
        assert _comparable(catalog) == _comparable(theirs)


def _comparable(catalog: Catalog) -> dict[str, list[str]]:
    """The rows of all tables of a catalog, without what is another one each time: ids, times, folders."""

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return "a time"
        return _OWN.sub("", str(value).replace(str(catalog.directory), "")) if isinstance(value, str | UUID) else value

    found = dumps.rows(catalog)
    return {_OWN.sub("", name): sorted(repr(tuple(map(plain, row))) for row in rows) for name, rows in found.items()}


def test_the_table_that_another_writer_made_meanwhile_is_used(catalog: Catalog) -> None:
    """Whether it needs a new schema version is found out again when a commit is tried again."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(*TABLE)
    with Writer(catalog.uri, catalog.data_path) as writer, Writer(catalog.uri, catalog.data_path) as other:
        with writer.transaction() as transaction:
            writer.stage_inlined(transaction, "t", 100)
            other.append("t", 101)
        with writer.transaction() as transaction:
            writer.stage_inlined(transaction, "t", 102)
            other.create_table("other")
    with catalog.reference() as reference:
        assert [version for _, version in versions(reference)] == [0, 1, 1, 2, 2, 3, 3]
        assert [row for row in inlined_tables(reference) if row[0] == 1] == [(1, 2)]
        assert reference.rows("FROM t WHERE id >= 100 ORDER BY 1") == [(100,), (101,), (102,)]


def test_the_late_table_of_the_extension_is_used(catalog: Catalog) -> None:
    for limit, statements in ((0, TABLE), (10, ("INSERT INTO t VALUES (100)",))):
        with catalog.build(data_inlining_row_limit=limit) as reference:
            reference.execute(*statements)
    with Writer(catalog.uri, catalog.data_path) as writer:
        writer.append("t", 101)
    with catalog.reference() as reference:
        assert inlined_tables(reference) == [(1, 2)]
        assert [version for _, version in versions(reference)] == [0, 1, 1, 2, 2]
        assert reference.rows("FROM t WHERE id >= 100 ORDER BY 1") == [(100,), (101,)]


def test_duckdb_sees_every_change_of_what_the_catalog_keeps(shared: Catalog, spark: SparkSession) -> None:
    def append(lake: Lake, columns: str) -> None:
        lake.table("t").append(spark.sql(f"SELECT {columns}"))

    with attached(shared, spark) as lake, shared.reference(data_inlining_row_limit=0) as reference:
        reference.execute(*TABLE)
        changes = [
            lambda: lake.table("t").delete("id = 3"),  # a position in a file
            lambda: lake.table("t").update({"id": "id + 200"}, where="id = 4"),
            lambda: lake.table("t").add_column("b INT"),
            lambda: append(lake, "100L AS id, 1 AS b"),
            lambda: reference.execute("ALTER TABLE t ADD COLUMN c INTEGER"),
            lambda: append(lake, "101L AS id, 1 AS b, 2 AS c"),
            lambda: lake.table("t").set_partitioned_by("b"),
            lambda: append(lake, "102L AS id, 1 AS b, 2 AS c"),
            lambda: lake.table("t").delete("id = 100"),
            lambda: lake.flush_inlined_data(),
            lambda: append(lake, "103L AS id, 1 AS b, 2 AS c"),
            lambda: lake.flush_inlined_data(),
            lambda: append(lake, "104L AS id, 1 AS b, 2 AS c"),
        ]
        for place, change in enumerate(changes):
            change()
            ours = sorted((tuple(row) for row in lake.table("t").read().collect()), key=repr)
            assert sorted(reference.rows("FROM t"), key=repr) == ours, place
        assert len(ours) == 14 + 4


def test_penstock_sees_what_duckdb_does_to_what_the_catalog_keeps(shared: Catalog, spark: SparkSession) -> None:
    with attached(shared, spark) as lake, shared.reference(data_inlining_row_limit=0) as reference:
        reference.execute(*TABLE)
        table = lake.table("t")
        for statement in (
            "CALL lk.set_option('data_inlining_row_limit', 10, table_name => 't')",
            "INSERT INTO t VALUES (100)",
            "UPDATE t SET id = id + 200 WHERE id = 4",
            "DELETE FROM t WHERE id = 3",
            "ALTER TABLE t ADD COLUMN b INTEGER",
            "INSERT INTO t VALUES (101, 1)",
            "CALL ducklake_flush_inlined_data('lk')",
            "INSERT INTO t VALUES (102, 1)",
        ):
            reference.execute(statement)
            ours = sorted((tuple(row) for row in table.read().collect()), key=repr)
            assert ours == sorted(reference.rows("FROM t"), key=repr), statement
            assert table.read().count() == len(ours), statement
