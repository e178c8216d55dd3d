"""Partitionings as users write them, and which of them DuckDB's extension takes, under which directories."""

from __future__ import annotations

import re

import duckdb
import pytest

from penstock.errors import InvalidError, NotFoundError, PenstockError, UnsupportedError
from penstock.partitioning import (
    Bucket,
    Day,
    Hash,
    Hour,
    Identity,
    Month,
    PartitionField,
    PartitionSpec,
    Transform,
    Truncate,
    Unknown,
    Year,
    directory_names,
    parse_partition_field,
    partition_fields,
)
from penstock.schema.columns import Column
from penstock.schema.types import parse_type
from support.predicate_samples import duckdb_type

CATALOG = "__ducklake_metadata_lk."


@pytest.mark.parametrize(
    ("text", "column", "transform"),
    [
        ("region", "region", Identity()),
        (" Größe ", "Größe", Identity()),
        ("year", "year", Identity()),
        ('"odd name, (x) ""y"""', 'odd name, (x) "y"', Identity()),
        ("`a``b.c`", "a`b.c", Identity()),
        ('"bucket(4, a)"', "bucket(4, a)", Identity()),
        ("bucket(16, id)", "id", Bucket(16)),
        ('BUCKET ( 016 ,"a, b" )', "a, b", Bucket(16)),
        ("bucket(2147483647, `x)`)", "x)", Bucket(2**31 - 1)),
        ("Year(ts)", "ts", Year()),
        ("month(ts)", "ts", Month()),
        ("day( ts )", "ts", Day()),
        ("HOUR(ts)", "ts", Hour()),
        ('Truncate( 3, "a, b")', "a, b", Truncate(3)),
        ("hash(`a`)", "a", Hash()),
    ],
)
def test_fields(text: str, column: str, transform: Transform) -> None:
    assert parse_partition_field(text) == ((column,), transform)


