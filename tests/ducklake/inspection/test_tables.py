"""What a lake and its tables hold, beside what the extension says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.ducklake.inspection.tables import TableSummary, lake_summary, table_summaries, table_summary
from support.catalogs import Catalog, DuckDBCatalog
from support.inspection import opened, shown, table
from support.reference import Reference, identifier

HOSTILE = ('<script>"alert"</script>', "it's; DROP TABLE x --", "emoji 🦆 %s ? {} \\", "a.b/c=d&e$")
# Every way in which rows and deletes are kept: in files, in the catalog, in delete files.
MAKE = (
    "CREATE TABLE empty (i BIGINT)",
    "CREATE TABLE t (i BIGINT, region VARCHAR)",
    "INSERT INTO t SELECT i, 'EU' FROM range(1000) r(i)",
    "INSERT INTO t SELECT i, 'US' FROM range(1000, 1500) r(i)",
    "INSERT INTO t VALUES (-1, NULL), (-2, '')",
    "DELETE FROM t WHERE i IN (3, 4, 5, -1)",
    "DELETE FROM t WHERE i BETWEEN 100 AND 400",
    "DELETE FROM t WHERE i BETWEEN 1000 AND 1200",
    "DELETE FROM t WHERE i >= 1000",  # all that is left of a file
    "CREATE TABLE gone AS SELECT 1 AS i",
    "DROP TABLE gone",
    "COMMENT ON TABLE t IS 'orders <b>of</b> 🦆'",
    "ALTER TABLE t SET PARTITIONED BY (region, bucket(4, i))",
    "ALTER TABLE t SET SORTED BY (i DESC NULLS FIRST, lower(region))",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE MACRO twice(x) AS 2 * x",
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.t (i INTEGER)",
    "INSERT INTO sales.t FROM range(20)",
)  # fmt: skip


def counted(reference: Reference, version: int | None = None) -> dict[str, int]:
    """The rows of every table, by its full name."""
    found = {}
    at = "" if version is None else f" AT (VERSION => {version})"
    names = reference.rows(
        """SELECT s.schema_name, t.table_name FROM __ducklake_metadata_lk.ducklake_table t
            JOIN __ducklake_metadata_lk.ducklake_schema s USING (schema_id) WHERE t.end_snapshot IS NULL"""
    )
    for schema, name in names:
        found[f"{schema}.{name}"] = reference.value(f"SELECT count(*) FROM {identifier(schema)}.{identifier(name)}{at}")
    return found


def sizes(reference: Reference) -> dict[str, tuple[int, ...]]:
    """Number and bytes of data files and of delete files, as the extension gives them."""
    return {
        row["table_uuid"]: tuple(row[name] for name in ("file_count", "file_size_bytes", "delete_file_count",
                                                        "delete_file_size_bytes"))
        for row in reference.records(
            "SELECT * REPLACE (table_uuid::VARCHAR AS table_uuid) FROM ducklake_table_info('lk')"
        )
    }  # fmt: skip


def held(summary: TableSummary) -> tuple[int, ...]:
    return (summary.file_count, summary.file_bytes, summary.delete_file_count, summary.delete_bytes)


def test_tables_hold_what_the_extension_says(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute(*MAKE)
        rows, files = counted(reference), sizes(reference)
    with opened(catalog) as lake:
        found = table_summaries(shown(lake))
        assert {summary.full_name: summary.rows for summary in found} == rows
        assert {summary.uuid: held(summary) for summary in found} == files
        assert [summary.full_name for summary in found] == ["main.empty", "main.t", "sales.t"]
        t = found[1]
        assert (t.inlined_rows, t.comment) == (1, "orders <b>of</b> 🦆")
        assert t.rows == 1000 + 1 - t.deleted_rows
        assert t.partitioned_by == ("region", "bucket(4, i)")
        assert t.sorted_by == ("i DESC NULLS FIRST", "lower(region) ASC NULLS LAST")
        assert all(
            table_summary(shown(lake), table(shown(lake), *reversed(s.full_name.split(".")))) == s for s in found
        )

        summary = lake_summary(lake, shown(lake).at)
        counts = (summary.schema_count, summary.table_count, summary.view_count, summary.macro_count)
        assert counts == (2, 3, 1, 1)
        assert (summary.rows, summary.file_bytes) == (sum(rows.values()), sum(size[1] for size in files.values()))
        assert (summary.snapshot_count, summary.oldest.id, summary.newest.id) == (len(MAKE) + 1, 0, len(MAKE))
        assert summary.location == str(lake.database.location)
        assert not summary.encrypted


def test_older_snapshots_hold_what_they_held(catalog: Catalog) -> None:
    with catalog.build() as reference:
        reference.execute(*MAKE[1:9])
        rows = {
            version: reference.value(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in range(1, 9)
        }
    with opened(catalog) as lake:
        assert table_summaries(shown(lake, 0)) == []
        found = {version: table_summaries(shown(lake, version))[0] for version in rows}
        assert {version: summary.rows for version, summary in found.items()} == rows
        assert all(summary.is_exact for summary in found.values())


def test_it_is_told_where_a_merge_hides_what_a_snapshot_held(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (i BIGINT)", "INSERT INTO t FROM range(10)", "INSERT INTO t FROM range(7)")
        reference.execute("CALL ducklake_merge_adjacent_files('lk')")
    with opened(catalog) as lake:
        [old], [new] = table_summaries(shown(lake, 2)), table_summaries(shown(lake))
        assert (old.is_exact, new.is_exact, new.rows) == (False, True, 17)


def test_hostile_names_come_as_they_are(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:  # a column of MySQL's may not have such a name
        for name in HOSTILE:
            reference.execute(
                f"CREATE SCHEMA {identifier(name)}",
                f"CREATE TABLE {identifier(name)}.{identifier(name)} ({identifier(name)} VARCHAR)",
                f"ALTER TABLE {identifier(name)}.{identifier(name)} SET PARTITIONED BY ({identifier(name)})",
                f"INSERT INTO {identifier(name)}.{identifier(name)} VALUES ('x')",
            )
    with opened(catalog) as lake:
        found = {summary.name: summary for summary in table_summaries(shown(lake))}
        assert set(found) == set(HOSTILE)
        assert all((s.schema, s.rows, s.partitioned_by) == (name, 1, (name,)) for name, s in found.items())


@pytest.mark.slow
def test_many_inlined_tables_are_counted(file_catalog: Catalog) -> None:
    names = [f"t{number}" for number in range(230)]
    with file_catalog.build() as reference:
        for number, name in enumerate(names):
            reference.execute(f"CREATE TABLE {name} AS FROM range({number % 5 + 1})")
    with opened(file_catalog) as lake:
        assert {s.name: s.inlined_rows for s in table_summaries(shown(lake))} == {
            name: number % 5 + 1 for number, name in enumerate(names)
        }


def test_no_password_is_in_a_summary(duckdb_catalog: DuckDBCatalog) -> None:
    with duckdb_catalog.build():
        pass
    with opened(duckdb_catalog) as lake:
        secret = replace(lake, data_path="s3://user:geheim@host/lake/")
        assert "geheim" not in repr(lake_summary(secret, shown(lake).at))
