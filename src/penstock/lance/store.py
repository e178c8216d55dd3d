"""Where a directory namespace keeps its datasets, and how they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedError
from penstock.storage.paths import absolute, folder

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True)
class Store:
    """The root directory of a namespace, and the options by which Lance reaches it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets

    @classmethod
    def at(cls, root: str, options: Mapping[str, str] | None = None) -> Store:
        return cls(folder(absolute(root)), dict(options or {}))

    def uri(self, location: str) -> str:
        return self.root + location

    def dataset(self, location: str, version: int | None = None) -> LanceDataset:
        """A dataset below the root, at its newest version or another. Raises ValueError or OSError without one."""
        import lance  # not before: it starts threads, and a process that forks afterwards breaks

        return lance.dataset(self.uri(location), version=version, storage_options=dict(self.options) or None)

    def latest(self, location: str) -> LanceDataset | None:
        """The newest version of a dataset, or None where there is none."""
        try:
            return self.dataset(location)
        except (ValueError, OSError) as error:
            if "not found" in str(error).lower():
                return None
            raise


def require_lance() -> None:
    """Say how to install Lance where it is not."""
    try:
        import lance  # noqa: F401
        import lance_namespace  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"Lance namespaces need pylance and lance-namespace ({error}); install penstock[lance]"
        ) from None
