"""Maps the columns of a table to the names, ids and types that they have in files, and checks new schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from penstock.delta.format.actions import Metadata
from penstock.errors import InvalidError, NotFoundError, UnsupportedError
from penstock.schema.columns import Column
from penstock.spark.schemas import SchemaLike, columns_of, struct_of
from penstock.spark.types import FIELD_ID

_PHYSICAL_NAME, _MAPPING_ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
BOUNDED_TEXT = "__CHAR_VARCHAR_TYPE_STRING"  # Spark's key for the declared type of a column that is stored as a string
_PRIMITIVE = (
    *(T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType, T.BinaryType),
)
_NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)


@dataclass(frozen=True)
class TableSchema:
    """The columns as users see them, and as files hold them. `mapping` is Delta's mode: none, name or id."""

    struct: T.StructType
    partition_columns: tuple[str, ...]
    mapping: str = "none"

    @classmethod
    def of(cls, metadata: Metadata) -> TableSchema:
        """Reads the schema of a table from its metadata in the log."""
        mode = metadata.configuration.get("delta.columnMapping.mode", "none")
        struct = T.StructType.fromJson(json.loads(metadata.schema_string))
        return cls(struct, tuple(metadata.partition_columns), mode)

    @cached_property
    def data_fields(self) -> list[T.StructField]:
        """The columns that the table is not partitioned by."""
        return [field for field in self.struct.fields if field.name not in self.partition_columns]

    @cached_property
    def partition_fields(self) -> list[T.StructField]:
        """The columns that the table is partitioned by, in the order of the partitioning."""
        return [self.struct[name] for name in self.partition_columns]

    @cached_property
    def partition_types(self) -> dict[str, str]:
        """The names of the partition columns' types in Delta's schemas, by the columns' names in files."""
        return {self.physical_name(field): type_name(field) for field in self.partition_fields}

    def physical_name(self, field: T.StructField) -> str:
        """Returns the name of a column, or of a field of a struct, in files and in the log."""
        return str(field.metadata[_PHYSICAL_NAME]) if self.mapping != "none" else field.name

    def read_schema(self) -> T.StructType:
        """Returns what to ask of the files: the data columns, by the names or ids that they have there.

        NULL may be at every depth, whatever the table says: Spark does not look for it where it may not be, and would
        make values of the NULLs that other writers have let through.
        """
        return T.StructType([self._physical(field) for field in self.data_fields])

    def physical_struct(self) -> T.StructType:
        """Returns all columns in the table's order, under the names that they have in files."""
        return T.StructType(self._physical_fields(self.struct.fields))

    def written_columns(self, spark: SparkSession, *, materialized: bool) -> tuple[Column, ...]:
        """Returns the columns of a new file: the data columns, and last the partition columns where files hold them."""
        fields = [*self.data_fields, *(self.partition_fields if materialized else [])]
        found = columns_of(spark, T.StructType(self._physical_fields(fields)))
        return tuple(
            _with_ids(column, field) if self.mapping != "none" else column
            for column, field in zip(found, fields, strict=True)
        )

    def columns(self, spark: SparkSession) -> tuple[Column, ...]:
        """Returns all columns under the users' names, in the table's order."""
        return columns_of(spark, _plain(self.struct))

    def _physical_fields(self, fields: Sequence[T.StructField]) -> list[T.StructField]:
        """Returns top-level fields under their names in files, which take NULL or not as the table says."""
        return [
            T.StructField(self.physical_name(field), self._physical_type(field.dataType), field.nullable)
            for field in fields
        ]

    def _physical(self, field: T.StructField) -> T.StructField:
        metadata = {FIELD_ID: field.metadata[_MAPPING_ID]} if self.mapping == "id" else {}
        return T.StructField(self.physical_name(field), self._physical_type(field.dataType), True, metadata)

    def _physical_type(self, kind: T.DataType) -> T.DataType:
        match kind:
            case T.StructType():
                return T.StructType([self._physical(field) for field in kind.fields])
            case T.ArrayType():
                return T.ArrayType(self._physical_type(kind.elementType))
            case T.MapType():
                return T.MapType(self._physical_type(kind.keyType), self._physical_type(kind.valueType))
        return kind


def type_name(field: T.StructField) -> str:
    """Returns the name of a primitive type in Delta's schemas."""
    return str(field.dataType.jsonValue())


def with_nulls(kind: T.DataType) -> T.DataType:
    """Returns a type that takes NULL at every depth."""
    match kind:
        case T.StructType():
            return T.StructType([T.StructField(field.name, with_nulls(field.dataType)) for field in kind.fields])
        case T.ArrayType():
            return T.ArrayType(with_nulls(kind.elementType))
        case T.MapType():
            return T.MapType(with_nulls(kind.keyType), with_nulls(kind.valueType))
    return kind


