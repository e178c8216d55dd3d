"""Removes what unfinished writers of ours left behind in leaves; what other programs did to them stays.

Steps after the version that the manifest shows are unfinished if they carry a writer id of ours, unless their writer is
still at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError
from penstock.lance.commits.leaf_history import WRITER_ID, LeafStep, leaf_history
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import Leaf, missing_leaf_error

if TYPE_CHECKING:
    from lance import LanceDataset

_RECOVERY = "healed/"  # with the version that readers saw then, the writer id of a recovery


def without_unfinished_writes(store: DatasetStore, leaf: Leaf, latest: LanceDataset) -> LanceDataset:
    """Undo all unfinished writes to a leaf that readers see at `leaf.version`; its newest version after that."""
    recovered = f"{_RECOVERY}{leaf.version}"  # recovered after another version, it may lack what readers see
    return _without(store, leaf, latest, lambda step: step.writer_id not in (None, recovered))


def without_write(store: DatasetStore, leaf: Leaf, latest: LanceDataset, writer_id: str) -> LanceDataset:
    """Undo what one writer did to a leaf; its newest version after that."""
    return _without(store, leaf, latest, lambda step: step.writer_id == writer_id)


def dataset_to_extend(store: DatasetStore, leaf: Leaf) -> tuple[LanceDataset, bool]:
    """Find the version of a leaf to write new fragments for, and whether other programs have overwritten the leaf.

    That is the version that readers see, or, if other programs have changed the leaf since, as those left it.
    """
    assert leaf.version is not None
    latest = store.find(leaf.location)
    if latest is None:
        raise missing_leaf_error(leaf, store)
    if latest.version == leaf.version:
        return latest, False
    steps = leaf_history(latest, leaf.version)
    theirs = next((step.version for step in steps if step.is_foreign), leaf.version)
    dataset = latest if theirs == latest.version else store.kept(leaf.location, theirs)
    return dataset, any(step.is_overwrite for step in steps if step.version <= theirs)


def _without(
    store: DatasetStore, leaf: Leaf, latest: LanceDataset, unwanted: Callable[[LeafStep], bool]
) -> LanceDataset:
    """Undo some steps of a leaf. Where there are only appends among them, in a way that no other writer notices."""
    from lance import LanceOperation

    assert leaf.version is not None
    steps = leaf_history(latest, leaf.version)
    appends = [step for step in steps if unwanted(step) and isinstance(step.operation, LanceOperation.Append)]
    others = [step for step in steps if unwanted(step) and step not in appends]
    if others:
        ours = list(takewhile(lambda step: not step.is_foreign, steps))
        if not all(step in ours for step in others):
            raise _inseparable(leaf)
        latest = _restored(store, leaf, latest, steps[len(ours)].version if len(ours) < len(steps) else leaf.version)
    return _without_fragments(store, leaf, latest, appends, steps)


def _without_fragments(
    store: DatasetStore, leaf: Leaf, latest: LanceDataset, appends: Sequence[LeafStep], steps: Sequence[LeafStep]
) -> LanceDataset:
    from lance import LanceOperation

    unwanted = _paths(fragment for step in appends for fragment in step.operation.fragments)
    rewrites = [step.operation for step in steps if isinstance(step.operation, LanceOperation.Rewrite)]
    if any(_paths(group.old_fragments) & unwanted for rewrite in rewrites for group in rewrite.groups):
        raise _inseparable(leaf)
    removed = [one.fragment_id for one in latest.get_fragments() if _paths([one.metadata]) & unwanted]
    return _committed(store, leaf, latest, LanceOperation.Delete([], removed, "true")) if removed else latest


def _restored(store: DatasetStore, leaf: Leaf, latest: LanceDataset, version: int) -> LanceDataset:
    from lance import LanceOperation

    done = _committed(store, leaf, latest, LanceOperation.Restore(version))
    if done.version == latest.version + 1:
        return done
    _committed(store, leaf, done, LanceOperation.Restore(done.version - 1))  # what came in between is not ours to undo
    raise _written_meanwhile(leaf)


def _committed(store: DatasetStore, leaf: Leaf, latest: LanceDataset, operation: Any) -> LanceDataset:
    from lance import LanceDataset, Transaction
    from lance.commit import CommitConflictError

    properties = {WRITER_ID: f"{_RECOVERY}{leaf.version}"}
    transaction = Transaction(latest.version, operation, transaction_properties=properties)
    try:
        return LanceDataset.commit(latest, transaction, storage_options=dict(store.options) or None)
    except CommitConflictError:
        raise _written_meanwhile(leaf) from None


def _paths(fragments: Iterable[Any]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}


def _written_meanwhile(leaf: Leaf) -> ConflictError:
    return ConflictError(f"leaf {leaf.object_id} was written to by another program at the same moment; run again")


def _inseparable(leaf: Leaf) -> ConflictError:
    return ConflictError(
        f"leaf {leaf.object_id}: another program has changed it after a writer of ours that did not finish, and what"
        f" the two did cannot be told apart; restore its version {leaf.version} with pylance and run again"
    )
