"""Finds the words of Spark's for a call of a scalar function, by the families of the types that DuckDB has bound it to.

What is in none of the tables is refused: a function of the same name may do something else in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.sql.duckdb_dialect.bound_types import BoundType, Node, UntranslatableError
from penstock.sql.duckdb_dialect.repeated_values import once


@dataclass(frozen=True)
class Call:
    """A call of a function: the texts of its arguments, what they are in the plan, and the types."""

    name: str
    values: Sequence[str]
    nodes: Sequence[Node]
    types: Sequence[BoundType]
    result: BoundType
    data: Node = field(default_factory=dict)
    fixed_zone: bool = True  # whether the clocks of the session's time zone never change

    @property
    def families(self) -> str:
        """The families of the arguments, as the tables write them."""
        return ",".join(kind.family for kind in self.types)

    def check_zone(self) -> None:
        """Refuse where DuckDB and Spark count otherwise across a change of clocks."""
        if not self.fixed_zone and any(kind.family == "timestamptz" for kind in self.types):
            raise self.refused("in a time zone whose clocks change")

    def refused(self, why: str = "") -> UntranslatableError:
        """The error that says what is not translated."""
        kinds = ", ".join(kind.duckdb for kind in self.types)
        return UntranslatableError(f"{self.name}({kinds}){': ' + why if why else ''}")


Written = str | Callable[[Call], str]


def function_text(call: Call, tables: Sequence[dict[str, Written]]) -> str:
    """A call, as Spark's text."""
    alike = call.types[0].family if call.types else ""
    names = [f"{call.name}({call.families})"]
    if len({kind.family for kind in call.types}) == 1:
        names.append(f"{call.name}({alike}*)")
    for table in tables:
        for name in names:
            if name in table:
                return written(table[name], call)
    raise call.refused()


def written(way: Written, call: Call) -> str:
    """What a way of the tables makes of a call."""
    if not isinstance(way, str):
        return way(call)

    def fill(place: int, values: tuple[str, ...]) -> str:
        if place == len(call.values):
            return way.format(*values, type=call.result.spark, all=", ".join(values))
        again = way.count(f"{{{place}}}") > 1
        value = call.values[place]
        return once(value, lambda v: fill(place + 1, (*values, v))) if again else fill(place + 1, (*values, value))

    return fill(0, ())
