"""Table definitions from DDL text, StructTypes and PyArrow schemas."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.ducklake.writing.table_schemas import new_column, new_table, type_of
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.spark.schemas import SchemaLike


def shape(columns: Iterable[Column]) -> list[str]:
    """Columns and their fields, parents first, as `id name type`."""
    return [f"{item.id} {item.name} {item.type}" for column in columns for item in column.walk()]


def test_ddl(spark: SparkSession) -> None:
    ddl = """id BIGINT NOT NULL, region STRING, ts TIMESTAMP_NTZ, at TIMESTAMP, total DECIMAL(12,2),
        note STRING DEFAULT 'none' COMMENT 'it''s 😀', s STRUCT<a: INT COMMENT 'inner', b: ARRAY<STRING>>,
        m MAP<STRING, SMALLINT>, v VARIANT, t TIME, c CHAR(3), vc VARCHAR(4), `a.b` TINYINT, f FLOAT, d DOUBLE,
        bin BINARY, day DATE, ok BOOLEAN"""
    definition = new_table(spark, ddl)
    assert shape(definition.columns) == [
        "1 id int64", "2 region varchar", "3 ts timestamp", "4 at timestamptz", "5 total decimal(12,2)",
        "6 note varchar", "7 s struct", "8 a int32", "9 b list", "10 element varchar", "11 m map", "12 key varchar",
        "13 value int16", "14 v variant", "15 t time", "16 c varchar", "17 vc varchar", "18 a.b int8", "19 f float32",
        "20 d float64", "21 bin blob", "22 day date", "23 ok boolean",
    ]  # fmt: skip
    assert definition.comments == {6: "it's 😀", 8: "inner"}
    assert [column.name for column in definition.columns if not column.nulls_allowed] == ["id"]
    note = definition.columns[5]
    assert (note.initial_default, note.default_value, note.default_value_type) == ("none", "none", "literal")
    assert definition.columns[6].default_value_type == ""


def test_types_beyond_spark(spark: SparkSession) -> None:
    """Where a type may stand, and only there: not in names, comments or defaults."""
    ddl = """u UUID DEFAULT uuid() COMMENT 'é😀 uuid', uuid json, n UInt64, h INT128, i INTERVAL, ns TIMESTAMP_NS,
        tz TIMETZ, g GEOMETRY, l ARRAY<STRUCT<uuid: uuid, json: MAP<UINT8, ARRAY<TIMESTAMPTZ>>>>, v VARCHAR,
        b BLOB, f float32"""
    definition = new_table(spark, ddl)
    assert shape(definition.columns) == [
        "1 u uuid", "2 uuid json", "3 n uint64", "4 h int128", "5 i interval", "6 ns timestamp_ns", "7 tz timetz",
        "8 g geometry", "9 l list", "10 element struct", "11 uuid uuid", "12 json map", "13 key uint8",
        "14 value list", "15 element timestamptz", "16 v varchar", "17 b blob", "18 f float32",
    ]  # fmt: skip
    assert definition.comments == {1: "é😀 uuid"}
    assert definition.columns[0].default_value == "uuid()"


def test_struct_types(spark: SparkSession) -> None:
    schema = T.StructType(
        [
            T.StructField("id", T.StringType(), False, {"ducklake.type": "UUID", "comment": "key"}),
            T.StructField("l", T.ArrayType(T.StringType()), True, {"ducklake.type": "ARRAY<JSON>"}),
            T.StructField(
                "s", T.StructType([T.StructField("n", T.DecimalType(20, 0), False, {"ducklake.type": "uint64"})])
            ),
            T.StructField("x", T.IntegerType(), True, {"CURRENT_DEFAULT": "40 + 2"}),
            T.StructField("g", T.GeometryType(0)),
        ]
    )
    definition = new_table(spark, schema)
    assert shape(definition.columns) == [
        "1 id uuid", "2 l list", "3 element json", "4 s struct", "5 n uint64", "6 x int32", "7 g geometry",
    ]  # fmt: skip
    assert definition.comments == {1: "key"}
    assert [item.nulls_allowed for column in definition.columns for item in column.walk()] == [False] + [True] * 6
    assert definition.columns[3].default_value == "42"


def test_arrow_schemas(spark: SparkSession) -> None:
    kinds = {
        "boolean": [pa.bool_(), pa.bool8()],
        "int8": [pa.int8()], "int16": [pa.int16()], "int32": [pa.int32()], "int64": [pa.int64()],
        "uint8": [pa.uint8()], "uint16": [pa.uint16()], "uint32": [pa.uint32()], "uint64": [pa.uint64()],
        "float32": [pa.float32()], "float64": [pa.float64()],
        "decimal(38,3)": [pa.decimal128(38, 3), pa.decimal256(38, 3)],
        "varchar": [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
        "blob": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16)],
        "uuid": [pa.uuid()], "json": [pa.json_()], "date": [pa.date32(), pa.date64()],
        "time": [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        "timestamp_s": [pa.timestamp("s")], "timestamp_ms": [pa.timestamp("ms")],
        "timestamp": [pa.timestamp("us")], "timestamp_ns": [pa.timestamp("ns")],
        "timestamptz": [pa.timestamp(unit, "Europe/Berlin") for unit in ("s", "ms", "us", "ns")],
        "interval": [pa.month_day_nano_interval()],
    }  # fmt: skip
    expected = [(name, kind) for name, variants in kinds.items() for kind in variants]
    columns = new_table(spark, pa.schema([(f"c{n}", kind) for n, (_, kind) in enumerate(expected)])).columns
    assert [str(column.type) for column in columns] == [name for name, _ in expected]


def test_nested_arrow_types(spark: SparkSession) -> None:
    item = pa.struct([pa.field("x", pa.list_view(pa.uuid())), pa.field("y", pa.list_(pa.int8(), 3))])
    schema = pa.schema(
        [
            pa.field("l", pa.large_list(pa.dictionary(pa.int8(), pa.string())), nullable=False),
            pa.field("m", pa.map_(pa.string(), item), metadata={"comment": "a map"}),
        ]
    )
    definition = new_table(spark, schema)
    assert shape(definition.columns) == [
        "1 l list", "2 element varchar", "3 m map", "4 key varchar", "5 value struct", "6 x list", "7 element uuid",
        "8 y list", "9 element int8",
    ]  # fmt: skip
    assert definition.comments == {3: "a map"}
    assert not definition.columns[0].nulls_allowed


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("y INTERVAL YEAR", "column y has the Spark type interval year"),
        ("n VOID", "column n"),
        ("c STRING COLLATE UTF8_LCASE", "column c"),
        ("s STRUCT<a: STRUCT<>>", r"column s\.a"),
        ("g GEOMETRY(4326)", "column g"),
        ("x INT PRIMARY KEY", "constraint"),
        ("x INT, PRIMARY KEY (x)", "constraint"),
        ("x INT GENERATED ALWAYS AS (1)", "column x is generated"),
        ("a ARRAY<INT> DEFAULT array(1)", "no defaults for nested types"),
        (T.StructType([T.StructField("i", T.CalendarIntervalType())]), "column i"),
        (T.StructType([T.StructField("m", T.MapType(T.StringType(), T.DayTimeIntervalType()))]), r"column m\.value"),
        (pa.schema([("x", pa.list_(pa.null()))]), r"column x\.element has the Arrow type null"),
        (pa.schema([("x", pa.decimal256(39, 0))]), "column x"),
        (pa.schema([("x", pa.float16())]), "column x"),
        (pa.schema([("x", pa.duration("s"))]), "column x"),
    ],
)
def test_types_that_ducklake_lacks(spark: SparkSession, schema: SchemaLike, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        new_table(spark, schema)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("", "is not a list of columns"),
        ("a", "is not a list of columns"),
        ("x foo", "FOO"),
        ("SELECT true AS a", "it is a query"),
        ("SELECT 1 AS a", "is not a list of columns"),
        ("FROM x SELECT a", "is not a list of columns"),
        ("x INT) TBLPROPERTIES ('a' = 'b'", "it goes on at"),
        ("a INT, A INT", "two columns named 'A'"),
        ("s STRUCT<a: INT, A: INT>", "struct 's' has two"),
        ("`` INT", "at least one character"),
        ("Row_ID INT", "reserved"),
        ("s STRUCT<a: INT NOT NULL>", r"s\.a cannot be NOT NULL"),
        ("d DECIMAL(39,0)", "38"),
        (T.StructType(), "at least one column"),
        (pa.schema([]), "at least one column"),
        (T.StructType([T.StructField("u", T.StringType(), True, {"ducklake.type": "INT, b INT"})]), "not a type"),
    ],
)
def test_bad_definitions(spark: SparkSession, schema: SchemaLike, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        new_table(spark, schema)


def test_columns_to_add(spark: SparkSession) -> None:
    added = new_column(spark, "note STRING DEFAULT 'none' COMMENT 'c'")
    assert (added.parent, added.column.name, added.column.initial_default, added.comment) == ((), "note", "none", "c")
    added = new_column(spark, "`l.x`.element.`a.b` STRUCT<u: UUID>")
    assert (added.parent, shape([added.column])) == (("l.x", "element"), ["1 a.b struct", "2 u uuid"])
    assert new_column(spark, "ok BOOLEAN NOT NULL DEFAULT true").column.initial_default == "true"
    with pytest.raises(InvalidError, match="one at a time"):
        new_column(spark, "a INT, b INT")
    with pytest.raises(InvalidError, match="not constant"):
        new_column(spark, "at TIMESTAMP DEFAULT now()")


def test_types(spark: SparkSession) -> None:
    expected = ["1 type list", "2 element int64"]
    for kind in ("ARRAY<BIGINT>", T.ArrayType(T.LongType()), pa.list_(pa.int64())):
        assert shape([type_of(spark, kind)]) == expected
    assert shape([type_of(spark, "uint16")]) == ["1 type uint16"]
