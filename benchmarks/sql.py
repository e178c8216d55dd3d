"""Queries by name, beside the same over `Table.read()`: python benchmarks/sql.py [--scale 1] [--directory DIRECTORY]

Q1, Q6 and Q3 (a join of three tables) of TPC-H, as text that Spark analyses anew each time; and what it costs to attach
a lake with a name, beside without. Ratios of medians over alternating runs in one process.
"""

from __future__ import annotations

import lakes
from runs import medians, setting

import penstock

TABLES = ("customer", "lineitem", "orders")
QUERIES = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
             FROM {lineitem} WHERE l_shipdate <= DATE'1998-09-02' GROUP BY ALL ORDER BY 1, 2""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) FROM {lineitem} WHERE l_shipdate >= DATE'1994-01-01'
             AND l_shipdate < DATE'1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "Q3": """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
             FROM {customer}, {orders}, {lineitem} WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey
             AND l_orderkey = o_orderkey AND o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'
             GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
}


def main() -> None:
    with setting(__doc__, scale={"type": float, "default": 1}) as place:
        uri, spark = lakes.tpch_lake(place.directory, place.options.scale), place.spark
        with penstock.attach(uri, name="bench", read_only=True, spark=spark) as lake:

            def by_read(query: str) -> object:
                for table in TABLES:
                    if table in query:
                        lake.table(table).read().createOrReplaceTempView(f"read_{table}")
                return spark.sql(query.format(**{table: f"read_{table}" for table in TABLES})).collect()

            def by_name(query: str) -> object:
                return spark.sql(query.format(**{table: f"bench.{table}" for table in TABLES})).collect()

            for name, query in QUERIES.items():
                assert by_name(query) == by_read(query), name
                ways = {"by name": lambda q=query: by_name(q), "read()": lambda q=query: by_read(q)}
                mine, other = medians(ways, place.options.runs).values()
                print(f"{name:8} by name {mine:6.3f} s  read() {other:6.3f} s  ratio {mine / other:5.3f}", flush=True)
        ways = {
            "with a name": lambda: penstock.attach(uri, name="bench", read_only=True, spark=spark).close(),
            "without": lambda: penstock.attach(uri, read_only=True, spark=spark).close(),
        }
        mine, other = medians(ways, place.options.runs).values()
        print(f"attach   with a name {mine:6.3f} s  without {other:6.3f} s", flush=True)


if __name__ == "__main__":
    main()
