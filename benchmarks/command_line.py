"""The time to a first answer at a terminal: `penstock ls` of a lake, as a process of its own.

Beside a Python process that attaches the same lake in DuckDB and lists its tables, rows and files by what the extension
knows (`table_info`), turn by turn. Neither starts a JVM.

    python benchmarks/command_line.py --tables 50 --rounds 9
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import duckdb
from duckdb_extensions import import_extension
from runs import seconds

BY_DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.load_extension("ducklake")
connection.execute(f"ATTACH '{sys.argv[1]}' AS lake (READ_ONLY)")
connection.sql("FROM ducklake_table_info('lake')").show(max_rows=10_000)
print(connection.sql("FROM lake.snapshots() ORDER BY snapshot_id DESC LIMIT 1"))
"""


def make(path: Path, tables: int) -> None:
    """A lake of so many tables, with four files each."""
    connection = duckdb.connect()
    import_extension("ducklake")
    connection.load_extension("ducklake")
    connection.execute(f"ATTACH 'ducklake:{path}' AS lake (DATA_INLINING_ROW_LIMIT 0)")
    connection.execute("BEGIN")
    for table in range(tables):
        connection.execute(f"CREATE TABLE lake.t{table} (id BIGINT, name VARCHAR)")
        for _ in range(4):
            connection.execute(f"INSERT INTO lake.t{table} SELECT i, 'name ' || i FROM range(100) r(i)")
    connection.execute("COMMIT")
    connection.close()


def run(arguments: list[str]) -> None:
    """A process that answers."""
    answer = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    assert " t0 " in answer.stdout, answer.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sales.ducklake")
        make(path, options.tables)
        sides = {
            "penstock ls": ["-m", "penstock.cli", "ls", f"ducklake:{path}"],
            "duckdb": ["-c", BY_DUCKDB, f"ducklake:{path}"],
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(options.rounds + 1):  # the first fills the disk's cache
            for name, arguments in sides.items():
                times[name].append(seconds(lambda arguments=arguments: run(arguments)))
        ours, theirs = (median(taken[1:]) for taken in times.values())
        for name, taken in times.items():
            print(f"{name:<12} {median(taken[1:]):.2f} s   {min(taken[1:]):.2f} to {max(taken[1:]):.2f}")
        print(f"ratio        {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
