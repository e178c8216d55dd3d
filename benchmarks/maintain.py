"""Maintenance of lakes, beside the extension's: python benchmarks/maintain.py [--only merge] [--directory DIRECTORY]

Merge: 1,000 files of 6,000 rows (lineitem, scale 1) become one, beside the extension's `merge_adjacent_files` of the
same lake and beside `spark.read.parquet(...).write.parquet(...)` of the same files. Rewrite: 8 files of lineitem with
half of their rows deleted. Flush: 1,000,000 inlined rows. Wall and CPU time are medians over alternating runs in one
process; the extension has as many threads as Spark has cores. Expiry: see expiry.py.
"""

from __future__ import annotations

import shutil
import statistics
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import expiry
import lakes
import psutil
from runs import Setting, measured, setting

import penstock

FILES, ROWS_A_FILE = 1_000, 6_000
INLINED_ROWS = 1_000_000
CORES = 2
Ways = dict[str, Callable[[], object]]


class PeakMemory:
    """The most memory that Spark's Python workers, each by itself, or this process have had at once, in MB."""

    def __init__(self, workers: bool) -> None:
        self._workers, self._ended, self.most = workers, threading.Event(), 0.0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._ended.wait(0.05):
            children = me.children(recursive=True) if self._workers else [me]
            for process in children:
                try:
                    if not self._workers or "python" in process.name():
                        self.most = max(self.most, process.memory_info().rss / 2**20)
                except psutil.NoSuchProcess:
                    continue


def compare(name: str, ways: Mapping[str, Callable[[], object]], runs: int) -> None:
    """All warmed once, then turn by turn; the medians, and the ratios of the first to the others."""
    for way in ways.values():
        way()
    turns = [{other: measured(way) for other, way in ways.items()} for _ in range(runs)]
    for index, unit in enumerate(("wall", "CPU")):
        found = {other: statistics.median(turn[other][index] for turn in turns) for other in ways}
        ours, *others = found
        ratios = ", ".join(f"{found[ours] / found[other]:.2f} of {other}" for other in others)
        told = ", ".join(f"{other} {value:.2f} s" for other, value in found.items())
        print(f"{name:8} {unit:4} {told}; {ratios}", flush=True)


def small_files_lake(directory: Path) -> Path:
    """A lake of one table in 1,000 files; its catalog, which is copied for every turn."""
    catalog = directory / f"small-{FILES}.sqlite"
    if catalog.exists():
        return catalog
    source = lakes.lineitem_parquet(directory, 1)
    with lakes.duck() as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(f"CREATE TABLE rows AS FROM '{source}'")
        connection.execute(
            f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (DATA_PATH '{directory}/small/', DATA_INLINING_ROW_LIMIT 0)"
        )
        connection.execute("CREATE TABLE lake.t AS FROM rows LIMIT 0")
        connection.execute("BEGIN")
        for number in range(FILES):
            first = number * ROWS_A_FILE
            connection.execute(
                f"INSERT INTO lake.t SELECT * FROM rows WHERE rowid BETWEEN {first} AND {first + ROWS_A_FILE - 1}"
            )
        connection.execute("COMMIT")
    return catalog


def half_deleted_lake(directory: Path) -> Path:
    """A lake of one table in 8 files, each with a delete file of half of its rows."""
    catalog = directory / "half.sqlite"
    if not catalog.exists():
        source = lakes.lineitem_parquet(directory, 1)
        with lakes.duck() as connection:
            connection.execute(
                f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (DATA_PATH '{directory}/half/', DATA_INLINING_ROW_LIMIT 0)"
            )
            connection.execute(f"CREATE TABLE lake.t AS FROM '{source}' LIMIT 0")
            for part in range(8):
                connection.execute(f"INSERT INTO lake.t FROM '{source}' WHERE l_orderkey % 8 = {part}")
            connection.execute("DELETE FROM lake.t WHERE l_linenumber % 2 = 0 OR l_linenumber = 7")
    return catalog


