"""Reads columns from users' schemas: Spark's DDL text, a Spark `StructType`, or a PyArrow schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, count
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as arrow
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.errors import InvalidError, UnsupportedError
from penstock.schema.columns import Column, check_names
from penstock.schema.types import Type, parse_type
from penstock.spark.connect import column_lists
from penstock.spark.connect.sessions import is_connect
from penstock.spark.java_classes import java_class
from penstock.spark.java_errors import Py4JError

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
_PLAIN = re.compile(r"[\w\s,()<>:]+")  # neither quotes nor comments
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

SchemaLike: TypeAlias = "str | T.StructType | pa.Schema"
DefaultSetter: TypeAlias = Callable[[Column, str | None], Column]


def columns_of(spark: SparkSession, schema: SchemaLike) -> tuple[Column, ...]:
    """The columns of a schema, with ids counted from 1 through nested fields; defaults are left out."""
    columns = ColumnBuilder(spark).columns(schema)
    check_names(columns)
    return columns


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
    """The schema with every column nullable."""
    return T.StructType([T.StructField(item.name, item.dataType, True, item.metadata) for item in schema.fields])


@dataclass
class ColumnBuilder:
    """Makes columns of a schema's fields: with ids counted from 1, parents first, and comments by id."""

    spark: SparkSession
    with_default: DefaultSetter | None = None  # what becomes of the DEFAULT that a field has; without it, nothing
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    comments: dict[int, str] = field(default_factory=dict)

    def columns(self, schema: SchemaLike) -> tuple[Column, ...]:
        """The columns of a whole schema."""
        if isinstance(schema, pa.Schema):
            return tuple(self.arrow_column(item) for item in schema)
        fields = self.parsed(schema) if isinstance(schema, str) else schema.fields
        return tuple(self.spark_column(item) for item in fields)

    def parsed(self, ddl: str) -> list[T.StructField]:
        """The fields of a list of columns in Spark's DDL."""
        return _parsed(self.spark, ddl).fields

    def spark_column(self, item: T.StructField) -> Column:
        """The column of a Spark field."""
        column = self._spark_field(item.name, self._declared(item), item.name, item.metadata)
        column = replace(column, nulls_allowed=item.nullable)
        sql = item.metadata.get(DEFAULT)
        return column if self.with_default is None else self.with_default(column, sql)

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
        """The column of a PyArrow field."""
        column = replace(self._arrow_field(item, item.name, item.type), nulls_allowed=item.nullable)
        return column if self.with_default is None else self.with_default(column, None)

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
    return Column(number, name, kind, begin_snapshot=0, children=children)


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
    if is_connect(spark):
        return _parsed_by_parts(ddl, partial(column_lists.parse_types, spark))
    session: Any = spark._jsparkSession
    statement = f"CREATE TABLE t ({_with_placeholders(spark, ddl)})"
    try:
        plan = session.sessionState().sqlParser().parsePlan(statement)
        if plan.getClass().getSimpleName() != "CreateTable":
            raise InvalidError(f"{ddl!r} is not a list of columns: it is a query")
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


def _parsed_by_parts(ddl: str, parse: Callable[[str], T.DataType]) -> T.StructType:
    """The same by what parses names and types alone, as a Spark Connect server does."""
    given = column_lists.read_columns(ddl, _placeholder)
    try:
        schema = parse(", ".join(column.ddl for column in given))
    except PySparkException as error:
        raise InvalidError(f"{ddl!r} is not a list of columns: {_reason(error)}") from error
    if not isinstance(schema, T.StructType) or len(schema) != len(given):
        raise InvalidError(f"{ddl!r} is not a list of columns; write name and type: id BIGINT, city STRING")
    fields = []
    for item, column in zip(schema.fields, given, strict=True):
        _refuse_nested_not_null(item.dataType, item.name)
        default = {} if column.default is None else {DEFAULT: column.default}
        fields.append(T.StructField(item.name, item.dataType, item.nullable, {**item.metadata, **default}))
    return T.StructType(fields)


def _placeholder(name: str) -> str | None:
    return f"VARCHAR({_PLACEHOLDER + _BEYOND_SPARK.index(name)})" if name in _BEYOND_SPARK else None


def _with_placeholders(spark: SparkSession, ddl: str) -> str:
    """The text with types beyond Spark's replaced, found where Spark's grammar says that a type stands."""
    if _is_plain(ddl):
        return ddl
    spark_parser, antlr = "org.apache.spark.sql.catalyst.parser", "org.antlr.v4.runtime"
    characters = java_class(spark, f"{antlr}.CharStreams").fromString(ddl)
    lexer = java_class(spark, f"{spark_parser}.SqlBaseLexer")(
        java_class(spark, f"{spark_parser}.UpperCaseCharStream")(characters)
    )
    parser = java_class(spark, f"{spark_parser}.SqlBaseParser")(java_class(spark, f"{antlr}.CommonTokenStream")(lexer))
    # What is wrong with the text, Spark says later, and better.
    lexer.removeErrorListeners()
    parser.removeErrorListeners()
    tree = parser.colDefinitionList()
    if parser.getNumberOfSyntaxErrors() == 0 and parser.getCurrentToken().getType() != _END_OF_TEXT:
        raise InvalidError(f"{ddl!r} is not a list of columns: it goes on at {parser.getCurrentToken().getText()!r}")
    text = ddl
    find = java_class(spark, f"{antlr}.tree.xpath.XPath").findAll
    columns = find(tree, "/colDefinitionList/colDefinition/dataType", parser)
    inner = find(tree, "/colDefinitionList/colDefinition/dataType//dataType", parser)
    types = {node.getStart().getStartIndex(): node for node in (*columns, *inner)}
    for start, node in sorted(types.items(), reverse=True):
        name = node.getText().lower()
        placeholder = _placeholder(name)
        if placeholder is not None:
            text = text[:start] + placeholder + text[start + len(name) :]
    return text


def _is_plain(ddl: str) -> bool:
    """Whether a glance tells that all types are Spark's and that the list ends where the text does: most are so."""
    if not _PLAIN.fullmatch(ddl) or not set(_BEYOND_SPARK).isdisjoint(re.findall(r"\w+", ddl.lower())):
        return False
    depths = list(accumulate({"(": 1, ")": -1}.get(character, 0) for character in ddl))
    return min(depths) >= 0 and depths[-1] == 0


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
