"""One attached DuckLake, with all that Penstock has for it: Python's verbs, and Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from penstock.ducklake.lake import DuckLake
from penstock.sql.queries import lake_query
from penstock.sql.registration import register, unregister_all


@dataclass(frozen=True, repr=False, eq=False)
class Lake(DuckLake):
    """A DuckLake: its tables, snapshots and options. Made by `penstock.attach`; close it, or use it in a `with`.

    Verbs that change something return the snapshot they made, and None inside a transaction, whose commit makes it.
    Each raises a `ConflictError` where another writer changed the same thing meanwhile, an `InvalidError` where the
    lake was attached read-only or at a snapshot, and a `CatalogError` where its database fails.
    """

    def close(self) -> None:
        """Lets go of the catalog, and of the names it has in Spark; DataFrames that were not yet run will fail."""
        try:
            unregister_all(self)
        finally:
            super().close()

    def register(self, name: str, *, spark: SparkSession | None = None) -> None:
        """Makes the lake a catalog of a Spark session: `spark.sql("SELECT * FROM sales.orders")`.

        It stays one until the lake is closed, or another one takes its name.

        Args:
            name: The catalog's name.
            spark: The session; by default the lake's own. A `newSession()` knows no lakes: register them there too.

        Raises:
            InvalidError: Spark uses the name already, or it has a dot.
        """
        register(self, name, spark or self.spark)

    def sql(
        self,
        query: str,
        args: dict[str, Any] | list[Any] | None = None,
        *,
        dialect: Literal["spark", "duckdb"] = "spark",
    ) -> DataFrame:
        """Runs a statement of Spark SQL in which the lake is the current catalog: `lake.sql("SELECT * FROM orders")`.

        Temporary views, functions and settings of the session are there; those that a statement makes are not kept.

        Args:
            query: The statement.
            args: Values of parameters in it, as `spark.sql` takes them.
            dialect: The language of the statement. With `duckdb` it is a query as DuckDB runs it: DuckDB binds it to
                the lake's tables, views and macros, and Spark runs what is written for it from DuckDB's plan.

        Returns:
            The rows. Statements that change something have done it already.

        Raises:
            InvalidError: The statement only changes the session, which `spark.sql` does; or DuckDB cannot bind it.
            UnsupportedError: A query of DuckDB's has what is not translated; the error says what.
        """
        return lake_query(self, query, args, dialect)
