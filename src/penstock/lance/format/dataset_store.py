"""Where a directory namespace keeps its datasets, and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedError
from penstock.storage.filesystems import is_file
from penstock.storage.paths import absolute, folder

if TYPE_CHECKING:
    from lance import LanceDataset

_RESERVED = ".lance-reserved"  # Lance's client puts it where a table will be


@dataclass(frozen=True)
class DatasetStore:
    """The root directory of a namespace, and the options by which Lance reaches it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets

    @classmethod
    def at(cls, root: str, options: Mapping[str, str] | None = None) -> DatasetStore:
        return cls(folder(absolute(root)), dict(options or {}))

    def uri(self, location: str) -> str:
        return self.root + location

    def dataset(self, location: str, version: int | None = None) -> LanceDataset:
        """A dataset below the root, at its newest version or another. Raises ValueError or OSError without one."""
        import lance  # not before: it starts threads, and a process that forks afterwards breaks

        return lance.dataset(self.uri(location), version=version, storage_options=dict(self.options) or None)

    def find(self, location: str, version: int | None = None) -> LanceDataset | None:
        """A dataset at its newest version or another, or None where there is none."""
        try:
            return self.dataset(location, version)
        except (ValueError, OSError) as error:
            if "not found" in str(error).lower():
                return None
            raise

    def is_declared(self, location: str) -> bool:
        """Whether a table was only declared: there is a place for it, but no dataset yet."""
        return is_file(self.uri(f"{location}/{_RESERVED}"))


def require_lance() -> None:
    """Say how to install Lance where it is not."""
    try:
        import lance  # noqa: F401
        import lance_namespace  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"Lance namespaces need pylance and lance-namespace ({error}); install penstock[lance]"
        ) from None
