"""The first page of the explorer: python benchmarks/explorer.py [--files 100000] [--times 5]

From the start of a process until it has answered its first page, for a lake whose catalog is a DuckDB file; beside it a
Python that imports DuckDB, attaches the lake and lists its tables, which is the least that could be done. The goal is
two seconds, without a JVM.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.catalogs import DuckDBCatalog

SERVED = "from penstock.explorer import serve; serve({uri!r}, open_browser=False)"
LEAST = """
import duckdb
connection = duckdb.connect()
connection.execute("LOAD ducklake")
connection.execute("ATTACH '{uri}' AS lake (READ_ONLY)")
print(connection.execute("SELECT table_name, file_count FROM ducklake_table_info('lake')").fetchall())
"""


def made(directory: Path, files: int) -> str:
    """A lake of ten tables with so many files together, of which only the catalog is real."""
    catalog = DuckDBCatalog(directory)
    with catalog.build() as reference:
        for number in range(10):
            reference.execute(f"CREATE TABLE t{number} (i BIGINT, s VARCHAR)", f"INSERT INTO t{number} VALUES (1, 'x')")
    catalog.tamper(
        f"""INSERT INTO ducklake_data_file BY NAME SELECT 1000 + i AS data_file_id, 1 + i % 10 AS table_id,
            1 AS begin_snapshot, 'ducklake-' || i || '.parquet' AS path, true AS path_is_relative,
            'parquet' AS file_format, 1000 AS record_count, 1000000 AS file_size_bytes, 500 AS footer_size,
            1000 * i AS row_id_start FROM range({files}) r(i)"""
    )
    return catalog.uri


def first_page(uri: str) -> float:
    """Seconds until a new process has answered its first page."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", SERVED.format(uri=uri)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with visitor.open(found[0]) as answer:
            assert b"t9" in answer.read()
        taken = time.perf_counter() - began
        process.kill()
    return taken


def least(uri: str) -> float:
    """Seconds of a Python that lists the tables with DuckDB alone."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", LEAST.format(uri=uri)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        uri = made(Path(directory), asked.files)
        first_page(uri), least(uri)
        taken = [(first_page(uri), least(uri)) for _ in range(asked.times)]
    page, alone = (statistics.median(times) for times in zip(*taken, strict=True))
    print(f"{asked.files:,} files: first page after {page:.2f} s, DuckDB alone {alone:.2f} s, ratio {page / alone:.2f}")


if __name__ == "__main__":
    main()
