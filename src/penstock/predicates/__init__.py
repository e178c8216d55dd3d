"""Works out what Spark's filters say about a column's values, without Spark and without a database."""

from penstock.predicates.filters import implied_by
from penstock.predicates.implication import And, Anything, ColumnIn, Implication, Nothing, Or
from penstock.predicates.values import Cut, Interval, ValueSet, interval

__all__ = [
    "And",
    "Anything",
    "ColumnIn",
    "Cut",
    "Implication",
    "Interval",
    "Nothing",
    "Or",
    "ValueSet",
    "implied_by",
    "interval",
]
