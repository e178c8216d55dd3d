"""Rows in the place of others: overwritten and deleted here, judged by the extension at every snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import penstock
from support.catalogs import Catalog
from support.compare import assert_same_tables
from support.plans import files_read


def rows(spark: SparkSession, first: int, end: int, region: str = "CAST(NULL AS STRING)") -> object:
    return spark.sql(f"SELECT id, {region} AS region, id / 4 AS amount FROM range({first}, {end})")


REGION = "array('EU', 'it''s / 100%', CAST(NULL AS STRING))[int(id % 3)]"


@pytest.mark.one_catalog
def test_overwrites_and_deletes(catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(catalog.uri, data_path=catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT, region STRING, amount DOUBLE", partitioned_by=["region"])
        table.append(rows(spark, 0, 90, REGION))
        table.append(rows(spark, 100, 103, "'EU'"))  # inlined
        table.overwrite(rows(spark, 200, 230, "'EU'"), where="region = 'EU' AND id < 60")  # part of a file
        table.delete(F.col("id").isin(2, 5))  # few: kept in the catalog
        table.delete("id % 2 = 0 AND id < 80")  # a delete file, over inlined deletes
        table.delete("id < 80 AND id % 3 = 1")  # a second one
        table.overwrite(rows(spark, 300, 302, "'EU'"), where="region = 'EU'")  # whole files, and inlined rows
        table.delete("region IS NULL")
        with lake.transaction(message="all at once"):
            table.append(rows(spark, 400, 440, "'tx'"))
            table.append(rows(spark, 500, 503, "'tx'"))
            table.delete("id BETWEEN 405 AND 420 OR id = 501")
            table.delete("id = 421")
            table.overwrite(rows(spark, 600, 620, "'tx'"), where="id >= 430 AND id < 440")
            assert table.read().where("region = 'tx'").count() == 5 + 8 + 2 + 20
        assert table.read().where("region = 'tx'").count() == 35
        table.overwrite(rows(spark, 700, 720))
        table.truncate()
        assert table.read().count() == 0
    assert_same_tables(catalog, spark, "t")
    if catalog.kind != "mysql":
        with catalog.reference() as lk:
            lk.execute(
                "INSERT INTO t SELECT i, 'EU', i FROM range(40) r(i)",
                "DELETE FROM t WHERE id < 15",
                "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0)",
                "CALL ducklake_merge_adjacent_files('lk')",
            )
        assert_same_tables(catalog, spark, "t")


def test_extension_goes_on_from_our_deletes(file_catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT, region STRING, amount DOUBLE")
        table.append(rows(spark, 0, 100))
        table.delete("id < 30")
        table.delete("id IN (40, 41)")
    with file_catalog.reference() as lk:
        lk.execute(
            "DELETE FROM t WHERE id < 60", "UPDATE t SET region = 'upd' WHERE id < 80", "DELETE FROM t WHERE id = 99"
        )
    with penstock.attach(file_catalog.uri, spark=spark) as lake:
        lake.table("t").delete("id < 90")
        lake.set_option("write_deletion_vectors", True)
        lake.table("t").append(rows(spark, 200, 300))
        lake.table("t").delete("id % 4 = 0")
        lake.table("t").delete("id % 4 = 1")
    assert_same_tables(file_catalog, spark, "t")


@pytest.mark.slow
def test_encrypted_deletes(file_catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, encrypted=True, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT, region STRING, amount DOUBLE")
        table.append(rows(spark, 0, 100))
        table.delete("id % 3 = 0")
        table.delete("id % 3 = 1")
    assert_same_tables(file_catalog, spark, "t")
    with file_catalog.reference() as lk:
        keys = lk.rows("SELECT encryption_key FROM __ducklake_metadata_lk.ducklake_delete_file")
        assert len({key for (key,) in keys if key}) == len(keys) > 0


def test_whole_files_go_by_metadata_alone(file_catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT, region STRING, amount DOUBLE", partitioned_by=["region"])
        table.append(rows(spark, 0, 90, REGION))
        paths = {row.data_file for row in table.files().where("data_file LIKE '%region=EU%'").collect()}
        for path in paths:  # a file that is not there cannot be read
            Path(path).unlink()
        table.overwrite(rows(spark, 100, 120, "'EU'"), where="region = 'EU'")
        assert table.read().count() == 60 + 20
        assert not paths & {row.data_file for row in table.files().collect()}
        table.delete("id >= 100 AND region = 'EU'")
        assert table.read().count() == 60


@pytest.mark.classic
@pytest.mark.compiled
def test_deletes_read_only_files_that_can_match(file_catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        table = lake.create_table("t", "id BIGINT, region STRING, amount DOUBLE")
        for part in range(4):
            table.append(rows(spark, part * 100, part * 100 + 100))
        everything = sum(files_read(table.read()).values())
        assert 0 < sum(files_read(table.read().where("id = 150")).values()) < everything
        assert not any(row.delete_file for row in table.files().collect())
        table.delete("id = 150")
        changed = [row for row in table.files().collect() if row.delete_file]
        assert len(changed) == 1


def test_failures_change_nothing(file_catalog: Catalog, spark: SparkSession) -> None:
    with penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark) as lake:
        table = lake.create_table("t", "id BIGINT NOT NULL, region STRING, amount DOUBLE")
        table.append(rows(spark, 0, 50))
        before, files = lake.current_snapshot(), _files(file_catalog)
        with pytest.raises(penstock.InvalidError, match="column 'id'"):
            table.overwrite(
                spark.sql("SELECT IF(id = 20, NULL, id) AS id, 'x', 1.0D FROM range(40)"), where="id % 2 = 0"
            )
        with pytest.raises(Exception, match="nonsense"):
            table.delete("nonsense > 1")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            table.delete("1 / (id - 20) > 0")
        assert lake.current_snapshot() == before
        assert _files(file_catalog) == files
        assert table.read().count() == 50


def _files(catalog: Catalog) -> set[str]:
    return {str(path) for path in Path(catalog.data_path).rglob("*") if path.is_file()}