def new_schema(schema: SchemaLike, partitioned_by: Sequence[str]) -> TableSchema:
    """Makes the schema of a new table; an error where Delta has no such column or partitioning."""
    struct = T.StructType([_stored(item) for item in struct_of(schema).fields])
    _check_names(struct)
    for number, name in enumerate(partitioned_by):
        if name not in struct.names:
            raise NotFoundError(f"the schema has no column {name!r} to partition by; it has {', '.join(struct.names)}")
        if name in partitioned_by[:number]:
            raise InvalidError(f"partitioned by {', '.join(partitioned_by)}: {name} is there twice; leave one out")
        if isinstance(struct[name].dataType, _NESTED):
            raise InvalidError(
                f"Delta does not partition by {struct[name].dataType.simpleString()}, which {name!r} is; choose another"
            )
    if len(partitioned_by) == len(struct):
        raise InvalidError("a Delta table needs a column that it is not partitioned by")
    return TableSchema(struct, tuple(partitioned_by))


def schema_string(struct: T.StructType) -> str:
    """Returns the `schemaString` of a table."""
    return json.dumps(struct.jsonValue(), separators=(",", ":"), ensure_ascii=False)


def _check_names(struct: T.StructType) -> None:
    """Refuses names that Parquet, and so Delta without column mapping, does not take."""
    folded = [name.lower() for name in struct.names]
    for name in struct.names:
        if not name or any(character in " ,;{}()\n\t=" for character in name):
            raise InvalidError(f"a Delta column cannot be called {name!r}: no blanks, and none of , ; {{ }} ( ) =")
        if folded.count(name.lower()) > 1:
            raise InvalidError(f"there are two columns called {name!r} (in any case); rename one")


def _with_ids(column: Column, field: T.StructField) -> Column:
    """Gives a column the ids of Delta's column mapping; the members of lists and maps have none there."""
    number = int(field.metadata[_MAPPING_ID])
    return replace(column, id=number, children=_children_with_ids(column, field.dataType))


def _children_with_ids(column: Column, kind: T.DataType) -> tuple[Column, ...]:
    match kind:
        case T.StructType():
            return tuple(_with_ids(child, field) for child, field in zip(column.children, kind.fields, strict=True))
        case T.ArrayType():
            [element] = column.children
            return (replace(element, children=_children_with_ids(element, kind.elementType)),)
        case T.MapType():
            key, value = column.children
            return (
                replace(key, children=_children_with_ids(key, kind.keyType)),
                replace(value, children=_children_with_ids(value, kind.valueType)),
            )
    return column.children


def _plain(struct: T.StructType) -> T.StructType:
    """Takes Delta's metadata out of a schema, which say nothing to Spark."""
    return T.StructType([T.StructField(field.name, field.dataType, field.nullable) for field in struct.fields])


def _stored(field: T.StructField) -> T.StructField:
    """Makes a string of a text of limited length: Delta has no such type, and Spark keeps the length in metadata."""
    kind = field.dataType
    if not isinstance(kind, T.CharType | T.VarcharType):
        return field
    return T.StructField(
        field.name, T.StringType(), field.nullable, {**field.metadata, BOUNDED_TEXT: kind.simpleString()}
    )


def check_column_types(spark: SparkSession, schema: TableSchema) -> None:
    """Raises an UnsupportedError for a type that Delta does not have, or that Penstock cannot write."""
    for field in schema.struct.fields:
        _check_type(field.dataType, field.name)
    columns_of(spark, _plain(schema.struct))


def _check_type(kind: T.DataType, path: str) -> None:
    match kind:
        case T.StructType():
            for field in kind.fields:
                _check_type(field.dataType, f"{path}.{field.name}")
        case T.ArrayType():
            _check_type(kind.elementType, f"{path}.element")
        case T.MapType():
            _check_type(kind.keyType, f"{path}.key")
            _check_type(kind.valueType, f"{path}.value")
        case T.VariantType():
            raise UnsupportedError(f"column {path!r} is a variant, which Penstock does not write to Delta")
        case T.CharType() | T.VarcharType():
            raise UnsupportedError(
                f"column {path!r} is a {kind.simpleString()} inside another type, which Penstock does not enforce; "
                "make it a STRING"
            )
        case _ if kind != T.StringType() and not isinstance(kind, _PRIMITIVE):
            raise UnsupportedError(
                f"column {path!r} is a {kind.simpleString()}, which Delta has no type for; make it a STRING"
            )
