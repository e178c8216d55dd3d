"""Geometries, which the spatial extension makes; they are never inlined."""

from __future__ import annotations

from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables

SHAPES = (
    "POINT (1 2)", "LINESTRING (0 0, 1 1, 2 0)", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))",
    "MULTIPOINT ((0 0), (1 1))", "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))", "POINT EMPTY",
)  # fmt: skip


def test_geometries(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        rows = ", ".join(f"({number}, '{shape}'::GEOMETRY)" for number, shape in enumerate(SHAPES))
        reference.execute(
            "CREATE TABLE t (id INTEGER, g GEOMETRY)",
            f"INSERT INTO t VALUES {rows}, (100, NULL)",
            "DELETE FROM t WHERE id = 2",
            "ALTER TABLE t RENAME g TO shape",
            "INSERT INTO t VALUES (101, 'POINT (3 4)'::GEOMETRY)",
        )
    assert_same_tables(catalog, spark, "t")


def test_elevation(catalog: Catalog, spark: SparkSession) -> None:
    with catalog.build() as reference:
        reference.execute(
            "CREATE TABLE t (g GEOMETRY)", "INSERT INTO t VALUES ('LINESTRING Z (0 0 1, 1 1 2)'::GEOMETRY)"
        )
    assert_same_tables(catalog, spark, "t")
