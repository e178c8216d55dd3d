"""Values of every DuckLake type, at their edges, as DuckDB SQL."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True)
class Sample:
    """A column: its DuckLake type as the name, its DuckDB type, and literals that DuckDB casts to it."""

    name: str
    sql_type: str
    literals: tuple[str, ...]

    @property
    def column(self) -> str:
        return f"c_{self.name}"

    @property
    def constants(self) -> tuple[str, ...]:
        """The literals as DEFAULT takes them: constants only, so booleans and intervals as text, and no functions."""
        plain = (f"'{x}'" if x in ("true", "false") else x.removeprefix("INTERVAL ") for x in self.literals)
        return tuple(x for x in plain if not x.startswith("repeat"))


NOT_FINITE = ("'nan'", "'inf'", "'-inf'")
LARGEST_FLOAT = "3.4028235e38"

PRIMITIVES = (
    Sample("boolean", "BOOLEAN", ("true", "false")),
    Sample("int8", "TINYINT", ("-128", "0", "127")),
    Sample("int16", "SMALLINT", ("-32768", "0", "32767")),
    Sample("int32", "INTEGER", ("-2147483648", "0", "2147483647")),
    Sample("int64", "BIGINT", ("-9223372036854775808", "0", "9223372036854775807")),
    Sample("uint8", "UTINYINT", ("0", "128", "255")),
    Sample("uint16", "USMALLINT", ("0", "32768", "65535")),
    Sample("uint32", "UINTEGER", ("0", "2147483648", "4294967295")),
    Sample("uint64", "UBIGINT", ("0", "9223372036854775808", "18446744073709551615")),
    Sample("int128", "HUGEINT", ("-100000000000000000000000000000000000001", "0", "12345678901234567890123")),
    Sample("uint128", "UHUGEINT", ("0", "1", "200000000000000000000000000000000000001")),
    Sample("float32", "FLOAT", (*NOT_FINITE, "'-0.0'", "0.0", "0.1", LARGEST_FLOAT, "1.1754944e-38")),
    Sample("float64", "DOUBLE", (*NOT_FINITE, "'-0.0'", "0.0", "0.1", "1.7976931348623157e308", "5e-324")),
    Sample("decimal4", "DECIMAL(4,1)", ("-999.9", "0", "999.9")),
    Sample("decimal9", "DECIMAL(9,2)", ("-9999999.99", "0", "9999999.99")),
    Sample("decimal18", "DECIMAL(18,4)", ("-99999999999999.9999", "0.0001", "99999999999999.9999")),
    Sample("decimal38", "DECIMAL(38,10)", (f"-{'9' * 28}.{'9' * 10}", "0.0000000001", f"{'9' * 28}.{'9' * 10}")),
    Sample("decimal38_0", "DECIMAL(38,0)", (f"-{'9' * 38}", "0", "9" * 38)),
    Sample("varchar", "VARCHAR", ("''", "'NULL'", "'it''s \"quoted\" \\ % $'", "'héé 😀'", "repeat('x', 300)",
                                  "'a\nb'")),
    Sample("blob", "BLOB", ("''", r"'\x00\xFF\x00'", r"'ab\x22\x27\x5C'")),
    Sample("json", "JSON", ("'{\"a\": [1, null]}'", "'null'", "'\"s\"'", "'[]'")),
    Sample("uuid", "UUID", ("'00000000-0000-0000-0000-000000000000'", "'ABCDEF00-1234-5678-9abc-ffffffffffff'",
                            "'ffffffff-ffff-ffff-ffff-ffffffffffff'")),
    Sample("date", "DATE", ("'0001-01-01'", "'1582-10-10'", "'1969-12-31'", "'1970-01-01'", "'9999-12-31'")),
    Sample("time", "TIME", ("'00:00:00'", "'12:34:56.789012'", "'23:59:59.999999'")),
    Sample("timetz", "TIMETZ", ("'00:00:00+00'", "'12:34:56.789012+05:30'", "'23:59:59.999999-08'")),
    Sample("timestamp", "TIMESTAMP", ("'0001-01-01 00:00:00'", "'1582-10-10 01:02:03'", "'1969-12-31 23:59:59.999999'",
                                      "'2024-02-29 12:00:00.000001'", "'9999-12-31 23:59:59.999999'")),
    Sample("timestamp_s", "TIMESTAMP_S", ("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59'", "'9999-12-31 23:59:59'")),
    Sample("timestamp_ms", "TIMESTAMP_MS", ("'0001-01-01 00:00:00.001'", "'1969-12-31 23:59:59.999'",
                                            "'9999-12-31 23:59:59.999'")),
    Sample("timestamp_ns", "TIMESTAMP_NS", ("'1700-01-01 00:00:00'", "'1969-12-31 23:59:59.999999999'",
                                            "'2024-01-01 00:00:00.123456789'", "'2262-04-11 23:47:16.854775'")),
    Sample("timestamptz", "TIMESTAMPTZ", ("'0001-01-02 00:00:00+00'", "'1900-01-01 00:00:00+05:53'",
                                          "'1969-12-31 23:59:59.999999+00'", "'9999-12-30 23:59:59.999999+00'")),
    Sample("interval", "INTERVAL", ("INTERVAL '1 year 2 months 3 days 4 hours 5.678 seconds'", "INTERVAL '0 days'",
                                    "INTERVAL '40 days 100 hours'")),
)  # fmt: skip

NESTED = (
    Sample("list", "INTEGER[]", ("[1, NULL, 3]", "[]", "[NULL]")),
    Sample("struct", "STRUCT(a INTEGER, b VARCHAR)", ("{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}")),
    Sample("map", "MAP(VARCHAR, DOUBLE)", ("MAP {'k': 1.5, 'l': NULL}", "MAP {}")),
    Sample("lists", "VARCHAR[][]", ("[['a'], [], NULL, ['b', NULL]]", "[]")),
    Sample("records", "STRUCT(id INTEGER, tags MAP(VARCHAR, STRUCT(x DATE, y DECIMAL(10,2)[])))[]",
           ("[{'id': 1, 'tags': MAP {'t': {'x': DATE '1969-12-31', 'y': [1.25, NULL]}, 'u': NULL}}, NULL]",
            "[{'id': 2, 'tags': MAP {}}, {'id': NULL, 'tags': NULL}]")),
    Sample("deep", "STRUCT(a STRUCT(b STRUCT(c STRUCT(d INTEGER[][][]))))",
           ("{'a': {'b': {'c': {'d': [[[1], []], NULL]}}}}", "{'a': {'b': NULL}}", "{'a': NULL}")),
    Sample("exotic", "STRUCT(u UUID, b BLOB, t TIME, z TIMESTAMPTZ, n UBIGINT, s TIMESTAMP_NS, f FLOAT, h HUGEINT)[]",
           ("[{'u': '00000000-0000-0000-0000-00000000000a', 'b': '\\x00\\x01', 't': '01:02:03.000004',"
            " 'z': '2024-01-01 00:00:00+02', 'n': 18446744073709551615, 's': '2024-01-01 00:00:00.123456789',"
            " 'f': 'nan', 'h': 1}]", "[NULL]")),
    Sample("by_id", "MAP(INTEGER, UUID)", ("MAP {1: '00000000-0000-0000-0000-00000000000b'}",)),
)  # fmt: skip


def create_table(name: str, samples: tuple[Sample, ...]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{s.column} {s.sql_type}' for s in samples)})"


def insert_rows(name: str, samples: tuple[Sample, ...]) -> str:
    """All literals of all samples, side by side, and one row of nothing but NULL."""
    rows = [*zip_longest(*(s.literals for s in samples), fillvalue="NULL"), ("NULL",) * len(samples)]
    typed = (", ".join(f"CAST({v} AS {s.sql_type})" for v, s in zip(row, samples, strict=True)) for row in rows)
    return f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in typed)}"


def storable_in_mysql(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """The samples without what MySQL's columns refuse: NaN, infinities and the largest float."""
    refused = {*NOT_FINITE, LARGEST_FLOAT}
    return tuple(
        Sample(s.name, s.sql_type, tuple(x.replace("'nan'", "1.5") for x in s.literals if x not in refused))
        for s in samples
    )
