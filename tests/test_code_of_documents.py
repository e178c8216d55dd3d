"""Every block of code in the documents runs: here those of `docs/` and `README.md`, the guides in `test_guides.py`.

What a document takes for granted, such as a lake with some orders, is made before it in the document's folder.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
import penstock.delta
from support.documents import BLOCK, ROOT, RUN, Document, with_penstock

pytestmark = pytest.mark.takes(90)
ORDERS = "id BIGINT, region STRING, ts TIMESTAMP_NTZ, total DECIMAL(12,2)"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a document's files are in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _tidy(spark: SparkSession) -> Iterator[None]:
    """What a document leaves in the session is gone before the next."""
    yield
    for query in spark.streams.active:
        query.stop()
    spark.catalog.dropTempView("orders")


def run(document: Document) -> None:
    try:
        document.run()
    finally:
        for found in document.names.values():
            if isinstance(found, penstock.Lake):
                found.close()


def make_orders(uri: str = "ducklake:sales.ducklake") -> None:
    """A lake of eleven snapshots with the table `orders`."""
    with penstock.attach(uri) as lake:
        orders = lake.create_table("orders", ORDERS)
        for id in range(8):
            orders.append([(id, ("EU", "US")[id % 2], datetime(2026, 3, 1 + id), None)])
        orders.delete("id = 7")
        orders.update({"total": "9.9"}, where="id = 1")


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"


def runs(path: Path) -> bool:
    return any(language.split()[0] in RUN for language, _ in BLOCK.findall(path.read_text()))


def documents() -> list[Path]:
    """Those with code."""
    return [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if runs(path)]


def others() -> list[str]:
    """Documents that no test names: they begin with nothing but their folder."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = {path for path in documents() if re.search(rf'"(docs/)?{path.name}"', tests)}
    return [str(path.relative_to(ROOT)) for path in documents() if path not in named]


HAVE_A_LAKE = ["docs/health.md"]
SHOW_A_PAGE = ["docs/explorer.md"]
# Files that Spark itself finds: its JVM has a folder of its own.
FILES = {"docs/how_to/load_csv_and_json.md": ('"in/', '"old')}


def marked(path: str) -> Any:
    """Most pages that solve a problem each are left for `--full`: they are alike, and each takes seconds."""
    is_one_of_many = path.startswith("docs/how_to/") and path not in FILES
    return pytest.param(path, marks=pytest.mark.slow if is_one_of_many else ())


@pytest.mark.parametrize("path", [marked(path) for path in ["README.md", *others()]])
def test_documents_that_begin_with_nothing(spark: SparkSession, place: Path, path: str) -> None:
    run(Document(path, {word: f'"{place}/{word[1:]}' for word in FILES.get(path, ())}))


def test_reading(spark: SparkSession) -> None:
    make_orders()
    run(Document("docs/reading.md", {"2026-04-10 12:00:00": now(), "2026-04-10 00:00:00": "2026-01-01 00:00:00"}))


def test_writing(spark: SparkSession, place: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "region": ["EU"],
            "ts": pa.array([0], pa.timestamp("us")),
            "total": pa.array([None], pa.decimal128(12, 2)),
        }
    )
    (place / "2026").mkdir()
    for name in ("a", "b", "2026/d"):
        pq.write_table(rows, place / f"{name}.parquet")
    pq.write_table(rows.drop_columns(["ts"]).append_column("more", [["x"]]), place / "c.parquet")
    sales = penstock.delta.create(
        str(place / "sales"), ORDERS, partitioned_by=["region"], materialize_partition_columns=True
    )
    sales.append(spark.createDataFrame(rows.to_pylist(), ORDERS))
    run(Document("docs/writing.md", {"/data": str(place)}))


def test_maintenance(spark: SparkSession) -> None:
    lake = penstock.attach("ducklake:sqlite:sales.sqlite", data_path="data/")
    lake.create_table("events", "id BIGINT, day DATE").append(spark.sql("SELECT id, DATE'2026-11-01' FROM range(100)"))
    run(Document("docs/maintenance.md", lake=lake))


@pytest.mark.parametrize("path", [path for path in HAVE_A_LAKE if (ROOT / path).exists()])
def test_documents_that_have_a_lake(spark: SparkSession, path: str) -> None:
    make_orders()
    run(Document(path, lake=penstock.attach("ducklake:sales.ducklake")))


