"""The versions of a namespace that are kept: from one on, which its entry in the manifest names once some have gone."""

from __future__ import annotations

from datetime import datetime

from penstock.errors import NotFoundError
from penstock.lance.format.manifest import Manifest, ManifestEntry

OLDEST_VERSION = "lance.partitioning.oldest-version"
# The same once all files of the older ones are gone: until then, the next run needs what the manifest said of them.
CLEANED_VERSION = "lance.partitioning.cleaned-version"


def oldest_version(entry: ManifestEntry | None) -> int:
    """The oldest version of a namespace that was not cleaned up, by its entry of now; 0 where none was."""
    return int(entry.properties.get(OLDEST_VERSION, 0)) if entry else 0


def cleaned_version(entry: ManifestEntry) -> int:
    """The oldest version of a namespace that the manifest has to keep; 0 where all are needed."""
    return int(entry.properties.get(CLEANED_VERSION, 0))


def check_kept(manifest: Manifest, name: str, version: int) -> None:
    """Raise NotFoundError for a version of a namespace that was cleaned up."""
    oldest = oldest_version(manifest.state().entry(name))
    if version < oldest:
        raise NotFoundError(
            f"version {version} of namespace {name!r} was cleaned up: the oldest that is kept is {oldest}; versions()"
            " lists those that can be read"
        )


def version_at(manifest: Manifest, name: str, time: datetime) -> int:
    """The newest version of a namespace at or before a time. Raises NotFoundError where there is none any more."""
    return manifest.version_at(time, since=oldest_version(manifest.state().entry(name)))
