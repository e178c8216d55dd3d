"""DuckDB and Spark on one lake, each in its own process: `python examples/duckdb_and_spark.py [FOLDER]`.

Spark loads a table, DuckDB changes it and makes a view, Spark reads both. The catalog is a SQLite file, which several
processes may use at once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import penstock

# What a colleague does in DuckDB's own program. It is a process of its own, since two SQLites in one would not see each
# other's locks.
DUCKDB = """
import sys
import duckdb, duckdb_extensions

for extension in ("ducklake", "sqlite_scanner"):  # from PyPI; elsewhere DuckDB fetches them by itself
    duckdb_extensions.import_extension(extension)
connection = duckdb.connect()
connection.execute(f"ATTACH 'ducklake:sqlite:{sys.argv[1]}' AS lake")
connection.execute("USE lake")
connection.execute("UPDATE orders SET total = total * 2 WHERE region = 'EU' AND id < 10")
connection.execute("CREATE OR REPLACE VIEW by_region AS FROM orders SELECT region, sum(total) AS total GROUP BY ALL")
print(connection.sql("FROM by_region ORDER BY region"))
"""


def main(folder: Path) -> None:
    catalog = folder / "sales.sqlite"
    spark = penstock.session()
    with penstock.attach(f"ducklake:sqlite:{catalog}", data_path=f"{folder}/data") as lake:
        orders = lake.create_table("orders", "id BIGINT, region STRING, total DOUBLE", if_not_exists=True)
        orders.overwrite(spark.sql("SELECT id, IF(id % 2 = 0, 'EU', 'US'), id * 1.5D FROM range(1000)"))

        print("DuckDB, meanwhile:")
        print(
            subprocess.run([sys.executable, "-c", DUCKDB, catalog], check=True, capture_output=True, text=True).stdout
        )

        print("Spark reads DuckDB's view, in DuckDB's dialect:")
        lake.sql("FROM by_region ORDER BY region", dialect="duckdb").show()
        changed = lake.current_snapshot().id - 1
        print(f"and knows what the update changed: {orders.changes(changed, changed).count()} rows, before and after")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-shared-") as made:
            main(Path(made))
