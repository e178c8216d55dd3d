"""A transaction as its user holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.ducklake.model.snapshots import Snapshot
from penstock.ducklake.transaction import Transaction


@dataclass(frozen=True)
class LakeTransaction:
    """Many statements that become one snapshot: what `Lake.transaction()` gives for its block.

    It ends once, by `commit`, `roll_back` or the end of the block, and takes no statement after that.
    """

    _transaction: Transaction = field(repr=False)

    @property
    def is_open(self) -> bool:
        """Whether it takes statements."""
        return self._transaction.is_open

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that it made, once it did."""
        return self._transaction.snapshot

    def set_commit_message(
        self, *, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> None:
        """Says who commits and why, at any moment before the end. A later call replaces all three.

        Args:
            author: Who commits.
            message: What the commit is about.
            extra_info: Anything else that the snapshot is to keep.

        Raises:
            InvalidError: The transaction has ended.
        """
        self._transaction.set_commit_message(author, message, extra_info)

    def commit(self) -> Snapshot:
        """Makes one snapshot of it, and ends it; without any change, the newest one stands.

        Whatever happens, no file is deleted that a snapshot may show.

        Returns:
            The snapshot.

        Raises:
            ConflictError: Another writer changed the same things; nothing was committed.
            InvalidError: The transaction had ended before, or its message is missing, and can still be set.
            CatalogError: The database failed.
        """
        return self._transaction.commit()

    def roll_back(self) -> None:
        """Ends it without a snapshot: the files that were written are removed.

        Raises:
            InvalidError: The transaction has ended before.
        """
        self._transaction.roll_back()
