"""A session of the user's own stays as it is, but for what docs/reading.md names."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.spark.releases import required_settings
from support.catalogs import Catalog

DOCUMENT = Path(__file__).parents[2] / "docs" / "reading.md"
OWN = {"spark.sql.session.timeZone": "Asia/Kathmandu", "spark.sql.shuffle.partitions": "3"}


def settings(spark: SparkSession) -> dict[str, str]:
    """Everything that was ever set in a session."""
    confs: Any = spark._jsparkSession.sessionState().conf().getAllConfs()
    pairs = confs.toSeq()
    return {pairs.apply(i)._1(): pairs.apply(i)._2() for i in range(pairs.size())}


def rules(spark: SparkSession) -> list[str]:
    found: Any = spark._jsparkSession.experimental().extraOptimizations()
    return [found.apply(i).getClass().getSimpleName() for i in range(found.size())]


def documented(version: str) -> dict[str, str]:
    """The settings that the document says `attach` changes."""
    said = re.search(r"`attach` sets\n(.*?)Penstock needs", DOCUMENT.read_text(), re.DOTALL)
    assert said is not None
    text = said[1] if version < "4.2" else re.sub(r"\(on Spark 4\.1 .*?\)", "", said[1])
    return dict.fromkeys(re.findall(r"`(spark\.[\w.]+)`", text), "true")


def in_a_thread(work: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            assert SparkSession.getActiveSession() is None
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[dict[str, str]]:
    """The session as its user set it, without what Penstock needs."""
    before = {key: spark.conf.get(key) for key in OWN}
    for key, value in OWN.items():
        spark.conf.set(key, value)
    for key in documented(spark.version):
        spark.conf.unset(key)
    yield settings(spark)
    for key, value in {**before, **documented(spark.version)}.items():
        assert value is not None
        spark.conf.set(key, value)


def test_a_thread_changes_only_what_the_document_names(
    file_catalog: Catalog, spark: SparkSession, own_settings: dict[str, str]
) -> None:
    assert documented(spark.version) == required_settings(spark.version)

    def work() -> None:
        with penstock.attach(file_catalog.uri) as lake:
            assert lake.spark._jsparkSession.equals(spark._jsparkSession)
            table = lake.create_table("t", "id BIGINT, s STRING")
            table.append(spark.sql("SELECT id, 'a' AS s FROM range(20)"))
            table.delete("id = 3")
            source = spark.sql("SELECT id, 'b' AS s FROM range(15, 25)")
            table.merge(source, "target.id = source.id").when_matched_update().when_not_matched_insert().execute()
            assert table.read().count() == 24

    in_a_thread(work)
    assert settings(spark) == own_settings | documented(spark.version)


def test_penstocks_own_session_is_the_one_that_is_there(spark: SparkSession, own_settings: dict[str, str]) -> None:
    given = penstock.session(spark_sql_files_openCostInBytes="1048576")
    try:
        assert given._jsparkSession.equals(spark._jsparkSession)
        assert settings(spark) == own_settings | documented(spark.version) | {
            "spark.sql.files.openCostInBytes": "1048576"
        }
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_attaching_adds_two_rules_to_a_session(file_catalog: Catalog, spark: SparkSession) -> None:
    own = spark.newSession()
    before = settings(own)
    for _ in range(2):
        penstock.attach(file_catalog.uri, spark=own).close()
    assert settings(own) == before | documented(spark.version)
    assert rules(own) == ["CatalogAggregates", "FollowFilters"]


def held_up(started: Path, go_on: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that says that it runs, and waits."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            started.touch()
            while not go_on.exists():
                time.sleep(0.01)
            yield batch

    return rows


def test_no_setting_changes_while_tasks_write(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """Other threads' queries would be planned with it."""
    started, go_on = tmp_path / "started", tmp_path / "go on"
    with penstock.attach(file_catalog.uri, spark=spark) as lake:
        before = settings(spark)
        table = lake.create_table("t", "id BIGINT")
        rows: DataFrame = spark.range(20).mapInArrow(held_up(started, go_on), "id BIGINT")
        thread = threading.Thread(target=table.append, args=[rows])
        thread.start()
        while not started.exists():
            assert thread.is_alive()
            time.sleep(0.01)
        during = settings(spark)
        go_on.touch()
        thread.join()
        assert during == before
        assert table.read().count() == 20