def inlined_lake(directory: Path) -> Path:
    """A lake of one table whose rows are all in the catalog."""
    catalog = directory / "inlined.ducklake"
    if not catalog.exists():
        with lakes.duck() as connection:
            connection.execute(
                f"ATTACH 'ducklake:{catalog}' AS lake"
                f" (DATA_PATH '{directory}/inlined/', DATA_INLINING_ROW_LIMIT {INLINED_ROWS})"
            )
            connection.execute("CREATE TABLE lake.t (id BIGINT, name VARCHAR, price DOUBLE, day DATE)")
            connection.execute("INSERT INTO lake.t VALUES (0, 'name 0', 0, DATE '2020-01-01')")
            # The extension takes longer for each row the more of them one statement has: the others as it would.
            connection.execute(
                f"""INSERT INTO __ducklake_metadata_lake.ducklake_inlined_data_1_1
                    SELECT i, 2, NULL, i, 'name ' || i, i / 7, DATE '2020-01-01' + (i % 1000)::INTEGER
                    FROM range(1, {INLINED_ROWS}) r(i)"""
            )
    return catalog


def on_copies(place: Setting, catalog: Path, verb: Callable[[penstock.Lake], object], call: str) -> Ways:
    """The verb and the extension's call, each on a fresh copy of the catalog over the same files."""
    kind = "sqlite:" if catalog.suffix == ".sqlite" else ""

    def copy(name: str) -> str:
        shutil.copy(catalog, place.scratch / f"{name}{catalog.suffix}")
        return f"ducklake:{kind}{place.scratch}/{name}{catalog.suffix}"

    def ours() -> None:
        with penstock.attach(copy("ours"), spark=place.spark) as lake:
            verb(lake)

    def theirs() -> None:
        with lakes.duck() as connection:
            connection.execute(f"SET threads = {CORES}")
            connection.execute("SET preserve_insertion_order = true")
            connection.execute(f"ATTACH '{copy('theirs')}' AS lake")
            connection.execute(call).fetchall()

    return {"Penstock": ours, "the extension": theirs}


def merge(place: Setting) -> None:
    catalog = small_files_lake(place.directory)
    with penstock.attach(f"ducklake:sqlite:{catalog}", spark=place.spark, read_only=True) as lake:
        originals = [row.data_file for row in lake.table("t").files().collect()]
    assert len(originals) == FILES
    ways = on_copies(
        place, catalog, lambda lake: lake.merge_adjacent_files(), "CALL ducklake_merge_adjacent_files('lake')"
    )
    ways["Spark"] = lambda: (
        place.spark.read.parquet(*originals).coalesce(CORES).write.mode("overwrite").parquet(f"{place.scratch}/spark")
    )
    with PeakMemory(workers=True) as memory:
        ways["Penstock"]()
    print(f"merge    peak memory of a worker {memory.most:.0f} MB (goal under 1,000)", flush=True)
    compare("merge", ways, place.options.runs)


def rewrite(place: Setting) -> None:
    call = "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.3)"
    catalog = half_deleted_lake(place.directory)
    ways = on_copies(place, catalog, lambda lake: lake.rewrite_data_files(delete_threshold=0.3), call)
    compare("rewrite", ways, place.options.runs)


def flush(place: Setting) -> None:
    catalog = inlined_lake(place.directory)
    ways = on_copies(place, catalog, lambda lake: lake.flush_inlined_data(), "CALL ducklake_flush_inlined_data('lake')")
    ways["Penstock"]()
    before = psutil.Process().memory_info().rss / 2**20
    with PeakMemory(workers=False) as memory:
        ways["Penstock"]()
    print(f"flush    the driver's Python took {memory.most - before:.0f} MB more while it flushed", flush=True)
    compare("flush", ways, place.options.runs)


def main() -> None:
    parts = {"merge": merge, "rewrite": rewrite, "flush": flush}
    with setting(
        __doc__, only={"choices": [*parts, "expiry"]}, snapshots={"type": int, "default": 100_000}
    ) as place:  # fmt: skip
        for name, part in parts.items():
            if place.options.only in (None, name):
                part(place)
        if place.options.only in (None, "expiry"):
            expiry.expiry(place.options.snapshots)


if __name__ == "__main__":
    main()