def test_a_hash_of_several_columns() -> None:
    assert parse_partition_field('HASH(a , "b, ""c""",`d`)') == (("a", 'b, "c"', "d"), Hash())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("years(ts)", InvalidError, r"no partition transform years; write .*truncate\(4, column\), hash\(column"),
        (
            "truncate(0, s)",
            InvalidError,
            r"the width comes first and is from 1 to 2147483647, as in truncate\(4, column",
        ),
        ("truncate(3, a, b)", InvalidError, "is no partition field"),
        ("hash()", InvalidError, "is no partition field"),
        ("hash(a,)", InvalidError, "is no partition field"),
        ("identity(a)", InvalidError, "no partition transform identity; write column"),
        ("bucket(0, a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(-1, a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(2147483648, a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(" + "9" * 5000 + ", a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(1.5, a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(٤, a)", InvalidError, "from 1 to 2147483647"),
        ("bucket(a, 16)", InvalidError, "is no partition field"),
        ("bucket(16)", InvalidError, "is no partition field"),
        ("bucket(16, a, b)", InvalidError, "is no partition field"),
        ("bucket(4, year(ts))", InvalidError, "is no partition field"),
        ("year()", InvalidError, "is no partition field"),
        ("year(ts", InvalidError, "is no partition field"),
        ("", InvalidError, "is no partition field"),
        ('""', InvalidError, "is no partition field"),
        ("a b", InvalidError, "double quotes or backticks"),
        ("a, b", InvalidError, "is no partition field"),
        ("a + 1", InvalidError, "is no partition field"),
        ("'a'", InvalidError, "is no partition field"),
        ("s.", InvalidError, "is no partition field"),
    ],
)
def test_what_is_no_field(text: str, error: type[PenstockError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_partition_field(text)


@pytest.mark.parametrize("text", ["truncate(4, s)", "Hash(a, b)"])
def test_ducklake_s_own_transforms(text: str) -> None:
    ways = "column, bucket(16, column), year(column), month(column), day(column) or hour(column)"
    function = text.split("(")[0].lower()
    with pytest.raises(
        UnsupportedError, match=re.escape(f"{text}: DuckLake has no transform {function}; write {ways}")
    ):
        partition_fields([text], COLUMNS)
    with pytest.raises(
        InvalidError, match=re.escape(f"years(ts): there is no partition transform years; write {ways}")
    ):
        partition_fields(["years(ts)"], COLUMNS)


# One column of each name that can clash with a directory's.
COLUMNS = [
    Column(1, "a", parse_type("int32"), 0),
    Column(2, "b", parse_type("int32"), 0),
    Column(3, "ts", parse_type("timestamp"), 0),
    Column(4, "Year", parse_type("int32"), 0),
    Column(5, "bucket", parse_type("int32"), 0),
    Column(6, "bucket_a", parse_type("int32"), 0),
    Column(7, "bucket_B", parse_type("int32"), 0),
    Column(8, "odd/n =%é", parse_type("int32"), 0),
]


@pytest.fixture(scope="module")
def clashing(lake: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    columns = ", ".join(f'"{column.name}" {duckdb_type(str(column.type))}' for column in COLUMNS)
    lake.execute(f"CREATE OR REPLACE TABLE clashing ({columns})")
    return lake


@pytest.mark.parametrize(
    "by",
    [
        ["a", "bucket(4, a)", "bucket(4, b)"],
        ["year(ts)", "Year"],
        ["year", "year(ts)"],
        ["year(ts)", "month(ts)", "year(ts)", "A"],
        ["bucket(4, a)", "bucket(8, a)"],
        ["bucket(4, a)", "bucket(4, a)", "bucket(4, a)"],
        ["a", "A"],
        ["a", "a", "bucket(4, b)"],
        ["bucket(4, a)", "bucket"],
        ["bucket_a", "bucket(4, b)", "bucket(4, a)"],
        ["bucket(4, b)", "bucket(4, a)", "bucket_a"],
        ["bucket_B", "bucket(4, a)", "bucket(4, b)"],
        ['"odd/n =%é"', "bucket(4, a)", 'bucket(4, "odd/n =%é")'],
    ],
    ids=", ".join,
)
def test_directories(clashing: duckdb.DuckDBPyConnection, by: list[str]) -> None:
    clashing.execute(f"ALTER TABLE clashing SET PARTITIONED BY ({', '.join(by)})")
    try:
        clashing.execute("INSERT INTO clashing VALUES (1, 2, '2024-03-04', 4, 5, 6, 7, 8)")
    except duckdb.InvalidInputException:
        with pytest.raises(InvalidError, match="leave one out"):
            partition_fields(by, COLUMNS)
        return
    fields = partition_fields(by, COLUMNS)
    assert [field.key_index for field in fields] == list(range(len(by)))
    path = clashing.execute(f"SELECT path FROM {CATALOG}ducklake_data_file ORDER BY data_file_id DESC").fetchone()[0]
    names = tuple(part.split("=")[0] for part in path.split("/")[:-1])
    assert directory_names(PartitionSpec(1, fields), COLUMNS) == names


SQL_VALUES = {
    "boolean": "true",
    "int8": "1",
    "int16": "1",
    "int32": "1",
    "int64": "1",
    "uint8": "1",
    "uint16": "1",
    "uint32": "1",
    "uint64": "1",
    "int128": "1::HUGEINT",
    "uint128": "1::UHUGEINT",
    "float32": "1",
    "float64": "1",
    "decimal(4,1)": "1",
    "varchar": "'a'",
    "json": "'1'::JSON",
    "uuid": "uuid()",
    "blob": "'a'::BLOB",
    "date": "DATE '2024-01-01'",
    "time": "TIME '01:02:03'",
    "timetz": "TIMETZ '01:02:03+00'",
    "timestamp": "now()::TIMESTAMP",
    "timestamptz": "now()",
    "timestamp_s": "now()::TIMESTAMP_S",
    "timestamp_ms": "now()::TIMESTAMP_MS",
    "timestamp_ns": "now()::TIMESTAMP_NS",
    "interval": "INTERVAL 1 DAY",
}
DECLARED = {"int128": "HUGEINT", "uint128": "UHUGEINT"}


@pytest.mark.parametrize("function", ["year", "hour"])
def test_types_of_calendar_parts(lake: duckdb.DuckDBPyConnection, function: str) -> None:
    """What the extension can write, Penstock takes, and nothing else."""
    names = list(SQL_VALUES)
    columns = [Column(n, f"c{n}", parse_type(name), 0) for n, name in enumerate(names)]
    declared = ", ".join(f"c{n} {DECLARED.get(name) or duckdb_type(name)}" for n, name in enumerate(names))
    lake.execute(f"CREATE OR REPLACE TABLE all_types ({declared})")
    for n, (name, value) in enumerate(SQL_VALUES.items()):
        by = f"{function}(c{n})"
        lake.execute(f"ALTER TABLE all_types SET PARTITIONED BY ({by})")
        try:
            lake.execute(f"INSERT INTO all_types (c{n}) VALUES ({value})")
        except duckdb.BinderException:
            with pytest.raises(InvalidError, match=f"c{n} is a .*{function} takes"):
                partition_fields([by], columns)
        else:
            assert partition_fields([by], columns), name


def test_every_plain_type_has_identity_and_buckets() -> None:
    columns = [Column(n, f"c{n}", parse_type(name), 0) for n, name in enumerate(SQL_VALUES)]
    by = [text for n in range(len(columns)) for text in (f"c{n}", f"bucket(4, c{n})")]
    assert len(partition_fields(by, columns)) == 2 * len(columns)


@pytest.mark.parametrize("name", ["list", "struct", "map", "variant", "geometry"])
def test_nested_types_are_refused(name: str) -> None:
    for text in ("x", "bucket(4, x)"):
        with pytest.raises(UnsupportedError, match=f"x is a {name}"):
            partition_fields([text], [Column(1, "x", parse_type(name), 0)])


def test_columns_that_do_not_exist() -> None:
    with pytest.raises(NotFoundError, match=r"no column 'zzz'; its columns are a, b, ts, Year"):
        partition_fields(["a", "bucket(4, zzz)"], COLUMNS)


def test_unknown_transforms_have_no_directories() -> None:
    spec = PartitionSpec(1, (PartitionField(0, 1, Unknown("epoch_day")),))
    with pytest.raises(UnsupportedError, match="epoch_day"):
        directory_names(spec, COLUMNS)


@pytest.mark.parametrize(
    ("text", "names", "transform"),
    [
        ("s.a", ("s.a",), Identity()),
        ('bucket(4, s . "a b")', ("s.a b",), Bucket(4)),
        ("hash(s.a.b, t, `u`.v)", ("s.a.b", "t", "u.v"), Hash()),
    ],
)
def test_fields_of_structs(text: str, names: tuple[str, ...], transform: Transform) -> None:
    assert parse_partition_field(text) == (names, transform)
