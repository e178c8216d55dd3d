"""Which queries may be run: none that changes a lake, or reads something else than the lake."""

from __future__ import annotations

import duckdb
import pytest

from penstock.errors import InvalidError
from penstock.explorer import query_rules
from penstock.explorer.query_rules import LakeNames, checked_query

NAMES = LakeNames(
    frozenset({"main", "finance"}),
    frozenset({("main", "orders"), ("finance", "rates"), ("main", 'we"ird.na me')}),
    {
        ("main", "big"): "SELECT * FROM lake.main.orders",
        ("finance", "own"): "SELECT * FROM rates",
        ("main", "thief"): "SELECT * FROM read_text('/etc/passwd')",
        ("main", "nested"): "SELECT * FROM thief",
        ("main", "spy"): "SELECT * FROM duckdb_databases",
        ("main", "ring"): "SELECT * FROM ring",
    },
    {
        "doubled": ("SELECT (x * 2)",),
        "evil": ("SELECT (SELECT content FROM read_text('/etc/passwd'))",),
        "opened": ("SELECT * FROM ducklake_cleanup_old_files('lake')",),
        "plain": ("SELECT * FROM orders",),
        "read_csv": ("SELECT 1",),
        "ducklake_merge_adjacent_files": ("SELECT 1",),
    },
)
ALLOWED = [
    "SELECT 1",
    "select 1;",
    "SELECT 1 -- nothing",
    "/* x */ SELECT 1 /* y */ ;;",
    "FROM orders",
    "TABLE orders",
    "VALUES (1), (2)",
    "FROM main.orders",
    "FROM lake.orders",
    "FROM lake.main.orders",
    "FROM LAKE.MAIN.ORDERS",
    "FROM finance.rates",
    "FROM big",
    "FROM finance.own",
    "FROM ring",
    "SELECT doubled(3)",
    "FROM plain()",
    'FROM "we""ird.na me"',
    "WITH c AS (FROM orders) FROM c",
    "WITH RECURSIVE c AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM c WHERE i < 9) FROM c",
    "FROM orders AT (VERSION => 3)",
    "FROM range(3)",
    "SELECT unnest([1, 2])",
    "FROM unnest([1, 2])",
    "DESCRIBE orders",
    "SUMMARIZE orders",
    "SHOW TABLES",
    "FROM lake.snapshots()",
    "FROM ducklake_snapshots('lake')",
    "FROM lake.table_changes('orders', 1, 2)",
    "SELECT * FROM orders a JOIN finance.rates b ON a.id = b.rate",
    "SELECT (SELECT max(id) FROM orders)",
    "SELECT sum(x) OVER (ORDER BY y) FROM (SELECT 1 AS x, 2 AS y)",
    "SELECT list_transform([1], x -> x + 1)",
    "FROM information_schema.columns",
    "SELECT 'COPY x TO y; DROP TABLE z'",
    "SELECT 'é😀' ; ",
    "SELECT random(), uuid(), now(), current_date, version()",
    "SELECT row(1, 2), {'a': 1}, MAP {1: 2}, [y FOR y IN [1] IF y > 0]",
    "SELECT count(*), system.main.sum(1), list(1), quantile_cont(1, 0.5), string_agg('a', ',' ORDER BY 1)",
    "SELECT 'a' SIMILAR TO 'b', 'a' ^@ 'b', '{}'::JSON ->> '$.a', extract(year FROM DATE '1969-01-01'), 7 // 2 ** 2",
    "SELECT error('x')",
]
REFUSED = [
    "",
    ";",
    "-- nothing",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE orders",
    "SELECT",
    "SELEC 1",
    "DROP TABLE orders",
    "INSERT INTO orders VALUES (1)",
    "UPDATE orders SET id = 1",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "MERGE INTO orders USING orders o ON true WHEN MATCHED THEN DELETE",
    "CREATE TABLE x (i INT)",
    "CREATE TEMP TABLE x (i INT)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE MACRO m() AS 1",
    "CREATE SECRET s (TYPE s3)",
    "ALTER TABLE orders ADD COLUMN x INT",
    "COPY orders TO 'x.csv'",
    "COPY (SELECT 1) TO '/tmp/x'",
    "COPY orders FROM 'x.csv'",
    "ATTACH 'x.db'",
    "DETACH lake",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '9GB'",
    "RESET memory_limit",
    "PRAGMA database_list",
    "PRAGMA enable_logging",
    "CHECKPOINT",
    "CALL lake.merge_adjacent_files()",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "BEGIN",
    "COMMIT",
    "VACUUM",
    "EXPLAIN ANALYZE SELECT 1",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SET VARIABLE x = 1",
    "COMMENT ON TABLE orders IS 'x'",
    "FROM read_csv('/etc/passwd')",
    "FROM read_text('/etc/passwd')",
    "FROM read_blob('x')",
    "FROM read_json('x')",
    "FROM read_parquet('x')",
    "FROM parquet_scan('x')",
    "FROM parquet_metadata('x')",
    "FROM glob('/etc/*')",
    "FROM sniff_csv('x')",
    "FROM '/etc/passwd'",
    "FROM 'x.csv'",
    'FROM "https://example.com/x.parquet"',
    "FROM read_duckdb('x')",
    "FROM sqlite_scan('x', 'y')",
    "FROM postgres_scan('host=x', 'y', 'z')",
    "FROM postgres_query('x', 'DROP TABLE y')",
    "FROM mysql_query('x', 'y')",
    "FROM query('SELECT 1')",
    "FROM query_table('orders')",
    "FROM histogram('duckdb_databases', path)",
    "FROM histogram_values('__ducklake_metadata_lake.main.ducklake_data_file', encryption_key)",
    "SELECT * FROM lake.histogram('ducklake_metadata', value)",
    "FROM system.main.read_csv('x')",
    "FROM read_csv('x')",
    "FROM ducklake_cleanup_old_files('lake')",
    "FROM ducklake_expire_snapshots('lake')",
    "FROM ducklake_delete_orphaned_files('lake')",
    "FROM ducklake_merge_adjacent_files('lake')",
    "FROM ducklake_add_data_files('lake', 'orders', 'x')",
    "FROM ducklake_set_option('lake', 'a', 'b')",
    "FROM ducklake_flush_inlined_data('lake')",
    "FROM lake.merge_adjacent_files()",
    "FROM lake.set_option('a', 'b')",
    "FROM ducklake_list_files('lake', 'orders')",  # tells the keys of encrypted files
    "FROM duckdb_databases()",
    "FROM duckdb_databases",
    "FROM duckdb_settings()",
    "FROM duckdb_secrets()",
    "FROM pragma_database_list",
    "FROM which_secret('s3://x', 's3')",
    "FROM sqlite_master",
    "FROM pg_catalog.pg_class",
    "FROM pg_class",
    "FROM duckdb_logs",
    "FROM __ducklake_metadata_lake.ducklake_data_file",
    "FROM __ducklake_metadata_lake.main.ducklake_data_file",
    "FROM system.main.duckdb_databases",
    "FROM memory.main.x",
    "FROM temp.x",
    "FROM nothing",
    "FROM finance.orders",
    "FROM c",
    "WITH duckdb_databases AS (SELECT 1) FROM duckdb_databases",
    "FROM duckdb_databases, (WITH duckdb_databases AS (SELECT 1) FROM duckdb_databases)",
    "WITH duckdb_databases AS (FROM duckdb_databases) FROM duckdb_databases",
    'SELECT (WITH "/data/f.parquet" AS (SELECT 1) FROM "/data/f.parquet"), * FROM "/data/f.parquet"',
    'SELECT (WITH "f.csv" AS (SELECT 1) FROM "f.csv"), * FROM "f.csv"',
    "SELECT getenv('HOME')",
    "SELECT current_setting('s3_secret_access_key')",
    "SELECT getvariable('x')",
    "SELECT nextval('s')",
    "SELECT write_log('x')",
    "SELECT sleep_ms(60000)",
    "SELECT pg_sleep(60)",
    "SELECT stats(id) FROM orders",
    "SELECT current_query()",
    "SELECT json_serialize_plan('FROM x')",
    "SELECT postgres_execute('x', 'DROP TABLE y')",
    "SELECT a_function_of_a_release_to_come(1)",
    "SELECT st_read('x')",
    "SELECT (FROM read_text('/etc/passwd'))",
    "SELECT * FROM orders WHERE id IN (SELECT 1 FROM glob('*'))",
    "SELECT * FROM orders LIMIT (SELECT count(*) FROM glob('*'))",
    "SELECT 1 ORDER BY (SELECT count(*) FROM glob('*'))",
    "FROM thief",
    "FROM nested",
    "FROM spy",
    "SELECT evil()",
    "FROM opened()",
    "SELECT 1 FROM orders AT (VERSION => getvariable('x'))",
    "WITH x AS MATERIALIZED (SELECT * FROM read_text('x')) SELECT 1",
    "SELECT [y FOR y IN [getenv('HOME')]]",
    "SELECT 1 UNION ALL SELECT count(*) FROM glob('*')",
    "PIVOT orders ON id USING sum(id)",
    "FROM (SHOW DATABASES) UNION ALL FROM glob('*')",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_query_over_the_lake_is_let_through(sql: str) -> None:
    assert checked_query(sql, NAMES).strip()


@pytest.mark.parametrize("sql", REFUSED)
def test_anything_else_is_refused(sql: str) -> None:
    with pytest.raises(InvalidError):
        checked_query(sql, NAMES)


def test_no_function_that_is_allowed_may_take_the_name_of_a_table_as_a_text() -> None:
    rows = duckdb.execute("SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro'").fetchall()
    macros = {name for (name,) in rows}
    assert {"histogram", "histogram_values"} <= macros
    assert not macros & query_rules._TABLE_FUNCTIONS


def test_what_is_run_can_stand_in_brackets() -> None:
    assert checked_query("SELECT 'a;b' ; -- the end;", NAMES).strip() == "SELECT 'a;b'"
    assert checked_query("SELECT 'é;😀';", NAMES) == "SELECT 'é;😀'"


def test_a_query_too_deep_to_be_read_is_refused() -> None:
    with pytest.raises(InvalidError):
        checked_query(f"SELECT {'(' * 900}1{')' * 900}" + "+1" * 3000, NAMES)
