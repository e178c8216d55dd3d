"""Leaves without what writers of ours began and did not finish; what other programs did to them stays.

Every transaction that a writer makes on a leaf carries its name. Those after the version that the manifest shows are
unfinished, unless their writer is still at it; transactions without a name are other programs'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import Leaf, missing_leaf_error

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

WRITE_ID = "penstock.write"  # in the transactions of leaves: which of our writers made them
_RECOVERY = "healed/"  # such a name, and the version that readers saw then


@dataclass(frozen=True)
class LeafStep:
    """The transaction that made a version; None where it is not known any more."""

    version: int
    done: Transaction | None

    @property
    def operation(self) -> Any:
        return None if self.done is None else self.done.operation

    @property
    def writer(self) -> str | None:
        """The name of ours; None for other programs."""
        return None if self.done is None else (self.done.transaction_properties or {}).get(WRITE_ID)


def without_unfinished_writes(store: DatasetStore, leaf: Leaf, latest: LanceDataset) -> LanceDataset:
    """The newest version of a leaf that readers see at `leaf.version`, without what is unfinished."""
    done = f"{_RECOVERY}{leaf.version}"  # healed after another version, it may lack what readers see
    return _without(store, leaf, latest, lambda step: step.writer not in (None, done))


def dataset_to_extend(store: DatasetStore, leaf: Leaf) -> tuple[LanceDataset, bool]:
    """A leaf to make fragments for: as readers see it, or, if other programs have changed it since, as those left it.

    And whether they have made it anew, with other fields.
    """
    assert leaf.version is not None
    latest = store.find(leaf.location)
    if latest is None:
        raise missing_leaf_error(leaf, store)
    if latest.version == leaf.version:
        return latest, False
    past = leaf_history(latest, leaf.version)
    theirs = next((step.version for step in past if step.writer is None), leaf.version)
    dataset = latest if theirs == latest.version else store.dataset(leaf.location, theirs)
    return dataset, any(is_overwrite(step) for step in past if step.version <= theirs)


def without_write(store: DatasetStore, leaf: Leaf, latest: LanceDataset, write_id: str) -> LanceDataset:
    """The leaf without what one writer did to it."""
    return _without(store, leaf, latest, lambda step: step.writer == write_id)


def leaf_history(dataset: LanceDataset, since: int) -> list[LeafStep]:
    """What made a dataset of what it was at a version, the newest first, without what a restored version took back."""
    from lance import LanceOperation

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
        if restored is not None and step.writer is None:
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


def is_overwrite(step: LeafStep) -> bool:
    """Whether a leaf was made anew, with other fields, as far as is known."""
    from lance import LanceOperation

    return step.done is None or isinstance(step.operation, LanceOperation.Overwrite)


def _without(
    store: DatasetStore, leaf: Leaf, latest: LanceDataset, unwanted: Callable[[LeafStep], bool]
) -> LanceDataset:
    """The leaf without some steps. Where there are only appends among them, in a way that no other writer notices."""
    from lance import LanceOperation

    assert leaf.version is not None
    past = leaf_history(latest, leaf.version)
    appends = [step for step in past if unwanted(step) and isinstance(step.operation, LanceOperation.Append)]
    others = [step for step in past if unwanted(step) and step not in appends]
    if others:
        ours = list(takewhile(lambda step: step.writer is not None, past))
        if not all(step in ours for step in others):
            raise _inseparable(leaf)
        latest = _restored(store, leaf, latest, past[len(ours)].version if len(ours) < len(past) else leaf.version)
    return _without_fragments(store, leaf, latest, appends, past)


def _without_fragments(
    store: DatasetStore, leaf: Leaf, latest: LanceDataset, appends: Sequence[LeafStep], past: Sequence[LeafStep]
) -> LanceDataset:
    from lance import LanceOperation

    dead = _paths(fragment for step in appends for fragment in step.operation.fragments)
    rewrites = [step.operation for step in past if isinstance(step.operation, LanceOperation.Rewrite)]
    if any(_paths(group.old_fragments) & dead for rewrite in rewrites for group in rewrite.groups):
        raise _inseparable(leaf)
    gone = [one.fragment_id for one in latest.get_fragments() if _paths([one.metadata]) & dead]
    return _committed(store, leaf, latest, LanceOperation.Delete([], gone, "true")) if gone else latest


def _restored(store: DatasetStore, leaf: Leaf, latest: LanceDataset, version: int) -> LanceDataset:
    from lance import LanceOperation

    done = _committed(store, leaf, latest, LanceOperation.Restore(version))
    if done.version == latest.version + 1:
        return done
    _committed(store, leaf, done, LanceOperation.Restore(done.version - 1))  # what came in between is not ours to undo
    raise _at_the_same_moment(leaf)


def _committed(store: DatasetStore, leaf: Leaf, latest: LanceDataset, operation: Any) -> LanceDataset:
    from lance import LanceDataset, Transaction
    from lance.commit import CommitConflictError

    properties = {WRITE_ID: f"{_RECOVERY}{leaf.version}"}
    transaction = Transaction(latest.version, operation, transaction_properties=properties)
    try:
        return LanceDataset.commit(latest, transaction, storage_options=dict(store.options) or None)
    except CommitConflictError:
        raise _at_the_same_moment(leaf) from None


def _paths(fragments: Iterable[Any]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}


def _at_the_same_moment(leaf: Leaf) -> ConflictError:
    return ConflictError(f"leaf {leaf.object_id} was written to by another program at the same moment; run again")


def _inseparable(leaf: Leaf) -> ConflictError:
    return ConflictError(
        f"leaf {leaf.object_id}: another program has changed it after a writer of ours that did not finish, and what"
        f" the two did cannot be told apart; restore its version {leaf.version} with pylance and run again"
    )
