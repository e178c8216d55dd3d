"""Lakes by their names, wherever Spark is asked for one: DuckDB's extension makes them and reads what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.sql.registration import lake_named
from support.catalogs import Catalog
from support.reference import Reference


@pytest.fixture
def named(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A lake that is called `sales`, and is the default one; at most three rows of an insert are inlined."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t AS SELECT 5 AS a")
    monkeypatch.chdir(catalog.directory)
    monkeypatch.delenv("PENSTOCK_CONFIG")
    monkeypatch.setenv("WHERE_SALES_IS", catalog.uri)
    Path("penstock.toml").write_text(
        'default = "sales"\n[lakes.sales]\nlocation = "${WHERE_SALES_IS}"\n'
        "[defaults]\ncreate_if_not_exists = false\ndata_inlining_row_limit = 3"
    )
    return catalog


def test_attach(named: Catalog, spark: SparkSession) -> None:
    for uri in ("ducklake:sales", "ducklake:"):
        with penstock.attach(uri, spark=spark) as lake:
            assert lake.table("t").read().collect() == [(5,)]
    with pytest.raises(penstock.AttachError, match="no lake named 'stock': named lakes are sales"):
        penstock.attach("ducklake:stock", spark=spark)
    with pytest.raises(penstock.AttachError, match=r"is not a DuckLake|no DuckLake"):
        penstock.attach(f"ducklake:{named.directory}/new.ducklake", spark=spark)
    assert not Path("stock").exists()
    assert not Path("new.ducklake").exists()
    penstock.attach("ducklake:new.ducklake", create_if_not_exists=True, spark=spark).close()
    assert Path("new.ducklake").exists()


def test_what_holds_for_all_lakes(named: Catalog, spark: SparkSession) -> None:
    with penstock.attach("ducklake:sales", spark=spark) as lake:
        lake.table("t").append(spark.range(3).selectExpr("cast(id AS int) AS a"))
        assert lake.table("t").files().count() == 1  # the rows are in the catalog
    with penstock.attach("ducklake:sales", data_inlining_row_limit=2, spark=spark) as lake:
        lake.table("t").append(spark.range(3).selectExpr("cast(id AS int) AS a"))
        assert lake.table("t").files().count() == 2
    if named.kind != "mysql":
        with named.reference() as reference:
            assert sorted(reference.rows("FROM t")) == [(0,), (0,), (1,), (1,), (2,), (2,), (5,)]


@pytest.mark.classic
def test_session_and_format(named: Catalog, spark: SparkSession) -> None:
    penstock.session(lakes=["sales"])
    try:
        assert spark.sql("SELECT * FROM sales.t").collect() == [(5,)]
    finally:
        lake = lake_named(spark, "sales")
        assert lake is not None
        lake.close()
    # It is no catalog of the session any more: the format finds it by its name all the same.
    read = spark.read.format("ducklake").option("table", "main.t")
    assert read.option("lake", "sales").load().collect() == [(5,)]
    with pytest.raises(penstock.NotFoundError, match=r"neither a lake of this session .* named lakes are sales"):
        read.option("lake", "stock").load()
    for wrong in ("sales", ["ducklake:sales.ducklake"]):
        with pytest.raises(penstock.InvalidError, match="a list of names"):
            penstock.session(lakes=wrong)


@pytest.mark.one_catalog
def test_copy_catalog(named: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(penstock.AttachError, match="no lake named 'backup'"):
        penstock.copy_catalog("ducklake:sales", "ducklake:backup")
    assert not Path("backup").exists()
    monkeypatch.setenv("PENSTOCK_LAKE_BACKUP", "sqlite:backup.sqlite")
    penstock.copy_catalog("ducklake:sales", "ducklake:backup")
    with Reference() as reference:
        assert reference.attach("ducklake:sqlite:backup.sqlite").rows("FROM t") == [(5,)]