class Page(Document):
    """A document whose code and commands serve a page, until they are interrupted."""

    def run_python(self, code: str) -> None:
        imports = self.names.setdefault("imports", [])
        imports += [line for line in code.splitlines() if line.startswith(("from ", "import "))]
        self._look_at_page([sys.executable, "-u", "-c", "\n".join([*imports, code])])

    def run_console(self, session: str) -> str:
        for command in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
            self._look_at_page(["bash", "-c", f"exec {command}"])
        return ""

    def _look_at_page(self, program: list[str]) -> None:
        settings = with_penstock() | {"BROWSER": "true"}
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=settings) as page:
            try:
                assert page.stdout is not None
                addresses = (re.search(r"http://\S+", line) for line in page.stdout)
                address = next(found[0] for found in addresses if found)
                assert "orders" in httpx.get(address, follow_redirects=True, timeout=60).text
            finally:
                page.send_signal(signal.SIGINT)


@pytest.mark.parametrize("path", [path for path in SHOW_A_PAGE if (ROOT / path).exists()])
def test_documents_that_show_a_page(spark: SparkSession, path: str) -> None:
    make_orders()
    Page(path).run()


class Stream(Document):
    """A document whose streams are done before it goes on."""

    def run_python(self, code: str) -> None:
        super().run_python(code)
        for query in SparkSession.active().streams.active:
            query.processAllAvailable()
            query.stop()


def test_streaming(spark: SparkSession, place: Path) -> None:
    schema = "id BIGINT, name STRING"
    lake = penstock.attach("ducklake:sqlite:sales.sqlite", data_path="data/", name="sales")
    orders, customers = (lake.create_table(name, schema) for name in ("orders", "customers"))
    pq.write_table(pa.table({"id": pa.array(range(20), pa.int64()), "name": ["x"] * 20}), place / "arrivals.parquet")
    names: dict[str, Any] = {"lake": lake, "orders": orders, "customers": customers, "spark": spark}
    names["df"] = spark.readStream.schema(schema).option("pathGlobFilter", "arrivals*").parquet(str(place))
    run(
        Stream("docs/streaming.md", {"/checkpoints": str(place / "checkpoints"), "start=17,": "start=3,"}, **names),
    )
    with penstock.attach("ducklake:sqlite:sales.sqlite") as lake:
        assert lake.table("orders").read().count() == 4 * 20
        assert lake.table("customers").read().count() == 20


def test_lance(spark: SparkSession, place: Path) -> None:
    df = spark.sql(
        "SELECT id, DATE'2026-11-14' AS event_date, if(id % 2 = 0, 'US', 'CN') AS country, 'x' AS city FROM range(10)"
    )
    run(Document("docs/lance.md", {"2026-11-15 12:00:00+00:00": f"{now()}+00:00"}, df=df))


def test_delta(spark: SparkSession, place: Path) -> None:
    df = spark.sql("SELECT id, 'EU' AS region, DATE'2026-11-14' AS day, 1.5BD AS total FROM range(10)")
    lake = penstock.attach("ducklake:sales.ducklake")
    lake.create_table("orders", "id BIGINT, region STRING, day DATE, total DECIMAL(12,2)")
    run(Document("docs/delta.md", {"2026-11-15 12:00:00+00:00": f"{now()}+00:00"}, df=df, lake=lake))


def test_code_stands_in_fences_that_say_what_it_is() -> None:
    """A block that is only indented, or has no language, would be passed over."""
    for path in {*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "architecture.md"}:  # which shows folders
        text = path.read_text()
        rest = BLOCK.sub("", text)
        assert "```" not in rest, path.name
        assert not re.search(r"\n\n    (?:import|from|with|python|pip|\$|[\w, ]+ =|[\w.]+\() ?", rest), path.name


def test_blocks_that_do_not_run_install_or_measure_or_dump() -> None:
    """As the last lines of `docs/index.md` say; what variables say is tried with named lakes."""
    by_hand = r"pip |lake/bin/(pip|venv-pack) |python3.11 -m venv |python benchmarks/|mysql(dump)? |export PENSTOCK_"
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for language, code in BLOCK.findall(path.read_text()):
            assert language not in ("bash", "shell"), path.name
            if language == "sh":
                assert [line for line in code.splitlines() if not re.match(by_hand, line)] == [], path.name
