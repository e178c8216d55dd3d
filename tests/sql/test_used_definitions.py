"""A query's views and macros are those of the snapshot that its rows are read at, or it says that they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import InvalidError, Lake
from penstock.ducklake.model.objects import View
from penstock.spark.releases import has_views_of_catalogs
from penstock.sql.views import Views
from support.catalogs import SQLiteCatalog
from support.reference import Reference
from support.writing import attached

from .conftest import create_view, functions_in_from

CENTS = "CREATE OR REPLACE VIEW euros AS SELECT cents AS euro FROM prices"
QUERIES = [
    "SELECT * FROM sales.main.euros",
    "SELECT euro + 0 FROM (SELECT * FROM sales.euros) WHERE euro >= 0",
    "SELECT * FROM sales.outer_view",
    "SELECT * FROM sales.of_spark",
    "SELECT sales.euro(cents) FROM sales.prices",
    "SELECT * FROM {0}all_euros()",
]


@pytest.fixture
def catalog(tmp_path: Path) -> SQLiteCatalog:
    return SQLiteCatalog(tmp_path)


@pytest.fixture
def lake(catalog: SQLiteCatalog, spark: SparkSession) -> Iterator[Lake]:
    with attached(catalog, spark, name="sales") as made:
        yield made


@pytest.fixture
def duck(catalog: SQLiteCatalog, lake: Lake) -> Iterator[Reference]:
    """DuckDB beside the lake, in which cents become euros in one snapshot: each query's rows are 1 before and after."""
    lake.create_table("prices", "cents DOUBLE").append([(100.0,)])
    with catalog.reference() as reference:
        reference.execute(
            "CREATE VIEW euros AS SELECT cents / 100 AS euro FROM prices",
            "CREATE VIEW outer_view AS FROM euros",
            "CREATE MACRO euro(x) AS x / 100",
            "CREATE MACRO all_euros() AS TABLE SELECT euro(cents) AS euro FROM prices",
        )
        create_view(lake, "of_spark", "SELECT cents / 100 AS euro FROM sales.prices")
        yield reference


def change_unit(duck: Reference) -> None:
    duck.execute(
        "BEGIN",
        "UPDATE prices SET cents = 1",
        CENTS,
        "DROP VIEW of_spark",
        "CREATE VIEW of_spark AS SELECT cents AS euro FROM prices",
        "CREATE OR REPLACE MACRO euro(x) AS x",
        "COMMIT",
    )


@pytest.mark.parametrize("query", QUERIES)
def test_a_definition_that_was_changed_since_is_an_error(
    lake: Lake, duck: Reference, spark: SparkSession, query: str
) -> None:
    with functions_in_from(spark) as place:
        made = spark.sql(query.format(place))
        change_unit(duck)
        changed = r"(view|macro) main\.\w+ was changed since the query was made; make it again"
        with pytest.raises(InvalidError, match=changed):
            made.collect()
        assert spark.sql(query.format(place)).collect() == [(1.0,)]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_and_other_definitions_may_change(lake: Lake, duck: Reference, spark: SparkSession, query: str) -> None:
    with functions_in_from(spark) as place:
        made = spark.sql(query.format(place))
        duck.execute(
            "UPDATE prices SET cents = 300", "CREATE VIEW another AS SELECT 1 AS x", "CREATE TABLE more (a INT)"
        )
        assert made.collect() == [(3.0,)]
        duck.execute("DROP VIEW another")
        assert spark.sql(query.format(place)).collect() == [(3.0,)]


def test_one_that_is_gone_is_an_error(lake: Lake, duck: Reference, spark: SparkSession) -> None:
    made = spark.sql("SELECT * FROM sales.euros")
    duck.execute("DROP VIEW euros")
    with pytest.raises(InvalidError, match=r"view main\.euros was changed since"):
        made.collect()


def test_a_transaction_sees_its_own(lake: Lake, duck: Reference, spark: SparkSession) -> None:
    with lake.transaction():
        lake.create_view("mine", "SELECT 2 AS x", dialect="duckdb")
        made = spark.sql("SELECT * FROM sales.mine")
        lake.create_view("mine", "SELECT 3 AS x", dialect="duckdb", replace=True)
        assert made.collect() == [(2,)]
        assert spark.sql("SELECT * FROM sales.mine").collect() == [(3,)]


def test_a_view_that_becomes_a_table_is_found(
    lake: Lake, duck: Reference, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every snapshot the name is a view's or a table's, also at the moment that Spark asks."""
    found = Views._found

    def then_changed(views: Views, *asked: object) -> View | None:
        answer = found(views, *asked)  # type: ignore[arg-type]
        monkeypatch.setattr(Views, "_found", found)
        if answer is not None:
            duck.execute("BEGIN", "DROP VIEW euros", "CREATE TABLE euros AS SELECT 5.0::DOUBLE AS euro", "COMMIT")
        return answer

    monkeypatch.setattr(Views, "_found", then_changed)
    if not has_views_of_catalogs(spark.version):  # it asks twice, and the second time there is no view
        with pytest.raises(InvalidError, match=r"view main\.euros was changed since"):
            spark.sql("SELECT * FROM sales.main.euros").collect()
    assert spark.sql("SELECT * FROM sales.main.euros").collect() == [(5.0,)]
