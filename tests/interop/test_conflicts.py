"""The documented rules of conflict with DuckDB as the other writer, both ways round, on one PostgreSQL catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock import Lake, Table
from support.catalogs import Catalog, PostgresCatalog
from support.reference import METADATA, Reference
from support.servers import PostgresServer
from support.writing import attached, files_of

pytestmark = pytest.mark.every_catalog

_numbers = count(1)


@dataclass(frozen=True)
class Lakes:
    """One lake, attached by both; every test has a schema of its own with the same things in it."""

    catalog: Catalog
    lake: Lake
    reference: Reference
    schema: str

    def named(self, text: str) -> str:
        """Our name for S., S2, S3 and 'S' in a text."""
        return re.sub(r"S(?=[.23'])", self.schema + "_", text).replace("_.", ".").replace("_'", "'")


@pytest.fixture(scope="module")
def shared(
    postgres_server: PostgresServer, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Catalog, Lake, Reference]]:
    catalog = PostgresCatalog(tmp_path_factory.mktemp("conflicts"), postgres_server)
    with attached(catalog, spark) as lake, catalog.reference() as reference:
        yield catalog, lake, reference


@pytest.fixture
def lakes(shared: tuple[Catalog, Lake, Reference]) -> Lakes:
    catalog, lake, reference = shared
    made = Lakes(catalog, lake, reference, f"s{next(_numbers)}")
    setup = """CREATE SCHEMA S.; CREATE SCHEMA S2; CREATE TABLE S.t (id INT); CREATE TABLE S.u (id INT);
               CREATE VIEW S.v AS SELECT 1 AS a; INSERT INTO S.t FROM range(20); INSERT INTO S.t FROM range(20, 40);
               INSERT INTO S.t VALUES (1000), (1001)"""
    statements = [statement.replace("SCHEMA S.", f"SCHEMA {made.schema}") for statement in setup.split(";")]
    reference.execute("BEGIN", *map(made.named, statements), "COMMIT")
    return made


def numbers(lake: Lake, *values: int) -> DataFrame:
    return lake.spark.createDataFrame([(value,) for value in values], "id int")


def upsert(table: Table, rows: DataFrame) -> None:
    table.merge(rows, "target.id = source.id").when_matched_update().when_not_matched_insert().execute()


@dataclass(frozen=True)
class Change:
    """The same change by either side."""

    ours: Callable[[Lakes], object]
    theirs: str


def ours(change: Callable[[Lake, Lakes], object]) -> Callable[[Lakes], object]:
    return lambda lakes: change(lakes.lake, lakes)


CHANGES = {
    "create schema": Change(ours(lambda lake, to: lake.create_schema(to.named("S3"))), "CREATE SCHEMA S3"),
    "drop schema": Change(ours(lambda lake, to: lake.drop_schema(to.named("S2"))), "DROP SCHEMA S2"),
    "create table in it": Change(
        ours(lambda lake, to: lake.create_table(to.named("S2.x"), "a INT")), "CREATE TABLE S2.x (a INT)"
    ),
    "create view in it": Change(
        ours(lambda lake, to: lake.create_view(to.named("S2.y"), "SELECT 1 AS a")), "CREATE VIEW S2.y AS SELECT 1 AS a"
    ),
    "create table": Change(
        ours(lambda lake, to: lake.create_table(to.named("S.n"), "a INT")), "CREATE TABLE S.n (a INT)"
    ),
    "create view": Change(
        ours(lambda lake, to: lake.create_view(to.named("S.N"), "SELECT 1 AS a", dialect="duckdb")),
        "CREATE VIEW S.N AS SELECT 1 AS a",
    ),
    "drop table": Change(ours(lambda lake, to: lake.drop_table(to.named("S.t"))), "DROP TABLE S.t"),
    "drop view": Change(ours(lambda lake, to: lake.drop_view(to.named("S.v"))), "DROP VIEW S.v"),
    "alter table": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).add_column("c INT")), "ALTER TABLE S.t ADD COLUMN d INT"
    ),
    "set not null": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).set_not_null("id")), "ALTER TABLE S.t ALTER id SET NOT NULL"
    ),
    "insert of null": Change(ours(lambda *_: None), "INSERT INTO S.t VALUES (NULL)"),
    "rename table": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).rename("r")), "ALTER TABLE S.t RENAME TO q"
    ),
    "alter view": Change(
        ours(lambda lake, to: lake.set_view_comment(to.named("S.v"), "c")), "COMMENT ON VIEW S.v IS 'd'"
    ),
    "insert": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).append(numbers(lake, *range(20)))),
        "INSERT INTO S.t FROM range(20)",
    ),
    "inlined insert": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).append(numbers(lake, 1))), "INSERT INTO S.t VALUES (1)"
    ),
    "delete": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).delete("id < 20")), "DELETE FROM S.t WHERE id < 20"
    ),
    "inlined delete": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).delete("id = 1000")), "DELETE FROM S.t WHERE id = 1000"
    ),
    "small delete": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).delete("id = 3")), "DELETE FROM S.t WHERE id = 3"
    ),
    "update": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).update({"id": "id + 5000"}, where="id < 20")),
        "UPDATE S.t SET id = id + 5000 WHERE id < 20",
    ),
    "small update": Change(
        ours(lambda lake, to: lake.table(to.named("S.t")).update({"id": "-id"}, where="id = 3")),
        "UPDATE S.t SET id = -id WHERE id = 3",
    ),
    "upsert": Change(
        ours(lambda lake, to: upsert(lake.table(to.named("S.t")), numbers(lake, *range(30, 50)))),
        "MERGE INTO S.t USING (SELECT range::INT AS id FROM range(30, 50)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id)",
    ),
    "merge": Change(ours(lambda *_: None), "CALL ducklake_merge_adjacent_files('lk', 't', schema => 'S')"),
    "flush": Change(
        ours(lambda *_: None), "CALL ducklake_flush_inlined_data('lk', schema_name => 'S', table_name => 't')"
    ),
}


# What one does, what the other did before it, and a word of the reason.
CONFLICTS = [
    ("create schema", "create schema", "_3"),
    ("drop schema", "drop schema", "_2"),
    ("drop schema", "create table in it", "_2"),
    ("drop schema", "create view in it", "_2"),
    ("create table", "create table", '"n"'),
    ("create table", "create view", '"n"'),
    ("create view", "create table", '"N"'),
    ("create table in it", "drop schema", '"x"'),
    ("create view in it", "drop schema", '"y"'),
    ("drop table", "drop table", "table t was dropped"),
    ("drop view", "drop view", "view v was dropped"),
    ("alter table", "drop table", "table t was dropped"),
    ("alter table", "alter table", "table t was altered"),
    ("alter view", "alter view", "view v was altered"),
    ("insert", "drop table", "table t was dropped"),
    ("insert", "alter table", "table t was altered"),
    ("inlined insert", "drop table", "table t was dropped"),
    ("inlined insert", "alter table", "table t was altered"),
    ("delete", "drop table", "table t was dropped"),
    ("delete", "alter table", "table t was altered"),
    ("delete", "delete", "table t lost rows"),
    ("inlined delete", "inlined delete", "table t lost rows"),
    ("update", "drop table", "table t was dropped"),
    ("update", "update", "table t lost rows"),
    ("update", "delete", "table t lost rows"),
    ("upsert", "alter table", "table t was altered"),
    ("upsert", "upsert", "table t lost rows"),
]
# The extension lets these pass, although one of both changes is lost then.
CONFLICTS_FOR_US = [
    ("alter view", "drop view", "view v was dropped"),
    ("set not null", "insert of null", "table t got rows"),
    ("rename table", "drop table", "table t was dropped"),
    ("rename table", "alter table", "table t was altered"),
    ("delete", "merge", "table t was compacted"),
    ("small delete", "merge", "table t was compacted"),
    ("inlined delete", "flush", "table t was compacted"),
    ("inlined delete", "delete", "table t lost rows"),
    ("small update", "small update", "table t lost rows"),
    ("upsert", "merge", "table t was compacted"),
]
# Compaction is not ours yet.
CONFLICTS_FOR_THEM = [
    ("merge", "drop table", ""),
    ("merge", "delete", ""),
    ("merge", "small delete", ""),
    ("flush", "small delete", ""),
]


@pytest.mark.parametrize(("own", "other", "reason"), CONFLICTS + CONFLICTS_FOR_US)
def test_we_are_refused_when_duckdb_was_first(own: str, other: str, reason: str, lakes: Lakes) -> None:
    files = files_of(lakes.catalog)
    with pytest.raises(penstock.ConflictError, match=reason), lakes.lake.transaction():  # noqa: PT012 - at its end
        CHANGES[own].ours(lakes)
        staged = files_of(lakes.catalog) - files
        lakes.reference.execute(lakes.named(CHANGES[other].theirs))
        theirs = lakes.lake.current_snapshot()
    assert lakes.lake.current_snapshot() == theirs
    assert not staged & files_of(lakes.catalog)


@pytest.mark.parametrize(("own", "other", "reason"), CONFLICTS + CONFLICTS_FOR_THEM)
def test_duckdb_is_refused_when_we_were_first(own: str, other: str, reason: str, lakes: Lakes) -> None:
    lakes.reference.execute("BEGIN", lakes.named(CHANGES[own].theirs))
    CHANGES[other].ours(lakes)
    with pytest.raises(duckdb.TransactionException, match="onflict"):
        lakes.reference.execute("COMMIT")


def test_what_does_not_conflict_is_committed_with_the_files_that_were_written(lakes: Lakes) -> None:
    lake, reference, named = lakes.lake, lakes.reference, lakes.named
    for name in "abcd":
        lake.create_table(named(f"S.{name}"), "id INT")
    reference.execute(*(named(f"INSERT INTO S.{name} FROM range(20)") for name in "abcd"))
    before = files_of(lakes.catalog)
    with lake.transaction():
        CHANGES["insert"].ours(lakes)
        CHANGES["inlined insert"].ours(lakes)
        CHANGES["create table"].ours(lakes)
        lake.create_schema(named("S3"))
        lake.table(named("S.a")).add_column("more INT DEFAULT 7")
        lake.table(named("S.b")).delete("id < 15")
        lake.drop_table(named("S.c"))
        lake.table(named("S.d")).rename("e")
        staged = files_of(lakes.catalog) - before
        statements = """INSERT INTO S.t FROM range(100, 120); INSERT INTO S.t VALUES (121); DELETE FROM S.u;
            CREATE TABLE S.other (id INT); INSERT INTO S.a VALUES (20); INSERT INTO S.a FROM range(21, 40);
            INSERT INTO S.b FROM range(100, 120); ALTER TABLE S.c ADD COLUMN x INT; INSERT INTO S.d VALUES (20);
            ALTER TABLE S.u ADD COLUMN y INT; DROP VIEW S.v; CREATE SCHEMA S3x;
            CALL ducklake_flush_inlined_data('lk')"""
        reference.execute(*map(named, statements.split(";")))
    assert staged <= files_of(lakes.catalog)
    with_ids = lake.table(named("S.t")).read(row_ids=True).collect()
    assert sorted(row.id for row in with_ids) == sorted([*range(40), 1000, 1001, *range(20), 1, *range(100, 120), 121])
    assert len({row.rowid for row in with_ids}) == len(with_ids)
    assert reference.rows(named("SELECT id, rowid FROM S.t ORDER BY rowid")) == sorted(
        (tuple(row) for row in with_ids), key=lambda row: row[1]
    )
    for side in (
        lambda name: sorted(tuple(row) for row in lake.table(named(name)).read().collect()),
        lambda name: reference.rows(named(f"FROM {name} ORDER BY ALL")),
    ):
        assert side("S.a") == [(i, 7) for i in range(40)]
        assert side("S.b") == [(i,) for i in (*range(15, 20), *range(100, 120))]
        assert side("S.e") == [(i,) for i in range(21)]
        assert side("S.n") == []
    listed = {path for (path,) in reference.rows(f"SELECT path FROM {METADATA}.ducklake_data_file")}
    assert all(path.rpartition("/")[2] in listed for path in staged if "-delete" not in path)


def test_what_does_not_conflict_is_committed_by_duckdb_after_us(lakes: Lakes) -> None:
    lake, reference, named = lakes.lake, lakes.reference, lakes.named
    statements = """INSERT INTO S.t FROM range(100, 120); INSERT INTO S.t VALUES (121); CREATE TABLE S.other (id INT);
                    ALTER TABLE S.u ADD COLUMN y INT; DROP VIEW S.v"""
    reference.execute("BEGIN", *map(named, statements.split(";")))
    CHANGES["insert"].ours(lakes)
    CHANGES["inlined insert"].ours(lakes)
    CHANGES["create table"].ours(lakes)
    lake.table(named("S.u")).append(numbers(lake, 5))
    lake.create_schema(named("S3"))
    reference.execute("COMMIT")
    rows = lake.table(named("S.t")).read(row_ids=True).collect()
    assert len({row.rowid for row in rows}) == len(rows) == 42 + 21 + 21
    assert [tuple(row) for row in lake.table(named("S.u")).read().collect()] == [(5, None)]


# What DuckDB does while we merge the keys 40 to 59, which are not there, and whether one of them may have come with it.
MEANWHILE = [
    ("INSERT INTO S.t VALUES (45)", True),
    ("INSERT INTO S.t FROM range(55, 80)", True),
    (
        "INSERT INTO S.t VALUES (45); CALL ducklake_flush_inlined_data('lk', schema_name => 'S', table_name => 't')",
        True,
    ),
    ("UPDATE S.t SET id = 59 WHERE id = 1000", True),
    ("INSERT INTO S.t FROM range(1, 39); INSERT INTO S.t VALUES (60), (NULL)", False),
    ("INSERT INTO S.t VALUES (45); DELETE FROM S.t WHERE id = 45; DELETE FROM S.t WHERE id < 10", False),
    ("CALL ducklake_flush_inlined_data('lk', schema_name => 'S', table_name => 't')", False),
    ("INSERT INTO S.u FROM range(40, 60)", False),
]


@pytest.mark.parametrize(("theirs", "conflicts"), MEANWHILE)
def test_a_merge_that_inserts_relies_on_what_is_not_there(theirs: str, conflicts: bool, lakes: Lakes) -> None:
    table, files = lakes.lake.table(lakes.named("S.t")), files_of(lakes.catalog)

    def merge() -> set[str]:
        with lakes.lake.transaction():
            upsert(table, numbers(lakes.lake, *range(40, 60)))
            staged = files_of(lakes.catalog) - files
            lakes.reference.execute(*map(lakes.named, theirs.split(";")))
        return staged

    if conflicts:
        with pytest.raises(penstock.ConflictError, match="table t got rows by another writer that a merge might"):
            merge()
    else:
        assert len(merge()) == 1
        assert table.read().where("id BETWEEN 40 AND 59").count() == 20


def test_two_upserts_of_one_key_at_once(lakes: Lakes, spark: SparkSession) -> None:
    name = lakes.named("S.u")
    with attached(lakes.catalog, spark) as other:
        for new in (range(1), range(20)):  # a row for the catalog, then a file
            mine, theirs = lakes.lake.table(name), other.table(name)
            with pytest.raises(penstock.ConflictError, match="table u"), lakes.lake.transaction():  # noqa: PT012 - its end
                upsert(mine, numbers(lakes.lake, *new))
                upsert(theirs, numbers(other, *new))
            with lakes.lake.transaction():
                upsert(mine, numbers(lakes.lake, *range(100, 100 + len(new))))
                upsert(theirs, numbers(other, *range(200, 200 + len(new))))
            mine.delete()


def test_what_expired_snapshots_changed_is_not_known(lakes: Lakes) -> None:
    with pytest.raises(penstock.ConflictError, match="expired"), lakes.lake.transaction():  # noqa: PT012 - at its end
        CHANGES["inlined insert"].ours(lakes)
        base = lakes.lake.current_snapshot().id
        lakes.reference.execute(*map(lakes.named, ("CREATE TABLE S.x (a INT)", "CREATE TABLE S.y (a INT)")))
        lakes.reference.execute(f"CALL ducklake_expire_snapshots('lk', versions => [{base + 1}])")


def test_a_snapshot_that_was_expired_is_enough_to_begin_at(lakes: Lakes) -> None:
    """What others did since is known; of what they dropped, only the names may be gone with it."""
    lake, reference, named = lakes.lake, lakes.reference, lakes.named

    def change(own: Callable[[], object], theirs: str) -> None:
        with lake.transaction():
            own()
            base = lake.current_snapshot().id
            reference.execute(named(theirs), f"CALL ducklake_expire_snapshots('lk', versions => [{base}])")

    def insert() -> None:
        CHANGES["inlined insert"].ours(lakes)

    change(insert, "CREATE TABLE S.x (a INT)")
    assert reference.value(named("SELECT count(*) FROM S.t WHERE id = 1")) == 2
    reference.execute(named("CREATE SCHEMA S3"))
    with pytest.raises(penstock.ConflictError, match="a schema, whose name was expired"):
        change(lambda: lake.create_table(named("S3.x"), "a INT"), "DROP SCHEMA S3")
    reference.execute(named("CREATE TABLE S.y (id INT)"))
    with pytest.raises(penstock.ConflictError, match=r"table \d+ was dropped"):
        change(lambda: lake.table(named("S.y")).append(numbers(lake, 1)), "DROP TABLE S.y")
    with pytest.raises(penstock.ConflictError, match="table t was dropped"):
        change(insert, "DROP TABLE S.t")
