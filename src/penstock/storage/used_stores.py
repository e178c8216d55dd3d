"""Uses a user's options for the store of a path, completed by what else is known of it, once the store has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.storage.azure import in_environment
from penstock.storage.options import NONE, StorageOptions, options_for, use_options
from penstock.storage.reachability import check_reachable
from penstock.storage.s3 import with_environment
from penstock.storage.stores import Store, store_of

# What a Spark session says of a store, given what is known of it so far.
SessionOptions = Callable[[StorageOptions], Mapping[str, str]]


def _nothing(known: StorageOptions) -> Mapping[str, str]:
    return {}


def use_store(path: str, given: StorageOptions, of_session: SessionOptions = _nothing) -> None:
    """Use options for all of a path's bucket, from now on; nothing for a path of this machine.

    Raises InvalidError where they are no options of such a store or do not open the bucket, NotFoundError where there
    is none.
    """
    store = store_of(path)
    if store is None:
        return
    given.check_kind(store.kind, path)
    options = _completed(store, path, given, of_session)
    check_reachable(path, options)
    use_options(path, options)


def _completed(store: Store, path: str, given: StorageOptions, of_session: SessionOptions) -> StorageOptions:
    """A user's options, and where they say nothing, what the session says, and then this process's environment.

    Who says nothing at all of a bucket that this process uses means it as it is used.
    """
    used = NONE if given else options_for(path)
    if store.kind == "s3":
        return with_environment(given.over(of_session(given)).over(used))
    if store.kind == "azure":
        around = in_environment()
        return given.over(of_session(given.over(used).over(around))).over(used).over(around)
    return given
