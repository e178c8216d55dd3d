"""Random filters, as Spark pushes them, over columns c0, c1, ..."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.predicate_samples import literal, samples, spark_type

ZONES = ["UTC", "America/St_Johns", "Pacific/Apia", "Asia/Kolkata", "+05:30"]
COMPARISONS = ["=", "<=>", "<", "<=", ">", ">="]
MIRROR = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
CASTS = {
    "tinyint": ["int", "bigint", "decimal(5,1)", "float", "double"],
    "smallint": ["int", "bigint", "decimal(5,0)", "float", "double"],
    "int": ["bigint", "decimal(20,0)", "float", "double"],
    "bigint": ["decimal(21,1)", "float", "double"],
    "float": ["double"],
    "decimal": ["double"],
    "date": ["timestamp_ntz", "timestamp"],
    "timestamp_ntz": ["date", "timestamp"],
    "timestamp": ["date", "timestamp_ntz"],
}


def trees(types: list[str]) -> st.SearchStrategy[Any]:
    leaves = st.one_of([leaf(id, name) for id, name in enumerate(types)])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(list),
            st.tuples(st.just("not"), inner).map(list),
        ),
        max_leaves=6,
    )


def leaf(id: int, name: str) -> st.SearchStrategy[Any]:
    column = ["column", f"c{id}"]
    spark = spark_type(name)
    values = st.sampled_from([sample.shown for sample in samples(name)])
    plain = compared(column, spark, values)
    options = [plain, plain, st.sampled_from([["isnull", column], ["isnotnull", column], ["unknown"]])]
    if spark == "boolean":
        options.append(st.just(column))
    if spark == "string":
        prefix = values.flatmap(lambda text: st.integers(0, len(text)).map(lambda n: text[:n]))
        options.append(prefix.map(lambda text: ["startswith", column, ["literal", "string", text]]))
    if spark in ("float", "double"):
        options.append(st.just(["isnan", column]))
    if spark in ("date", "timestamp", "timestamp_ntz"):
        years = st.sampled_from([1969, 1970, 2023, 2024, 1, 0, -43, 9999, 10_000])
        options += [compared(["year", date], "int", years) for date in casts(column, spark, "date")]
    for target in CASTS.get(spark.split("(")[0], []):
        cut = values.flatmap(lambda v, t=target: near(v, spark, t))
        options += [compared(subject, target, cut) for subject in casts(column, spark, target)]
    return st.one_of(options)


def casts(column: Any, source: str, target: str) -> list[Any]:
    """The cast as Spark makes it: in the time zone of the session that it was made in."""
    return [column] if source == target else [["cast", target, column, zone] for zone in ZONES]


def near(value: Any, source: str, target: str) -> st.SearchStrategy[Any]:
    """Values of the cast's type around the cast of a value."""
    day = 86_400_000_000
    match source.split("(")[0], target.split("(")[0]:
        case _, "float" | "double":
            import numpy as np

            real = float(np.float32(float(value))) if target == "float" else float(value)
            return st.sampled_from([real, real, float(int(real)) if abs(real) < 1e18 else real])
        case "date", _:
            return st.sampled_from([value * day + shift for shift in (0, 1, -1, day // 2)])
        case _, "date":
            return st.sampled_from([value // day + shift for shift in (0, 1, -1)])
        case "timestamp" | "timestamp_ntz", _:
            return st.sampled_from([value + shift for shift in (0, 1, -1, day // 24, -day // 24)])
    return st.just(value)


def compared(subject: Any, spark: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    literals = (st.none() | values | values | values).map(lambda value: literal(spark, value))
    comparison = st.tuples(st.sampled_from(COMPARISONS), literals, st.booleans()).map(
        lambda parts: [parts[0], subject, parts[1]] if parts[2] else [MIRROR[parts[0]], parts[1], subject]
    )
    membership = st.lists(literals, min_size=1, max_size=5).map(lambda options: ["in", subject, *options])
    return st.one_of(comparison, comparison, membership)
