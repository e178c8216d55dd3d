"""Reads which transactions made a leaf's dataset what it is, and who made them.

Every transaction that a writer of ours makes on a leaf carries its writer id; those without one are other programs'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

WRITER_ID = "penstock.write"  # in the transactions of leaves: which of our writers made them


@dataclass(frozen=True)
class LeafStep:
    """One version of a leaf and the transaction that made it; None where that is not known any more."""

    version: int
    transaction: Transaction | None

    @property
    def operation(self) -> Any:
        """What the transaction did, as Lance's operation; None where it is not known."""
        return None if self.transaction is None else self.transaction.operation

    @property
    def writer_id(self) -> str | None:
        """The id of our writer that made the version; None for other programs."""
        return None if self.transaction is None else (self.transaction.transaction_properties or {}).get(WRITER_ID)

    @property
    def is_foreign(self) -> bool:
        """Whether another program made the version."""
        return self.writer_id is None

    @property
    def is_overwrite(self) -> bool:
        """Whether the leaf may have been written anew, with other fields."""
        from lance import LanceOperation

        return self.transaction is None or isinstance(self.operation, LanceOperation.Overwrite)

    @property
    def may_misplace_rows(self) -> bool:
        """Whether another program may have put rows into the leaf that do not belong there."""
        from lance import LanceOperation as Operation

        harmless = (Operation.Rewrite, Operation.CreateIndex, Operation.Delete, Operation.UpdateConfig)
        # pylance has no class for the few that touch no row: to reserve fragments, which a compaction does first
        nameless = type(self.operation) is Operation.BaseOperation
        return self.is_foreign and not nameless and not isinstance(self.operation, harmless)


def leaf_history(dataset: LanceDataset, since: int) -> list[LeafStep]:
    """The steps that led from a version to the dataset, the newest first, without what a restored version took back."""
    from lance import LanceOperation

    if dataset.version < since:  # another program has made it anew
        return [LeafStep(dataset.version, None)]
    newest_first = _transactions(dataset, dataset.version - since)
    found: list[LeafStep] = []
    version = dataset.version
    while version > since:
        step = LeafStep(version, newest_first[dataset.version - version])
        restored = step.operation.version if isinstance(step.operation, LanceOperation.Restore) else None
        if restored is not None and restored >= since:
            version = restored
            continue
        found.append(step)
        if restored is not None and step.is_foreign:
            break  # another program chose what the leaf holds
        version -= 1
    return found


def _transactions(dataset: LanceDataset, count: int) -> list[Transaction | None]:
    """The newest transactions, the newest first; None for one that cannot be read or was cleaned up."""
    try:
        found = dataset.get_transactions(count)
    except TypeError:  # pylance 14 fails on compactions of leaves with an index
        found = [_transaction(dataset, dataset.version - back) for back in range(count)]
    return [*found, *([None] * (count - len(found)))]


def _transaction(dataset: LanceDataset, version: int) -> Transaction | None:
    try:
        return dataset.read_transaction(version)
    except (TypeError, ValueError, OSError):
        return None
