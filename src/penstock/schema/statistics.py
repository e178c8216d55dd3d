"""Defines what is recorded of a data file besides its rows: sizes, partition values, statistics of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of one column, or of one leaf of a nested one, in the catalog's own texts.

    `value_count` leaves NULLs out. A bound that is None is not known.
    """

    column_id: int
    size: int | None = None
    value_count: int | None = None
    null_count: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    contains_nan: bool | None = None
    extra: str | None = None

    def storable(self) -> ColumnStatistics:
        """The same with bounds that every database can store: not all take a NUL in a text."""
        low, high = self.minimum, self.maximum
        if low is not None and "\0" in low:
            low = low.partition("\0")[0]
        if high is not None and "\0" in high:
            high = high.partition("\0")[0] + "\1"
        return self if (low, high) == (self.minimum, self.maximum) else replace(self, minimum=low, maximum=high)


@dataclass(frozen=True)
class VariantStatistics:
    """Statistics of one path inside the variants of a column, where a file stores that path as a type of its own."""

    path: str
    shredded_type: str
    statistics: ColumnStatistics


@dataclass(frozen=True)
class WrittenFile:
    """A data file that is complete on storage and that no snapshot shows yet."""

    path: str  # relative to the table's directory
    record_count: int
    size: int
    footer_size: int
    partition_values: tuple[str | None, ...] = ()
    encryption_key: str | None = field(default=None, repr=False)  # base64, as the catalog holds it
    columns: tuple[ColumnStatistics, ...] = ()
    variants: tuple[VariantStatistics, ...] = ()
