"""Rows of values that hurt, in every way to partition them, and predicates over them, as Spark SQL."""

from __future__ import annotations

from hypothesis import strategies as st

COLUMNS = {
    "i": ["-5", "0", "7", "1000000", "-9223372036854775808"],
    "d": ["0.0", "-0.0", "1.5", "double('NaN')", "double('-Infinity')", "1e300"],
    "f": ["float(0.1)", "0.1", "float('NaN')", "2"],
    "s": ["''", "'a'", "'a/b = %'", "'é'", "'🦆'", "'zz'"],
    "day": ["DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '9999-12-31'", "TIMESTAMP_NTZ '2024-02-29 00:00:00'"],
    "ts": ["TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '2024-02-29 12:00:00'", "DATE '2024-03-01'"],
    "tz": ["TIMESTAMP '2024-02-29 23:30:00+00:00'", "TIMESTAMP '1960-01-01 00:00:00+02:00'", "DATE '2024-03-01'"],
    "n": ["1.25", "-99999999999999999999999999999999999.99", "0"],
    "u": ["'00000000-0000-0000-0000-00000000000a'", "'ffffffff-0000-0000-0000-000000000000'", "'x'"],
    "big": ["18446744073709551615", "0", "9223372036854775808"],
    "b": ["true", "false"],
    "st.x": ["0", "5", "-1"],
}
CASTS = (
    "CAST(ts AS DATE) = DATE '2024-02-29'", "CAST(tz AS DATE) < DATE '2000-01-01'", "CAST(i AS DOUBLE) >= 7.5",
    "CAST(i AS STRING) = '7'", "year(ts) = 2024",
)  # fmt: skip
ROWS = """
    SELECT i, d, f, s, day, ts, tz, n, u, big, i % 2 = 0 AS b,
           CASE WHEN i % 5 = 0 THEN NULL ELSE {'x': i % 7} END AS st
    FROM (SELECT [-5, 0, 7, 1000000, -9223372036854775808, NULL][1 + r % 6]::BIGINT AS i,
                 ['0.0', '-0.0', '1.5', 'nan', '-inf', NULL, '1e300'][1 + r % 7]::DOUBLE AS d,
                 ['0.1', 'nan', '2', NULL][1 + r % 4]::FLOAT AS f,
                 ['', 'a', 'a/b = %', 'é', '🦆', NULL, 'ab', 'zz'][1 + r % 8] AS s,
                 ['1969-12-31', '2024-02-29', '9999-12-31', NULL, '2024-03-01'][1 + r % 5]::DATE AS day,
                 ['1969-12-31 23:59:59.999999', '2024-02-29 12:00:00', NULL, '2024-03-01'][1 + r % 4]::TIMESTAMP AS ts,
                 ['2024-02-29 23:30:00+00', '1960-01-01 00:00:00+02', NULL][1 + r % 3]::TIMESTAMPTZ AS tz,
                 ['1.25', '-99999999999999999999999999999999999.99', NULL, '0'][1 + r % 4]::DECIMAL(38,2) AS n,
                 ['00000000-0000-0000-0000-00000000000a', NULL, 'ffffffff-0000-0000-0000-000000000000'][1 + r % 3]
                     ::UUID AS u,
                 ['18446744073709551615', '0', NULL][1 + r % 3]::UBIGINT AS big
          FROM range({first}, {last}) t(r))
"""
PARTITIONINGS = ("s", "year(ts), month(ts), day(ts)", "bucket(3, i), b", "day, bucket(2, s)", "hour(tz), u")


def select(first: int, last: int) -> str:
    """DuckDB's query of the rows of these numbers."""
    return ROWS.replace("{first}", str(first)).replace("{last}", str(last))


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    values = st.sampled_from(COLUMNS[column])
    match draw(st.sampled_from(["compare", "compare", "in", "null", "between", "like", "cast"])):
        case "in":
            return f"{column} IN ({', '.join(draw(st.lists(values, min_size=1, max_size=3)))})"
        case "null":
            return f"{column} IS {draw(st.sampled_from(['NULL', 'NOT NULL']))}"
        case "between":
            return f"{column} BETWEEN {draw(values)} AND {draw(values)}"
        case "like":
            return f"s LIKE '{draw(st.sampled_from(['a', '', 'é', 'zz', '🦆']))}%'"
        case "cast":
            return draw(st.sampled_from(CASTS))
    operator = draw(st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="]))
    return f"{column} {operator} {draw(values)}"


predicates = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=5,
)
