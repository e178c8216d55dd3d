"""The types of a bound plan, and the Spark types that hold their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.spark.expressions import spark_quoted
from penstock.storage.duckdb_sql import duckdb_quoted

Node = dict[str, Any]


class UntranslatableError(Exception):
    """A construct that has no equal in Spark: raised inside the package, which names the query in an error of ours."""


@dataclass(frozen=True)
class BoundType:
    """A type by DuckDB's name of it; children have names in structs only."""

    id: str
    width: int = 0
    scale: int = 0
    children: tuple[tuple[str, BoundType], ...] = ()
    collation: str = ""
    alias: str = ""  # such as JSON, which is a VARCHAR

    @property
    def element(self) -> BoundType:
        """The type of a list's elements."""
        return self.children[0][1]

    @property
    def family(self) -> str:
        """What the tables of functions call types that behave alike."""
        return _FAMILIES.get(self.id, self.id.lower())

    @property
    def spark(self) -> str:
        """Spark's type, as its SQL writes it."""
        match self.id:
            case "DECIMAL":
                return f"DECIMAL({self.width},{self.scale})"
            case "LIST":
                return f"ARRAY<{self.element.spark}>"
            case "STRUCT":
                if any(not name for name, _ in self.children):
                    raise UntranslatableError("a struct whose fields have no names")
                return f"STRUCT<{', '.join(f'{spark_quoted(name)}: {kind.spark}' for name, kind in self.children)}>"
            case "MAP":
                return f"MAP<{self.children[0][1].spark}, {self.children[1][1].spark}>"
        if self.id not in _SPARK:
            raise UntranslatableError(f"the type {self.id}")
        return _SPARK[self.id]

    @property
    def duckdb(self) -> str:
        """DuckDB's type, as its SQL writes it."""
        match self.id:
            case "DECIMAL":
                return f"DECIMAL({self.width},{self.scale})"
            case "LIST":
                return f"{self.element.duckdb}[]"
            case "STRUCT":
                return f"STRUCT({', '.join(f'{duckdb_quoted(name)} {kind.duckdb}' for name, kind in self.children)})"
            case "MAP":
                return f"MAP({self.children[0][1].duckdb}, {self.children[1][1].duckdb})"
        return self.id


_SPARK = {
    "NULL": "INT",  # DuckDB shows a NULL of no type as an INTEGER
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "BLOB": "BINARY",
    "UUID": "STRING",
    "DATE": "DATE",
    "TIME": "TIME(6)",
    "TIME WITH TIME ZONE": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMP_NS": "TIMESTAMP_NTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "INTERVAL": "STRUCT<months: INT, days: INT, microseconds: BIGINT>",
    "VARIANT": "VARIANT",
    "GEOMETRY": "GEOMETRY(0)",
}
_FAMILIES = {
    "NULL": "null",
    "BOOLEAN": "bool",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "int"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "unsigned"),
    "HUGEINT": "huge",
    "VARCHAR": "text",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIME WITH TIME ZONE": "timetz",
}
# The largest and smallest values of the integers that Spark holds in wider types.
RANGES = {
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 10**38 - 1),
}
# What can be compared by order, and hashed, as DuckDB does it.
ORDERED = (
    "bool", "int", "unsigned", "huge", "float", "double", "decimal", "text", "blob", "uuid", "date", "time",
    "timestamp", "timestamp_s", "timestamp_ms", "timestamptz", "null",
)  # fmt: skip


def bound_type(node: Node) -> BoundType:
    """Read a type of a plan."""
    about = node.get("type_info") or {}
    name = node["id"]
    children: tuple[tuple[str, BoundType], ...] = ()
    if name == "STRUCT":
        children = tuple((field["first"], bound_type(field["second"])) for field in about.get("child_types", ()))
    elif name == "LIST":
        children = (("", bound_type(about["child_type"])),)
    elif name == "MAP":
        children = tuple(("", bound_type(e["second"])) for e in about["child_type"]["type_info"]["child_types"])
    words = about.get("collation", ""), about.get("alias", "")
    return BoundType(name, about.get("width", 0), about.get("scale", 0), children, *words)


def check_ordered(kind: BoundType) -> None:
    """Refuse to compare by order what Spark orders otherwise."""
    if kind.family not in ORDERED or kind.collation:
        raise UntranslatableError(f"an order of values of the type {kind.duckdb} {kind.collation}".rstrip())


def check_equal(kind: BoundType) -> None:
    """Refuse to compare for equality what Spark cannot, or does otherwise."""
    if kind.id in ("LIST", "STRUCT"):
        for _, child in kind.children:
            check_equal(child)
        return
    check_ordered(kind)
