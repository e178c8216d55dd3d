"""A table's files and partitions, beside what the extension lists."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from typing import get_args

import pytest

from penstock.ducklake.catalog.opening import Catalog as OpenCatalog
from penstock.ducklake.inspection.files import FileOrder, file_sizes, file_summaries
from penstock.ducklake.inspection.partitions import PartitionOrder, PartitionSummary, partition_summaries
from penstock.ducklake.model.objects import TableInfo
from penstock.ducklake.transaction import Shown
from penstock.errors import InvalidError
from support.catalogs import Catalog
from support.inspection import opened, shown, table

FILES = 20_000
VALUES = (
    "NULL", "''", "'a'", "'A'", "'a '", "'/ = % $ < > &'", "'🦆'", "'''; DROP TABLE t; --'",
    "'__HIVE_DEFAULT_PARTITION__'",
)  # fmt: skip


def keys(at: Shown, info: TableInfo, **how: object) -> list[tuple[tuple[str | None, ...], int]]:
    """The values of the partitions, each with the rows that are left in it."""
    page = partition_summaries(at, info, **how)  # type: ignore[arg-type]
    return [(values(item), item.rows - item.deleted_rows) for item in page.items]


def values(item: PartitionSummary) -> tuple[str | None, ...]:
    return tuple(value.value for value in item.values)


def test_files_and_partitions_are_those_of_the_extension(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            'CREATE TABLE t (p VARCHAR, "n <i>" BIGINT, d DATE)',
            "INSERT INTO t SELECT 'before', i, DATE '2020-01-01' FROM range(5) r(i)",
            'ALTER TABLE t SET PARTITIONED BY (p, bucket(3, "n <i>"))',
        )
        for value in VALUES:
            reference.execute(f"INSERT INTO t SELECT {value}, 2 * i, DATE '1969-12-31' FROM range(10) r(i)")
        reference.execute("DELETE FROM t WHERE p = 'a' AND \"n <i>\" < 6", "DELETE FROM t WHERE p = '🦆'")
        reference.execute("ALTER TABLE t SET PARTITIONED BY (year(d))")
        reference.execute("INSERT INTO t SELECT 'z', i, DATE '2020-01-01' + i::INT * 300 FROM range(10) r(i)")
        reference.set_option("data_inlining_row_limit", 10)
        reference.execute("DELETE FROM t WHERE p = 'z' AND \"n <i>\" = 3", "INSERT INTO t VALUES ('inlined', 1, NULL)")
        listed = reference.records("FROM ducklake_list_files('lk', 't')")
        by_text = dict(reference.rows("SELECT p, count(*) FROM t GROUP BY p"))
        by_year = dict(reference.rows("SELECT year(d)::VARCHAR, count(*) FROM t WHERE p = 'z' GROUP BY 1"))
        newest = reference.value("SELECT max(snapshot_id) FROM ducklake_snapshots('lk')")
        older = {
            version: reference.value(f"SELECT count(*) FROM t AT (VERSION => {version})")
            for version in range(1, newest)
        }
    with opened(catalog) as lake:
        at = shown(lake)
        info = table(at, "t")
        page = file_summaries(at, info)
        assert page.total == len(listed)
        assert {(item.path, item.size, item.delete_file, item.delete_size or None) for item in page.items} == {
            (row["data_file"], row["data_file_size_bytes"], row["delete_file"], row["delete_file_size_bytes"])
            for row in listed
        }
        assert sum(item.rows - item.deleted_rows for item in page.items) + 1 == sum(by_text.values())
        assert sum(item.inlined_deletes for item in page.items) == 1
        assert sum(bucket.file_count for bucket in file_sizes(at, info)) == len(listed)
        assert sum(bucket.bytes for bucket in file_sizes(at, info)) == sum(item.size for item in page.items)
        for order, key in {
            "id": lambda item: (item.id,),
            "size": lambda item: (item.size,),
            "rows": lambda item: (item.rows,),
            "deleted": lambda item: (item.deleted_rows,),
        }.items():
            for descending in (False, True):
                found = file_summaries(at, info, order=order, descending=descending).items
                assert list(found) == sorted(sorted(found, key=lambda item: item.id), key=key, reverse=descending), (
                    order
                )
                some = file_summaries(at, info, order=order, descending=descending, offset=3, limit=4)
                assert (some.items, some.total, some.offset) == (found[3:7], len(listed), 3)

        first, last = page.items[0], page.items[-1]
        assert first.partition == ()
        assert [(value.name, value.transform) for value in page.items[1].partition] == [
            ("p", "identity"), ("n <i>", "bucket(3)"),
        ]  # fmt: skip
        assert [(value.name, value.transform) for value in last.partition] == [("d", "year")]

        found: Counter[str | None] = Counter()
        years: Counter[str | None] = Counter()
        for item in partition_summaries(at, info).items:
            names = [value.name for value in item.values]
            assert names in ([], ["p", "n <i>"], ["d"])
            (years if names == ["d"] else found)[item.values[0].value if names else "before"] += (
                item.rows - item.deleted_rows
            )
        assert +found == {key: count for key, count in by_text.items() if key not in ("z", "inlined")}
        assert +years == by_year

        every = keys(at, info)
        assert len({key for key, _ in every}) == len(every) == partition_summaries(at, info).total
        for order in get_args(PartitionOrder):
            up, down = (keys(at, info, order=order, descending=way) for way in (False, True))
            assert sorted(up, key=repr) == sorted(down, key=repr) == sorted(every, key=repr)
            assert keys(at, info, order=order, offset=2, limit=3) == up[2:5]
        counts = [item.rows for item in partition_summaries(at, info, order="rows", descending=True).items]
        assert counts == sorted(counts, reverse=True)
        for version, rows in older.items():
            then = shown(lake, version)
            items = file_summaries(then, table(then, "t")).items
            assert sum(item.rows - item.deleted_rows for item in items) == rows
            parts = partition_summaries(then, table(then, "t")).items
            assert sum(item.rows - item.deleted_rows for item in parts) == rows


def test_numbers_in_partitions_are_in_their_order(catalog: Catalog) -> None:
    with catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute(
            "CREATE TABLE t (i BIGINT)",
            "ALTER TABLE t SET PARTITIONED BY (i)",
            "INSERT INTO t VALUES (10), (9), (-100), (NULL), (2)",
        )
    with opened(catalog) as lake:
        at = shown(lake)
        assert [key for (key,), _ in keys(at, table(at, "t"))] == [None, "-100", "2", "9", "10"]
        assert [key for (key,), _ in keys(at, table(at, "t"), descending=True)] == ["10", "9", "2", "-100", None]


def test_a_page_that_cannot_be_is_refused(file_catalog: Catalog) -> None:
    with file_catalog.build() as reference:
        reference.execute("CREATE TABLE t (i BIGINT)")
    with opened(file_catalog) as lake:
        at = shown(lake)
        info = table(at, "t")
        assert (file_summaries(at, info).items, file_sizes(at, info)) == ((), [])
        assert partition_summaries(at, info).total == 0
        with pytest.raises(InvalidError, match=r"no order 'name; DROP'; give one of id, size, rows, deleted"):
            file_summaries(at, info, order="name; DROP")  # type: ignore[arg-type]
        for wrong in ({"offset": -1}, {"limit": -1}):
            with pytest.raises(InvalidError, match="numbers from 0"):
                file_summaries(at, info, **wrong)  # type: ignore[arg-type]


def fill(lake: OpenCatalog, files: int, days: int) -> None:
    """Rows of the catalog for so many files of the one table, by day; each tenth has lost rows."""
    database = lake.database
    spec = database.value("SELECT partition_id FROM ducklake_partition_info")
    with database.transaction():
        database.insert(
            "ducklake_data_file",
            ("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative", "record_count",
             "file_size_bytes", "row_id_start", "partition_id"),
            [(n, 1, 2, f"{n}.parquet", True, 1000 + n, 1_000 * (n % 997), 1000 * n, spec) for n in range(files)],
        )  # fmt: skip
        database.insert(
            "ducklake_file_partition_value",
            ("data_file_id", "table_id", "partition_key_index", "partition_value"),
            [(n, 1, 0, f"day {n % days}") for n in range(files)],
        )
        database.insert(
            "ducklake_delete_file",
            ("delete_file_id", "table_id", "begin_snapshot", "data_file_id", "path", "path_is_relative", "delete_count",
             "file_size_bytes"),
            [(files + n, 1, 2, n, f"{n}-delete.parquet", True, 5, 100) for n in range(0, files, 10)],
        )  # fmt: skip


@pytest.mark.parametrize("order", get_args(FileOrder))
def test_a_page_of_many_files_is_small(sqlite_catalog: Catalog, order: FileOrder) -> None:
    with sqlite_catalog.build() as reference:
        reference.execute("CREATE TABLE t (d VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (d)")
    with opened(sqlite_catalog) as lake:
        fill(lake, FILES, days=400)
        at = shown(lake)
        info = table(at, "t")
        tracemalloc.start()
        page = file_summaries(at, info, order=order, descending=True, offset=FILES // 2, limit=50)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (len(page.items), page.total) == (50, FILES)
        assert most < 1_000_000  # 20,000 lines would be twenty times as much


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_many_files_are_quick(request: pytest.FixtureRequest, kind: str) -> None:
    """Also in lakes of the extension's, whose catalogs have no indexes."""
    catalog: Catalog = request.getfixturevalue(f"{kind}_catalog")
    with catalog.build() as reference:
        reference.execute("CREATE TABLE t (d VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (d)")
    with opened(catalog) as lake:
        fill(lake, FILES, days=400)
        at = shown(lake)
        info = table(at, "t")
        started = time.process_time(), time.monotonic()
        page = file_summaries(at, info, order="deleted", descending=True, limit=20)
        parts = partition_summaries(at, info, order="bytes", descending=True, limit=20)
        sizes = file_sizes(at, info)
        assert time.process_time() - started[0] < 5
        assert time.monotonic() - started[1] < 60  # a second, where nothing else keeps the machine busy
        assert (page.total, parts.total, sum(bucket.file_count for bucket in sizes)) == (FILES, 400, FILES)
        assert page.items[0].deleted_rows == 5
        assert [(bucket.low, bucket.high) for bucket in sizes[:2]] == [(0, 1024), (1024, 2048)]
        assert partition_summaries(at, info, offset=400).total == 400
        assert sum(item.file_count for item in partition_summaries(at, info, limit=400).items) == FILES
