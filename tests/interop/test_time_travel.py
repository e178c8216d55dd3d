"""Snapshots by time, lakes attached at a snapshot, and session time zones other than UTC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

import penstock
from support.catalogs import Catalog
from support.compare import assert_contents, assert_same_tables, query

FIRST = datetime(2024, 3, 10, 6, 30, tzinfo=UTC)
NEW_YORK = "America/New_York"


@pytest.fixture
def dated(catalog: Catalog) -> Catalog:
    """A lake whose snapshots are a whole hour apart, from `FIRST` on; each inserts one row."""
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)", *(f"INSERT INTO t VALUES ({i})" for i in range(1, 5)))
    times = ((version, FIRST + timedelta(hours=version)) for version in range(6))
    catalog.tamper(
        *(
            f"UPDATE ducklake_snapshot SET snapshot_time = '{time:%Y-%m-%d %H:%M:%S}+00' WHERE snapshot_id = {version}"
            for version, time in times
        )
    )
    return catalog


def test_a_snapshot_stands_for_its_version(file_catalog: Catalog, spark: SparkSession) -> None:
    """Wherever a version is taken, what the verbs return is too; what is no version is an error that says so."""
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        t = lake.create_table("t", "id BIGINT")
        first, second = (t.append(spark.range(start, end, 1, 1)) for start, end in ((0, 20), (20, 60)))
        assert first is not None
        assert second is not None
        assert lake.snapshot_at(first) == first
        assert t.read(version=first).count() == 20
        assert t.explain("id >= 20", version=first).files == 1
        assert t.files(version=first).schema == t.files().schema
        for feed in (t.insertions, t.deletions):
            assert feed(first, second).columns == ["snapshot_id", "rowid", "id"]
        assert t.changes(first.id, second).count() == 60
        for bad in ("2", 2.0, True):
            with pytest.raises(penstock.InvalidError, match="is no version; give the number of a snapshot"):
                t.read(version=bad)  # type: ignore[arg-type]
        with pytest.raises(penstock.InvalidError, match="is no version"):
            t.changes(2.0)  # type: ignore[arg-type]
        with pytest.raises(penstock.NotFoundError, match="snapshot 99 does not exist"):
            t.read(version=replace(first, id=99))
    with penstock.attach(file_catalog.uri, snapshot_version=first, spark=spark) as lake:
        assert lake.table("t").read().count() == 20


@contextmanager
def session_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK])
def test_read_at_a_time(dated: Catalog, spark: SparkSession, zone: str) -> None:
    """At the snapshot's own time, just before it and after it; New York changes to summer time in between."""
    moments = [FIRST + timedelta(hours=v, seconds=s) for v in (2, 3, 4) for s in (-1, 0, 1)]
    texts = [moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S%z") for moment in moments]
    local = [moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S") for moment in moments]
    with dated.reference(timezone=zone) as reference:
        expected = [query(reference, f"FROM t AT (TIMESTAMP => TIMESTAMPTZ '{text}')") for text in texts]
    with session_zone(spark, zone), penstock.attach(dated.uri, read_only=True, spark=spark) as lake:
        for moment, text, contents in zip(moments, local, expected, strict=True):
            assert_contents(lake.table("t").read(timestamp=moment), contents, f"t at {moment}")
            assert_contents(lake.table("t").read(timestamp=text), contents, f"t at {text} in {zone}")


def test_read_before_the_first_snapshot(dated: Catalog, spark: SparkSession) -> None:
    with penstock.attach(dated.uri, read_only=True, spark=spark) as lake:
        with pytest.raises(penstock.NotFoundError):
            lake.table("t").read(timestamp="1999-01-01 00:00:00")
        with pytest.raises(penstock.NotFoundError, match="1000"):
            lake.table("t").read(version=1000)


def test_attached_at_a_snapshot(dated: Catalog, spark: SparkSession) -> None:
    with dated.reference(snapshot_version=3) as reference:
        expected = query(reference, "FROM t")
    with penstock.attach(dated.uri, read_only=True, spark=spark, snapshot_version=3) as lake:
        assert lake.current_snapshot().id == 3
        assert_contents(lake.table("t").read(), expected)
    with penstock.attach(dated.uri, read_only=True, spark=spark, snapshot_time=FIRST + timedelta(hours=3)) as lake:
        assert lake.current_snapshot().id == 3
        assert_contents(lake.table("t").read(), expected)


def test_session_zone_does_not_change_values(catalog: Catalog, spark: SparkSession) -> None:
    """A timestamptz is an instant: the rows are the same in every zone, inlined, in files and as defaults."""
    with catalog.build(timezone=NEW_YORK, data_inlining_row_limit=2) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, z TIMESTAMPTZ, ts TIMESTAMP, d DATE, t TIMETZ)",
            "INSERT INTO t SELECT i, TIMESTAMPTZ '2024-03-10 01:30:00' + INTERVAL (i) HOUR,"
            " TIMESTAMP '2024-03-10 01:30:00' + INTERVAL (i) HOUR, DATE '2024-03-10', '12:00:00-05' FROM range(5) r(i)",
            "INSERT INTO t VALUES (100, '2024-11-03 01:30:00-04', '2024-11-03 01:30:00', '2024-11-03', '01:00:00+02')",
            "ALTER TABLE t ADD COLUMN since TIMESTAMPTZ DEFAULT '2024-03-10 12:00:00'",
            "ALTER TABLE t SET PARTITIONED BY (hour(z))",
            "INSERT INTO t SELECT i, TIMESTAMPTZ '2024-11-03 00:30:00' + INTERVAL (i) HOUR, NULL, NULL, NULL, NULL"
            " FROM range(5) r(i)",
        )
    with session_zone(spark, "Asia/Kathmandu"):
        assert_same_tables(catalog, spark, "t")


def test_filters_on_instants_in_a_session_zone(catalog: Catalog, spark: SparkSession) -> None:
    predicates = (
        "z = TIMESTAMP '2024-03-10 03:30:00'",
        "z >= '2024-03-10 03:00:00'",
        "z < '2024-03-10 01:59:59'",
        "CAST(z AS DATE) = DATE '2024-03-10'",
        "ts >= '2024-03-10 02:30:00'",
    )
    with catalog.build(timezone=NEW_YORK, data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (id INTEGER, z TIMESTAMPTZ, ts TIMESTAMP)",
            "ALTER TABLE t SET PARTITIONED BY (day(z), hour(z))",
        )
        for i in range(-3, 6, 2):
            reference.execute(
                f"INSERT INTO t VALUES ({i}, TIMESTAMPTZ '2024-03-10 01:30:00' + INTERVAL ({i}) HOUR,"
                f" TIMESTAMP '2024-03-10 01:30:00' + INTERVAL ({i}) HOUR)"
            )
    with catalog.reference(timezone=NEW_YORK) as reference:
        spelled = [p.replace("TIMESTAMP '", "TIMESTAMPTZ '") for p in predicates]
        expected = [query(reference, f"FROM t WHERE {predicate}") for predicate in spelled]
    with session_zone(spark, NEW_YORK), penstock.attach(catalog.uri, read_only=True, spark=spark) as lake:
        for predicate, contents in zip(predicates, expected, strict=True):
            assert_contents(lake.table("t").read().where(predicate), contents, predicate)
