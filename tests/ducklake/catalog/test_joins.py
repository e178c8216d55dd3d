"""Tables with a row or more a file are joined in time that grows as they do, also where no index is there to help."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from penstock.ducklake.catalog import file_zones, objects, visible_files
from penstock.ducklake.catalog.catalog_tables import INDEXES
from penstock.ducklake.catalog.changed_files import DeletedFiles, InsertedFiles, PartlyDeletedFiles, snapshot_span
from penstock.ducklake.catalog.commits import staged_tables
from penstock.ducklake.catalog.compactable_files import compactable_table
from penstock.ducklake.catalog.databases import Database, Row
from penstock.ducklake.catalog.databases.mysql import MysqlDatabase
from penstock.ducklake.catalog.deleted_rows import deletable_files
from penstock.ducklake.catalog.inlined_rows import inlined_delete_name
from penstock.ducklake.catalog.inlined_storage import create_inlined_deletes_sql
from penstock.ducklake.catalog.shown import Shown
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.catalog.table_files import listed_files
from penstock.ducklake.catalog.visibility import At
from penstock.ducklake.catalog.visible_files import FileScope, partitions_of_files
from penstock.ducklake.inspection.columns import column_summaries
from penstock.ducklake.inspection.files import file_summaries
from penstock.ducklake.inspection.history import table_history
from penstock.ducklake.inspection.partitions import partition_summaries
from penstock.ducklake.inspection.tables import table_summaries
from penstock.ducklake.reading.catalog_aggregates import AnsweringPlanner
from penstock.ducklake.reading.file_planner import FilePlanner
from penstock.partitioning import PartitionField, parse_transform
from penstock.schema.columns import Column
from penstock.schema.types import Type
from penstock.storage.paths import resolve
from support.catalogs import Catalog
from support.writers import Writer

COLUMNS = (Column(1, "id", Type("int64"), 0), Column(2, "day", Type("date"), 0))
FILES = 200
_LARGE = re.compile("ducklake_(?:data_file|delete_file|file_column_stats|file_partition_value|inlined_delete_[0-9]+)")


class Lake:
    """A table with delete files, inlined deletes and files that ended, in a catalog without indexes."""

    def __init__(self, catalog: Catalog) -> None:
        writer = Writer(catalog.uri, catalog.data_path)
        self.database: Database = writer.catalog.database
        writer.create_table("t", COLUMNS)
        with writer.transaction() as transaction:
            self.table = writer.table(transaction, "t")
            fields = [PartitionField(0, 2, parse_transform("identity"))]
            staged_tables.set_partitioning(transaction.staging, self.table.id, fields)
        self.specs = objects.partition_specs(self.database, self.table.id)
        for index in INDEXES if self.database.uses_indexes else ():
            place = f" ON {index.table}" if isinstance(self.database, MysqlDatabase) else ""
            self.database.execute(f"DROP INDEX {index.name}{place}")
        self.newest = latest_snapshot(self.database)
        with self.database.transaction():
            self.fill()
        self.database.execute(f"UPDATE ducklake_snapshot SET next_file_id = {2 * FILES}")

    @property
    def at(self) -> At:
        return At(self.newest.id)

    def fill(self) -> None:
        begin, ended = self.newest.id - 1, self.newest.id
        choice = random.Random(5)
        for n in range(FILES):
            self.add(
                "data_file", data_file_id=n, begin_snapshot=begin, end_snapshot=ended if n % 10 == 0 else None,
                file_order=choice.choice([None, 1, 2]), path=f"ducklake-{n:036}.parquet", path_is_relative=n % 3 == 0,
                record_count=10, file_size_bytes=100 + n, footer_size=None if n % 7 == 0 else n,
                encryption_key=None if n % 5 else "a2V5", partition_id=self.specs[0].partition_id,
            )  # fmt: skip
            self.add(
                "delete_file", delete_file_id=FILES + n, begin_snapshot=begin,
                end_snapshot=choice.choice([None, None, ended]), data_file_id=choice.randrange(FILES + 5),
                path=f"{n}.parquet", path_is_relative=n % 2 == 0, format="parquet", delete_count=1,
                file_size_bytes=10 + n, footer_size=n, encryption_key=None if n % 4 else "a2V5",
            )  # fmt: skip
            self.add("file_partition_value", data_file_id=n, partition_key_index=0, partition_value=day(n))
            for column, text in enumerate((str(n), day(n)), 1):
                self.add(
                    "file_column_stats", data_file_id=n, column_id=column, value_count=10, null_count=0, min_value=text,
                    max_value=text,
                )  # fmt: skip
        inlined = inlined_delete_name(self.table.id)
        self.database.execute(create_inlined_deletes_sql(self.database, inlined))
        some = [(n, 1, begin) for n in range(0, FILES, 4)]
        self.database.insert(inlined, ("file_id", "row_id", "begin_snapshot"), some)

    def add(self, table: str, **row: object) -> None:
        self.database.insert(f"ducklake_{table}", ("table_id", *row), [(self.table.id, *row.values())])

    def scope(self) -> FileScope:
        return FileScope(
            self.database, self.table.id, self.table.path, self.at, self.newest.id, 2 * FILES,
            inlined_deletes=inlined_delete_name(self.table.id), seen_time=self.newest.time,
        )  # fmt: skip


def day(number: int) -> str:
    return f"2026-01-{number % 28 + 1:02}"


@pytest.fixture
def lake(catalog: Catalog) -> Iterator[Lake]:
    made = Lake(catalog)
    with closing(made.database):
        yield made


def read(lake: Lake) -> None:
    """All that a query of the table asks, and one of its changes."""
    scope = lake.scope()
    span = snapshot_span(lake.database, lake.table.id, 1, lake.newest.id)
    scopes = (scope, *(kind.of(scope, span) for kind in (InsertedFiles, DeletedFiles, PartlyDeletedFiles)))
    low, high = ([">=", ["column", "id"], ["literal", "bigint", n]] for n in (50, 60))
    question = json.dumps([[low], [["count", ["column", "id"]], ["max", ["column", "id"]]]])
    for one in scopes:
        for group in one.groups():
            planner = FilePlanner(one, lake.specs, group, COLUMNS, {}, lambda file: ())
            for filters in ([low], [["not", high]], [["or", low, ["isnull", ["column", "day"]]]]):
                for _ in range(2):
                    planner.files_for(json.dumps(filters))
            planner.counts(json.dumps([low, ["=", ["column", "day"], ["literal", "date", 20454]]]))
            AnsweringPlanner(planner).aggregates(question)
            AnsweringPlanner(planner)(json.dumps([["answered", question]]))
            if group.deleted:
                one.delete_files(group, one.delete_kinds(group), planner.keep(json.dumps([low])))


def inspected(lake: Lake) -> None:
    """All that inspection and maintenance ask."""
    database, table = lake.database, lake.table
    at = Shown(database, lake.at, "")
    table_summaries(at)
    table_history(database, table)
    column_summaries(at, table)
    partition_summaries(at, table)
    file_summaries(at, table, order="deleted")
    listed_files(database, table.id, table.path, lake.at)
    partitions_of_files(database, lake.at, table.id, lake.specs[0])
    compactable_table(database, table)


@pytest.mark.parametrize("catalog", ["postgres", "mysql"], indirect=True)
@pytest.mark.parametrize("asking", [read, inspected])
def test_no_table_of_files_is_read_again_for_each_row_of_another(
    lake: Lake, asking: Callable[[Lake], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_zones, "ZONE", 4)
    monkeypatch.setattr(visible_files, "MANY_FILES", 0)
    fetched, seen = lake.database._fetched, set[str]()

    def explained(sql: str, parameters: Sequence[Any]) -> list[Row]:
        if len(_LARGE.findall(sql)) > 1:
            plan = "\n".join(" ".join(map(str, row)) for row in fetched(f"EXPLAIN {sql}", parameters))
            assert not re.search(r"Nested Loop|\(SubPlan|, BNL join|DEPENDENT", plan), f"{sql}\n{plan}"
            seen.update(_LARGE.findall(sql))
        return fetched(sql, parameters)

    monkeypatch.setattr(lake.database, "_fetched", explained)
    asking(lake)
    assert seen > {"ducklake_data_file"}


def test_listed_files_are_each_file_with_each_of_its_delete_files(lake: Lake) -> None:
    names = ("path", "path_is_relative", "file_size_bytes", "footer_size", "encryption_key")
    both = ", ".join(f"{alias}.{name}" for alias in "dx" for name in names)
    joined = lake.database.query(
        f"""SELECT {both} FROM ducklake_data_file d
            LEFT JOIN (SELECT * FROM ducklake_delete_file WHERE {lake.at.visible()}) x
              ON x.data_file_id = d.data_file_id
            WHERE {lake.at.visible("d")} ORDER BY d.file_order, d.data_file_id, x.delete_file_id"""
    )
    found = list(zip(*listed_files(lake.database, lake.table.id, "/lake/", lake.at), strict=True))

    def half(row: Row) -> Row:
        path, relative, size, footer, key = row
        return None if path is None else resolve("/lake/", path, bool(relative)), size, footer, b"key" if key else None

    expected = [(*half(row[:5]), *half(row[5:])) for row in joined]
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) > len({row[0] for row in found})  # a file with several


def test_deletable_files_have_the_delete_files_that_are_shown(lake: Lake) -> None:
    found = deletable_files(lake.database, lake.table, lake.at, range(0, FILES, 2))
    joined = lake.database.query(
        f"""SELECT d.data_file_id, x.delete_file_id FROM ducklake_data_file d
            LEFT JOIN (SELECT * FROM ducklake_delete_file WHERE {lake.at.visible()}) x
              ON x.data_file_id = d.data_file_id
            WHERE d.data_file_id % 2 = 0"""
    )
    assert sorted((file.id, file.delete_file_id or 0) for file in found) == sorted((f, d or 0) for f, d in joined)
