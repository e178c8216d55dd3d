"""Table definitions from users' schemas: Spark's DDL text, a Spark `StructType`, or a PyArrow schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as arrow
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.ducklake.model.column_defaults import NO_DEFAULT, with_default
from penstock.ducklake.model.schema_evolution import check_names, parse_path
from penstock.ducklake.writing.insert_defaults import default_of
from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column
from penstock.schema.types import Type, parse_type

DUCKLAKE_TYPE = "ducklake.type"
COMMENT = "comment"
DEFAULT = "CURRENT_DEFAULT"  # Spark's own key

_SPARK_TYPES: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "int8",
    T.ShortType: "int16",
    T.IntegerType: "int32",
    T.LongType: "int64",
    T.FloatType: "float32",
    T.DoubleType: "float64",
    T.CharType: "varchar",
    T.VarcharType: "varchar",
    T.BinaryType: "blob",
    T.DateType: "date",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
    T.TimeType: "time",
    T.VariantType: "variant",
}
# DuckLake's names of types that Spark's parser does not know, or not without more.
_BEYOND_SPARK = (
    "int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128", "float32", "float64",
    "timetz", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns", "interval", "varchar", "blob", "json",
    "uuid", "geometry",
)  # fmt: skip
# Spark's parser sees them as VARCHARs of lengths that nobody writes.
_PLACEHOLDER = 2_147_000_000
_ARROW_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint8(): "uint8",
    pa.uint16(): "uint16",
    pa.uint32(): "uint32",
    pa.uint64(): "uint64",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.string(): "varchar",
    pa.large_string(): "varchar",
    pa.string_view(): "varchar",
    pa.binary(): "blob",
    pa.large_binary(): "blob",
    pa.binary_view(): "blob",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.time32("s"): "time",
    pa.time32("ms"): "time",
    pa.time64("us"): "time",
    pa.time64("ns"): "time",
    pa.timestamp("s"): "timestamp_s",
    pa.timestamp("ms"): "timestamp_ms",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("ns"): "timestamp_ns",
    pa.month_day_nano_interval(): "interval",
}
_ARROW_EXTENSIONS = {
    "arrow.uuid": "uuid", "arrow.json": "json", "arrow.bool8": "boolean", "geoarrow.wkb": "geometry",
}  # fmt: skip
_MAX_DIGITS = 38
_END_OF_TEXT = -1  # ANTLR's type of the last token
_LEADING_PATH = re.compile(r'\s*((?:(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+)\s*\.\s*)*)', re.UNICODE)

SchemaLike: TypeAlias = "str | T.StructType | pa.Schema"


@dataclass(frozen=True)
class TableDefinition:
    """New columns, with ids counted from 1 through nested fields, and comments by column id."""

    columns: tuple[Column, ...]
    comments: Mapping[int, str]


@dataclass(frozen=True)
class NewColumn:
    """A column to add: the path of the struct that it becomes a field of, () for the table."""

    parent: tuple[str, ...]
    column: Column
    comment: str | None


def columns_of(spark: SparkSession, schema: SchemaLike, *, inlining: bool = True) -> tuple[Column, ...]:
    """The columns that `table_definition` gives."""
    return table_definition(spark, schema, inlining=inlining).columns


def table_definition(spark: SparkSession, schema: SchemaLike, *, inlining: bool = True) -> TableDefinition:
    """The columns of a new table. `begin_snapshot` is 0 until the table is committed.

    - DDL text is Spark's: `id BIGINT NOT NULL, note STRING DEFAULT 'none' COMMENT 'x', s STRUCT<a: INT>`. Where Spark
      has no type, at any depth, stands DuckLake's name of it: `UUID`, `JSON`, `UINT8` to `UINT128`, `INT128`,
      `INTERVAL`, `TIMESTAMP_S`, `_MS` and `_NS`, `TIMETZ`, `GEOMETRY`. As in Spark, `TIMESTAMP` is an instant
      (DuckLake's timestamptz) and `TIMESTAMP_NTZ` is DuckLake's timestamp.
    - A field of a `StructType` may say its type in that language in its metadata: `{"ducklake.type": "ARRAY<UUID>"}`;
      `comment` and Spark's own `CURRENT_DEFAULT` are read there too.
    - NOT NULL holds for columns. DuckLake has none for the fields of structs: DDL text that asks for it is refused,
      other schemas' nested nullability is not kept.
    - `inlining` is False for a lake that keeps no rows in its catalog, where DuckLake reserves no names.
    """
    definition = _Definition(spark)
    if isinstance(schema, pa.Schema):
        columns = tuple(definition.arrow_column(item) for item in schema)
    else:
        fields = definition.parsed(schema) if isinstance(schema, str) else schema.fields
        columns = tuple(definition.spark_column(item) for item in fields)
    check_names(columns, inlining=inlining)
    return TableDefinition(columns, definition.comments)


def struct_of(schema: SchemaLike) -> T.StructType:
    """A schema as Spark's own: parsed from DDL, or converted from Arrow."""
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)
    if isinstance(schema, T.StructType):
        return schema
    try:
        parsed = T.StructType.fromDDL(schema)
    except PySparkException as error:
        raise InvalidError(f"{schema!r} is no list of columns: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, T.StructType):
        raise InvalidError(f"{schema!r} is a type, not a list of columns; write name and type: id BIGINT, city STRING")
    return parsed


def nullable(schema: T.StructType) -> T.StructType:
    """The schema with columns that all take NULL."""
    return T.StructType([T.StructField(item.name, item.dataType, True, item.metadata) for item in schema.fields])


def column_to_add(spark: SparkSession, text: str) -> NewColumn:
    """A column as `ADD COLUMN` has it: `note STRING DEFAULT 'none'`, or a field: `s.a INT`, `l.element.x UUID`."""
    match = _LEADING_PATH.match(text)
    dotted = match[1] if match else ""
    parent = parse_path(dotted.strip().removesuffix(".")) if dotted else ()
    definition = _Definition(spark, existing_rows=True)
    fields = definition.parsed(text.removeprefix(match[0]) if match else text)
    if len(fields) != 1:
        raise InvalidError(f"{text!r} defines {len(fields)} columns; add one at a time")
    column = definition.spark_column(fields[0])
    check_names((column,), inlining=False)
    return NewColumn(tuple(name.strip() for name in parent), column, definition.comments.get(column.id))


def type_of(spark: SparkSession, kind: str | T.DataType | pa.DataType) -> Column:
    """A type that a column is to have, as a column whose name and ids mean nothing."""
    definition = _Definition(spark)
    if isinstance(kind, pa.DataType):
        return definition.arrow_column(pa.field("type", kind))
    if isinstance(kind, str):
        return definition.spark_column(T.StructField("type", T.NullType(), True, {DUCKLAKE_TYPE: kind}))
    return definition.spark_column(T.StructField("type", kind))


@dataclass
class _Definition:
    """The columns made so far: their ids, counted parents first, and their comments."""

    spark: SparkSession
    existing_rows: bool = False
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    comments: dict[int, str] = field(default_factory=dict)

    def parsed(self, ddl: str) -> list[T.StructField]:
        return _parsed(self.spark, ddl).fields

    def spark_column(self, item: T.StructField) -> Column:
        column = self._spark_field(item.name, self._declared(item), item.name, item.metadata)
        column = replace(column, nulls_allowed=item.nullable)
        sql = item.metadata.get(DEFAULT)
        if sql is None:
            return column
        return with_default(column, default_of(self.spark, column, sql, existing_rows=self.existing_rows))

    def _declared(self, item: T.StructField) -> T.DataType:
        """The type that the metadata says, else the field's own."""
        if DUCKLAKE_TYPE not in item.metadata:
            return item.dataType
        fields = self.parsed(f"c {item.metadata[DUCKLAKE_TYPE]}")
        if len(fields) != 1 or fields[0].metadata or not fields[0].nullable:
            raise InvalidError(f"{item.metadata[DUCKLAKE_TYPE]!r} is not a type")
        return fields[0].dataType

    def _spark_field(self, name: str, kind: T.DataType, place: str, metadata: Mapping[str, Any]) -> Column:
        number = self._number(metadata.get(COMMENT))
        match kind:
            case T.ArrayType():
                children: tuple[Column, ...] = (self._spark_field("element", kind.elementType, f"{place}.element", {}),)
                return _column(number, name, Type("list"), children)
            case T.MapType():
                key = self._spark_field("key", kind.keyType, f"{place}.key", {})
                value = self._spark_field("value", kind.valueType, f"{place}.value", {})
                return _column(number, name, Type("map"), (key, value))
            case T.StructType() if kind.fields:
                children = tuple(
                    self._spark_field(item.name, self._declared(item), f"{place}.{item.name}", item.metadata)
                    for item in kind.fields
                )
                return _column(number, name, Type("struct"), children)
            case _:
                return _column(number, name, _spark_type(kind, place))

    def arrow_column(self, item: pa.Field) -> Column:
        return replace(self._arrow_field(item, item.name, item.type), nulls_allowed=item.nullable)

    def _arrow_field(self, item: pa.Field, place: str, kind: pa.DataType, name: str | None = None) -> Column:
        comment = (item.metadata or {}).get(COMMENT.encode())
        name = item.name if name is None else name
        if arrow.is_dictionary(kind) or arrow.is_run_end_encoded(kind):
            return self._arrow_field(item, place, kind.value_type, name)
        number = self._number(comment.decode() if comment else None)
        if _is_arrow_list(kind):
            child = self._arrow_field(kind.value_field, f"{place}.element", kind.value_type, "element")
            return _column(number, name, Type("list"), (child,))
        if arrow.is_map(kind):
            key = self._arrow_field(kind.key_field, f"{place}.key", kind.key_type, "key")
            value = self._arrow_field(kind.item_field, f"{place}.value", kind.item_type, "value")
            return _column(number, name, Type("map"), (key, value))
        if arrow.is_struct(kind) and kind.num_fields:
            children = tuple(self._arrow_field(child, f"{place}.{child.name}", child.type) for child in kind)
            return _column(number, name, Type("struct"), children)
        return _column(number, name, _arrow_type(kind, place))

    def _number(self, comment: str | None) -> int:
        number = next(self.ids)
        if comment is not None:
            self.comments[number] = comment
        return number


def _column(number: int, name: str, kind: Type, children: tuple[Column, ...] = ()) -> Column:
    return with_default(Column(number, name, kind, begin_snapshot=0, children=children), NO_DEFAULT)


def _spark_type(kind: T.DataType, place: str) -> Type:
    match kind:
        case T.VarcharType() if kind.length >= _PLACEHOLDER:
            return parse_type(_BEYOND_SPARK[kind.length - _PLACEHOLDER])
        case T.DecimalType():
            return Type("decimal", kind.precision, kind.scale)
        case T.StringType() if kind.isUTF8BinaryCollation():
            return Type("varchar")
        case T.GeometryType() if kind.srid == 0:
            return Type("geometry")
        case _ if type(kind) in _SPARK_TYPES:
            return Type(_SPARK_TYPES[type(kind)])
    raise UnsupportedError(f"column {place} has the Spark type {kind.simpleString()}, which DuckLake does not have")


def _arrow_type(kind: pa.DataType, place: str) -> Type:
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name in _ARROW_EXTENSIONS:
            return Type(_ARROW_EXTENSIONS[kind.extension_name])
    elif arrow.is_decimal(kind) and kind.precision <= _MAX_DIGITS and 0 <= kind.scale <= kind.precision:
        return Type("decimal", kind.precision, kind.scale)
    elif arrow.is_timestamp(kind) and kind.tz is not None:
        return Type("timestamptz")
    elif arrow.is_fixed_size_binary(kind):
        return Type("blob")
    elif kind in _ARROW_TYPES:
        return Type(_ARROW_TYPES[kind])
    raise UnsupportedError(f"column {place} has the Arrow type {kind}, which DuckLake does not have")


def _is_arrow_list(kind: pa.DataType) -> bool:
    return bool(
        arrow.is_list(kind)
        or arrow.is_large_list(kind)
        or arrow.is_fixed_size_list(kind)
        or arrow.is_list_view(kind)
        or arrow.is_large_list_view(kind)
    )


def _parsed(spark: SparkSession, ddl: str) -> T.StructType:
    """A list of columns, parsed by Spark; types beyond Spark's have become placeholders."""
    session: Any = spark._jsparkSession
    statement = f"CREATE TABLE t ({_with_placeholders(spark, ddl)})"
    try:
        plan = session.sessionState().sqlParser().parsePlan(statement)
        schema = T.StructType.fromJson(json.loads(plan.tableSchema().json()))
    except (PySparkException, Py4JError) as error:
        raise InvalidError(f"{ddl!r} is not a list of columns: {_reason(error)}") from error
    if plan.tableSpec().constraints().nonEmpty():
        raise UnsupportedError(f"{ddl!r} has a constraint; of those, DuckLake has NOT NULL only")
    for item in schema.fields:
        if set(item.metadata) - {COMMENT, DEFAULT, "EXISTS_DEFAULT"}:
            raise UnsupportedError(f"column {item.name} is generated; DuckLake has no such columns")
        _refuse_nested_not_null(item.dataType, item.name)
    return schema


def _with_placeholders(spark: SparkSession, ddl: str) -> str:
    """The text with types beyond Spark's replaced, found where Spark's grammar says that a type stands."""
    jvm: Any = spark._jvm
    parsing = jvm.org.apache.spark.sql.catalyst.parser
    lexer = parsing.SqlBaseLexer(parsing.UpperCaseCharStream(jvm.org.antlr.v4.runtime.CharStreams.fromString(ddl)))
    parser = parsing.SqlBaseParser(jvm.org.antlr.v4.runtime.CommonTokenStream(lexer))
    # What is wrong with the text, Spark says later, and better.
    lexer.removeErrorListeners()
    parser.removeErrorListeners()
    tree = parser.colDefinitionList()
    if parser.getNumberOfSyntaxErrors() == 0 and parser.getCurrentToken().getType() != _END_OF_TEXT:
        raise InvalidError(f"{ddl!r} is not a list of columns: it goes on at {parser.getCurrentToken().getText()!r}")
    text = ddl
    find = jvm.org.antlr.v4.runtime.tree.xpath.XPath.findAll
    columns = find(tree, "/colDefinitionList/colDefinition/dataType", parser)
    inner = find(tree, "/colDefinitionList/colDefinition/dataType//dataType", parser)
    types = {node.getStart().getStartIndex(): node for node in (*columns, *inner)}
    for start, node in sorted(types.items(), reverse=True):
        name = node.getText().lower()
        if name in _BEYOND_SPARK:
            text = f"{text[:start]}VARCHAR({_PLACEHOLDER + _BEYOND_SPARK.index(name)}){text[start + len(name) :]}"
    return text


def _refuse_nested_not_null(kind: T.DataType, place: str) -> None:
    match kind:
        case T.ArrayType():
            _refuse_nested_not_null(kind.elementType, f"{place}.element")
        case T.MapType():
            _refuse_nested_not_null(kind.keyType, f"{place}.key")
            _refuse_nested_not_null(kind.valueType, f"{place}.value")
        case T.StructType():
            for item in kind.fields:
                if not item.nullable:
                    raise InvalidError(
                        f"{place}.{item.name} cannot be NOT NULL: DuckLake has NOT NULL for whole columns only"
                    )
                _refuse_nested_not_null(item.dataType, f"{place}.{item.name}")


def _reason(error: Exception) -> str:
    """The line of Spark's message that says what is wrong."""
    found = re.search(r"\[[A-Z][A-Z_.]*\] .*", str(error))
    return found[0] if found else str(error)
