"""Opens the Lance datasets below the root directory of a namespace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import NotFoundError, UnsupportedError
from penstock.storage.filesystems import is_file
from penstock.storage.paths import absolute, folder, is_local

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.lance import _Session as Session

_RESERVED = ".lance-reserved"  # Lance's client puts it where a table will be
DATASETS_AT_ONCE = 8  # that the driver works on, in threads
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class DatasetStore:
    """The root directory of a namespace, and the storage options by which Lance reaches it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets

    @classmethod
    def at(cls, root: str, options: Mapping[str, str] | None = None) -> DatasetStore:
        """The store of a directory as users name it, with a relative path or without the slash at the end."""
        return cls(folder(absolute(root)), dict(options or {}))

    def uri(self, location: str) -> str:
        """The full path of a dataset below the root."""
        return self.root + location

    def dataset(self, location: str, version: int | None = None, session: Session | None = None) -> LanceDataset:
        """Open a dataset below the root, at its newest version or another. Raises ValueError or OSError without one.

        Datasets of one session share what Lance keeps in memory, and the connections to a bucket.
        """
        import lance  # not before: it starts threads, and a process that forks afterwards breaks

        options = dict(self.options) or None
        return lance.dataset(self.uri(location), version=version, storage_options=options, session=session)

    def each(self, call: Callable[[_Item], _Found], items: Iterable[_Item]) -> Iterator[_Found]:
        """What a call that opens datasets gives for each item, in order: elsewhere some ahead, for that is to wait."""
        if is_local(self.root):
            yield from map(call, items)
            return
        ahead: deque[Future[_Found]] = deque()
        with ThreadPoolExecutor(DATASETS_AT_ONCE) as pool:
            try:
                for item in items:
                    ahead.append(pool.submit(call, item))
                    if len(ahead) > DATASETS_AT_ONCE:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)

    def find(self, location: str, version: int | None = None, session: Session | None = None) -> LanceDataset | None:
        """Open a dataset at its newest version or another; None where there is none."""
        try:
            return self.dataset(location, version, session)
        except (ValueError, OSError) as error:
            if "not found" in str(error).lower():
                return None
            raise

    def kept(self, location: str, version: int, session: Session | None = None) -> LanceDataset:
        """Open a dataset at a version that was there a while ago. Raises NotFoundError where it was cleaned up."""
        found = self.find(location, version, session)
        if found is None:
            raise NotFoundError(f"{self.uri(location)} has no version {version} any more: it was cleaned up; run again")
        return found

    def is_declared(self, location: str) -> bool:
        """Whether a table was only declared: there is a place for it, but no dataset yet."""
        return is_file(self.uri(f"{location}/{_RESERVED}"))


def new_session() -> Session:
    """What datasets that are opened with it share; it goes when they do."""
    import lance

    return lance.Session()  # type: ignore[attr-defined]  # its hints leave it out


def require_lance() -> None:
    """Raise UnsupportedError, which says how to install Lance, where it is not installed."""
    try:
        import lance  # noqa: F401
        import lance_namespace  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"Lance namespaces need pylance and lance-namespace ({error}); install penstock[lance]"
        ) from None
