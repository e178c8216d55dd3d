"""Lakes that the explorer is shown: a shop's, as people have it, and one with names that are meant to break pages."""

from __future__ import annotations

from support.catalogs import Catalog
from support.reference import Reference, identifier, quote
from support.s3_server import S3Server, add_secret

# Names as nobody should give them.
EVIL = "<script>alert(1)</script>"
HOSTILE_NAMES = (
    EVIL, "a\"b'c`d", "naïve 😀 \u202egnirts", "line\nbreak\ttab", "x" * 200, "{{ 7*7 }} {% raw %}",
    "&amp; <!-- %2F.. /../",
)  # fmt: skip


def make_shop(reference: Reference) -> None:
    """A lake with partitions, deletes, updates, comments, a view, macros and authors, in an attached DuckDB."""
    reference.execute("CALL lk.set_option('data_inlining_row_limit', 0)")
    reference.execute(
        """CREATE TABLE orders (id BIGINT NOT NULL, region VARCHAR, placed TIMESTAMP, total DECIMAL(12, 2),
           customer STRUCT(name VARCHAR, tags VARCHAR[]), note VARCHAR DEFAULT 'none')""",
        "ALTER TABLE orders SET PARTITIONED BY (region, month(placed))",
        "COMMENT ON TABLE orders IS 'What customers have ordered <b>so far</b>'",
        "COMMENT ON COLUMN orders.total IS 'in euros'",
    )
    for day in range(6):
        reference.execute("BEGIN")
        reference.execute(
            f"""INSERT INTO orders SELECT i, ['Africa', 'Americas', 'Asia', 'Europe'][1 + (i % 4)::INT],
                TIMESTAMP '2026-01-01' + INTERVAL ({day} * 20 + i % 20) DAY, (i * 37 % 10000) / 100,
                {{'name': 'customer ' || i % 97, 'tags': ['new', 'vip']}}, CASE WHEN i % 5 > 0 THEN 'n' || i END
                FROM range({day * 1000}, {day * 1000 + 1000}) t(i)"""
        )
        message = f"load of day {day}"
        reference.execute(f"CALL lk.set_commit_message('etl', {quote(message)})", "COMMIT")
    reference.execute(
        "DELETE FROM orders WHERE id % 10 = 3",
        "UPDATE orders SET total = total * 2 WHERE id BETWEEN 100 AND 120",
        "ALTER TABLE orders ADD COLUMN channel VARCHAR DEFAULT 'web'",
        "CREATE TABLE customers AS SELECT i AS id, 'customer ' || i AS name, i / 7.0 AS score FROM range(500) t(i)",
        "CREATE SCHEMA finance",
        "CREATE TABLE finance.rates (day DATE, currency VARCHAR, rate DOUBLE)",
        "INSERT INTO finance.rates VALUES ('1969-12-31', 'EUR', 1.0), ('9999-12-31', 'USD', 'NaN'), (NULL, '', -0.0)",
        "CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 90",
        "CREATE MACRO doubled(x) AS x * 2",
        "CREATE MACRO orders_of(r) AS TABLE SELECT * FROM orders WHERE region = r",
    )


def make_shop_on_s3(catalog: Catalog, server: S3Server, bucket: str) -> None:
    """The same with its files in a bucket."""
    catalog.data_path = f"s3://{bucket}/a shop/"
    with Reference() as reference:
        add_secret(reference, server, bucket)
    with catalog.build() as reference:
        make_shop(reference)


def make_hostile(reference: Reference) -> None:
    """Schemas, tables, columns, values, comments and authors under hostile names."""
    reference.execute("CALL lk.set_option('data_inlining_row_limit', 0)")
    for name in HOSTILE_NAMES:
        short = name[:60]
        reference.execute(
            f"CREATE TABLE {identifier(name)} ({identifier(short)} VARCHAR, n INTEGER)",
            f"ALTER TABLE {identifier(name)} SET PARTITIONED BY ({identifier(short)})",
            f"COMMENT ON TABLE {identifier(name)} IS {quote(name)}",
            "BEGIN",
            f"INSERT INTO {identifier(name)} VALUES {', '.join(f'({quote(other)}, 1)' for other in HOSTILE_NAMES[:4])}",
            f"CALL lk.set_commit_message({quote(short)}, {quote(name)})",
            "COMMIT",
        )
    view = identifier(f"v{EVIL}")
    reference.execute(f"CREATE SCHEMA {identifier(EVIL)}", f"CREATE VIEW {view} AS SELECT {quote(EVIL)} AS x")
