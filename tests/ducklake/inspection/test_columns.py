"""What the catalog knows of columns."""

from __future__ import annotations

from penstock.ducklake.inspection.columns import column_summaries, walk
from support.catalogs import Catalog
from support.inspection import opened, shown, table


def test_columns_have_what_the_catalog_knows(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            """CREATE TABLE t (i BIGINT NOT NULL DEFAULT 7, "<b>é🦆" VARCHAR DEFAULT 'a''b', d DECIMAL(38, 4), f DOUBLE,
                               s STRUCT(a INTEGER, l DATE[]), w DATE)""",
            """INSERT INTO t VALUES (1, '', 12345678901234567890123456789012.3456, 'nan', {'a': 1, 'l': ['1969-12-31']},
                                     '9999-12-31'),
                                    (2, '<script>', -0.5, -0.0, NULL, '0001-01-01')""",
            """COMMENT ON COLUMN t.i IS 'the "key"'""",
            "CREATE TABLE none (i INTEGER)",
            "ALTER TABLE t ADD COLUMN late INTEGER",
        )
        sizes = dict(
            reference.rows(
                f"""SELECT column_id, sum(column_size_bytes)::BIGINT
                    FROM {METADATA}.ducklake_file_column_stats GROUP BY 1"""
            )
        )
        told = {row[0]: row[1:] for row in reference.rows(STATISTICS)}
    with opened(catalog) as lake:
        columns = column_summaries(shown(lake), table(shown(lake), "t"))
        assert [column.name for column in columns] == ["i", "<b>é🦆", "d", "f", "s", "w", "late"]
        i, text, decimal, real, struct, day, late = columns
        assert (i.type, i.nullable, i.default, i.comment, i.min_value, i.max_value, i.contains_null) == (
            "int64", False, "7", 'the "key"', "1", "2", False,
        )  # fmt: skip
        assert (text.default, text.comment, text.min_value, text.max_value) == ("a'b", None, "", "<script>")
        assert (decimal.type, decimal.max_value) == ("decimal(38,4)", "12345678901234567890123456789012.3456")
        assert real.contains_nan
        assert [field.path for field in walk(struct.children)] == [("s", "a"), ("s", "l"), ("s", "l", "element")]
        assert struct.children[1].children[0].min_value == "1969-12-31"
        assert (day.min_value, day.max_value) == ("0001-01-01", "9999-12-31")
        assert (late.bytes, late.min_value) == (None, None)
        known = {column.id: column for column in walk(columns)}
        assert {id: column.bytes for id, column in known.items() if column.bytes is not None} == sizes
        for id, statistics in told.items():
            column = known[id]
            assert (column.contains_null, column.contains_nan, column.min_value, column.max_value) == statistics
        before = column_summaries(shown(lake, 2), table(shown(lake, 2), "t"))
        assert ([column.name for column in before][-1], before[0].comment) == ("w", None)
        assert [c.name for c in column_summaries(shown(lake), table(shown(lake), "none"))] == ["i"]


METADATA = "__ducklake_metadata_lk"
STATISTICS = f"""SELECT column_id, contains_null, contains_nan, min_value, max_value
                 FROM {METADATA}.ducklake_table_column_stats WHERE table_id = 1"""
