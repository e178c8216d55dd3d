"""Penstock beside Iceberg and Delta: python benchmarks/peers.py [--rounds 5] [--only q1 q6] [--systems penstock delta]

Each is a process with the Spark that it is made for (fetched the first time), two cores and the same memory, and works
on the same rows of TPC-H lineitem. They take turns: every round, each does one row of the table, then each the next,
on tables that are new in the round. All have to give the same answers. Medians, of wall time and of the CPU time of all
processes of a system. `--systems names` is Penstock by `spark.sql` instead of its methods.

With `--cold`: the time from the import to the first rows of a small table, beside a session that only reads Parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lakes
import psutil
from peer_systems import SYSTEMS, Iceberg
from runs import measured

from sql import QUERIES

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support import delta_spark
from support.pysparks import environment_with

OURS = ("penstock", "names")
PYSPARKS = {"iceberg": Iceberg.PYSPARK, "delta": delta_spark.PYSPARK}
SETTINGS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
TINY = 0.01
Q1, Q6 = (QUERIES[name].replace("{lineitem}", "{table}") for name in ("Q1", "Q6"))
COUNTS = "counts"  # a query that names every column
CHECKED = "SELECT count(*), bit_xor(xxhash64({columns})), sum({number}) FROM {{table}}"

Times = dict[tuple[str, str], tuple[float, float]]  # of a row and a system: seconds on the wall and of all processors


@dataclass(frozen=True)
class Work:
    """A row of the table: a method that changes a table of a peer, or else a query."""

    title: str
    change: str = ""
    query: str = ""
    table: str = "lineitem"


ROWS = {
    "append": Work("append", "append"),
    "month": Work("append by month (84 partitions)", "append_by_month", table="monthly"),
    "q1": Work("Q1", query=Q1),
    "q6": Work("Q6", query=Q6),
    "count": Work("count of every column", query=COUNTS),
    "delete": Work("delete 1%", "delete"),
    "update": Work("update 1%", "update"),
    "merge": Work("merge 1%", "merge"),
    "q6-after": Work("Q6 after these changes", query=Q6),
    "q1-after": Work("Q1 after them", query=Q1),
    "count-after": Work("count of every column after them", query=COUNTS),
    "few": Work("20 appends of 5 rows", "append_few", table="few"),
}


class Process:
    """A system at work in a process of its own; `close` ends it."""

    def __init__(self, name: str, scratch: Path, settings: dict[str, str]) -> None:
        self.name, self._log = name, scratch / "log"
        scratch.mkdir()
        program = [sys.executable, str(Path(__file__).with_name("peer_systems.py")), name, str(scratch)]
        environment = environment_with(PYSPARKS[name], dict(os.environ)) if name in PYSPARKS else dict(os.environ)
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*program, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={"LC_ALL": "C.UTF-8"} | environment,
                cwd=scratch,
                text=True,
            )
        self._seen = psutil.Process(self._process.pid)

    def ask(self, *work: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended: {self._log.read_text()[-3000:]}")
        told = json.loads(line)
        if "error" in told:
            raise RuntimeError(f"{self.name} cannot {work[0]}: {told['error']}\n{self._log.read_text()[-3000:]}")
        return told["answer"]

    def timed(self, *work: str) -> tuple[Any, tuple[float, float]]:
        answers: list[Any] = []
        taken = measured(lambda: answers.append(self.ask(*work)), self._seen)
        return answers[0], taken

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def started(names: Iterable[str], scratch: Path, settings: dict[str, str]) -> Iterator[list[Process]]:
    with ExitStack() as stack:
        processes = []
        for name in names:
            processes.append(Process(name, scratch / name, settings))
            stack.callback(processes[-1].close)
        yield processes


@dataclass(frozen=True)
class Files:
    """The rows that are appended, and those that are merged."""

    source: Path
    changes: Path


def made_files(directory: Path, scale: float) -> Files:
    """Lineitem, and a change of 1% of it, of which a tenth is new rows."""
    source, changes = lakes.lineitem_parquet(directory, scale), directory / f"lineitem-changes-{scale}.parquet"
    if not changes.exists():
        key = "CASE WHEN l_orderkey % 1000 < 100 THEN -l_orderkey ELSE l_orderkey END AS l_orderkey"
        others = "CAST(l_quantity + 2 AS DECIMAL(15, 2)) AS l_quantity, 'merged ' || l_shipmode AS l_comment"
        rows = f"SELECT * REPLACE ({key}, {others}) FROM '{source}' WHERE l_orderkey % 100 = 2"
        with lakes.duck() as connection:
            connection.execute(f"COPY ({rows}) TO '{changes}'")
    return Files(source, changes)


def needed(chosen: Sequence[str]) -> list[str]:
    """The rows to do: those that are chosen, and those that change what a later one of them sees."""
    names = list(ROWS)
    last = max((names.index(name) for name in chosen if ROWS[name].table == "lineitem"), default=-1)
    before = {name for name in names[: last + 1] if ROWS[name].change and ROWS[name].table == "lineitem"}
    return [name for name in names if name in chosen or name in before]


def agreed(title: str, answers: dict[str, Any]) -> None:
    """All systems have given the same answer."""
    first, *others = answers.values()
    if any(other != first for other in others):
        told = "\n".join(f"{name}: {str(answer)[:500]}" for name, answer in answers.items())
        raise AssertionError(f"different answers to {title}:\n{told}")


def text_of(work: Work, columns: Sequence[str]) -> str:
    """The query of a row; of a change, a checksum of all values."""
    if work.query == COUNTS:
        return f"SELECT {', '.join(f'count({name})' for name in columns)} FROM {{table}}"
    if work.table == "few":
        return CHECKED.format(columns="id, name, day, price", number="price")
    return work.query or CHECKED.format(columns=", ".join(columns), number="l_quantity")


def one_round(processes: Sequence[Process], rows: Sequence[str], files: Files) -> Times:
    """The times of each row of each system."""
    times: Times = {}
    columns, *_ = [process.ask("begin", str(files.source), str(files.changes)) for process in processes]
    for name in rows:
        work, text = ROWS[name], text_of(ROWS[name], columns)
        asked = [work.change] if work.change else ["query", work.table, text]
        done = {process.name: process.timed(*asked) for process in processes}
        answers = {system: answer for system, (answer, _) in done.items()}
        if work.change:
            answers = {process.name: process.ask("query", work.table, text) for process in processes}
        agreed(work.title, answers)
        times |= {(name, system): taken for system, (_, taken) in done.items()}
        told = "  ".join(f"{system} {wall:.1f} s" for system, (_, (wall, _)) in done.items())
        print(f"{work.title}: {told}", file=sys.stderr, flush=True)
    for process in processes:
        process.ask("end")
    return times


def report(systems: Sequence[str], rows: Sequence[str], rounds: Sequence[Times]) -> None:
    """One table: seconds of each system, and ours over theirs."""
    pairs = [(mine, other) for mine in systems if mine in OURS for other in systems if other not in OURS]
    heads = ["work", "", *systems, *(f"{mine} / {other}" for mine, other in pairs)]
    print(f"| {' | '.join(heads)} |\n|---|---|{'---:|' * (len(heads) - 2)}")
    for name in rows:
        for index, unit in enumerate(("wall", "CPU")):
            taken = {system: statistics.median(times[name, system][index] for times in rounds) for system in systems}
            cells = [f"{taken[system]:.2f} s" for system in systems]
            cells += [f"{taken[mine] / taken[other]:.2f}" for mine, other in pairs]
            print(f"| {'' if index else ROWS[name].title} | {unit} | {' | '.join(cells)} |", flush=True)


def compare(options: argparse.Namespace, directory: Path, scratch: Path) -> None:
    rows, rounds = needed(options.only), []
    tiny, files = (made_files(directory, scale) for scale in (TINY, options.scale if options.rounds else TINY))
    settings = SETTINGS | {"spark.driver.memory": options.memory}
    with started(options.systems, scratch, settings) as processes:
        one_round(processes, rows, tiny)
        for number in range(options.rounds):
            first = number % len(processes)
            rounds.append(one_round(processes[first:] + processes[:first], rows, files))
            print(f"round {number + 1} of {options.rounds} is done", file=sys.stderr, flush=True)
    if rounds:
        report(options.systems, [name for name in rows if name in options.only], rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="none: only compare the answers, on a tiny table")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW", help=" ".join(ROWS))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["penstock", "iceberg", "delta"])
    parser.add_argument("--memory", default="4g", help="of each driver")
    parser.add_argument("--directory", type=Path, help="keeps the generated data for the next run")
    parser.add_argument("--cold", action="store_true", help="measure the first query of a process instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-") as scratch:
        directory = options.directory or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        if options.cold:
            import cold_start

            cold_start.compare(Path(scratch), SETTINGS | {"spark.driver.memory": options.memory}, options.rounds)
        else:
            compare(options, directory, Path(scratch))


if __name__ == "__main__":
    main()
