"""Fields of structs added, dropped, renamed and promoted: at the top, inside lists, inside map values."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_same_tables

PLACES = pytest.mark.parametrize("inlined_rows", [0, 100], ids=["files", "inlined"])


@PLACES
def test_struct_fields(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            "CREATE TABLE t (s STRUCT(a INTEGER, b VARCHAR, n STRUCT(x INTEGER, y INTEGER)))",
            "INSERT INTO t VALUES ({'a': 1, 'b': 'one', 'n': {'x': 1, 'y': 2}}), (NULL),"
            " ({'a': 2, 'b': 'two', 'n': NULL})",
            "ALTER TABLE t ADD COLUMN s.c INTEGER",
            "ALTER TABLE t ADD COLUMN s.n.z INTEGER DEFAULT 42",
            "INSERT INTO t VALUES ({'a': 3, 'b': 'three', 'n': {'x': 3, 'y': 4, 'z': 5}, 'c': 6})",
            "ALTER TABLE t DROP COLUMN s.b",
            "ALTER TABLE t RENAME s.n.x TO w",
            "ALTER TABLE t ALTER s SET TYPE STRUCT(a BIGINT, n STRUCT(w INTEGER, y INTEGER, z INTEGER), c INTEGER)",
            "INSERT INTO t VALUES ({'a': 9000000000, 'n': {'w': 6, 'y': 7, 'z': NULL}, 'c': 8})",
            "ALTER TABLE t ADD COLUMN s.b DOUBLE",
            "INSERT INTO t VALUES ({'a': 5, 'n': NULL, 'c': NULL, 'b': 5.5})",
        )
    assert_same_tables(catalog, spark, "t")


@PLACES
def test_fields_inside_lists_and_maps(catalog: Catalog, spark: SparkSession, inlined_rows: int) -> None:
    with catalog.build(data_inlining_row_limit=inlined_rows) as reference:
        reference.execute(
            "CREATE TABLE t (l STRUCT(a INTEGER, b VARCHAR)[],"
            " m MAP(VARCHAR, STRUCT(p INTEGER, q STRUCT(r INTEGER)[])))",
            "INSERT INTO t VALUES"
            " ([{'a': 1, 'b': 'one'}, NULL], MAP {'k': {'p': 1, 'q': [{'r': 10}, NULL]}, 'l': NULL}),"
            " ([], MAP {}), (NULL, NULL)",
            "ALTER TABLE t ADD COLUMN l.element.c INTEGER DEFAULT 5",
            "ALTER TABLE t RENAME l.element.a TO aa",
            "ALTER TABLE t ADD COLUMN m.value.s VARCHAR",
            "ALTER TABLE t ADD COLUMN m.value.q.element.t INTEGER DEFAULT 7",
            "INSERT INTO t VALUES ([{'aa': 2, 'b': 'two', 'c': 3}],"
            " MAP {'k': {'p': 2, 'q': [{'r': 20, 't': 21}], 's': 'ess'}})",
            "ALTER TABLE t DROP COLUMN l.element.b",
            "ALTER TABLE t RENAME m.value.p TO pp",
            "ALTER TABLE t ALTER m SET TYPE"
            " MAP(VARCHAR, STRUCT(pp INTEGER, q STRUCT(r BIGINT, t INTEGER)[], s VARCHAR))",
            "INSERT INTO t VALUES ([{'aa': 3, 'c': NULL}],"
            " MAP {'k': {'pp': 3, 'q': [{'r': 9000000000, 't': NULL}], 's': NULL}})",
        )
    assert_same_tables(catalog, spark, "t")


def test_fields_set_by_a_whole_type(catalog: Catalog, spark: SparkSession) -> None:
    """In files only: the extension loses the fields of inlined lists after such a change."""
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (s STRUCT(a INTEGER, b INTEGER), l STRUCT(a INTEGER, b INTEGER)[])",
            "INSERT INTO t VALUES ({'a': 1, 'b': 2}, [{'a': 3, 'b': 4}])",
            "ALTER TABLE t ALTER s SET TYPE STRUCT(b INTEGER, a INTEGER)",
            "ALTER TABLE t ALTER l SET TYPE STRUCT(b BIGINT, new VARCHAR, a INTEGER)[]",
            "INSERT INTO t VALUES ({'b': 20, 'a': 10}, [{'b': 40, 'new': 'n', 'a': 30}])",
        )
    assert_same_tables(catalog, spark, "t")
