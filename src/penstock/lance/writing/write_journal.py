"""What the tasks of a job have written, and a journal of it, by which the files of failed tasks are removed."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.leaves import PartitionValues
from penstock.storage.filesystems import (
    delete_directory,
    delete_file,
    list_files,
    make_directory,
    open_file,
    open_output,
)

_JOURNAL = "__penstock_"  # before a writer's id: a folder of its own, so that none stays for all


@dataclass(frozen=True)
class WrittenFragments:
    """Fragments that a task wrote for one leaf, not yet part of it; `version` is the leaf's that they were made for."""

    object_id: str
    values: PartitionValues
    location: str
    version: int | None
    fragments: Sequence[str] = field(repr=False)  # Lance's JSON
    rows: int

    @property
    def files(self) -> list[str]:
        """The paths of the fragments' files below the namespace's root."""
        found = [file["path"] for fragment in self.fragments for file in json.loads(fragment)["files"]]
        return [f"{self.location}/data/{path}" for path in found]


@contextmanager
def write_journal(store: DatasetStore, writer_id: str) -> Iterator[list[WrittenFragments]]:
    """Run a job whose tasks `record_files` that they write: when it fails, those are removed.

    What the tasks have returned goes into the list. When the job comes through, files that are not in it are removed: a
    task was tried again.
    """
    directory = _directory(store, writer_id)
    make_directory(directory)
    returned: list[WrittenFragments] = []
    try:
        yield returned
        records = list(list_files(directory))
        if len(records) > len(returned):
            _delete_recorded(store, records, {name for written in returned for name in written.files})
    except BaseException:
        _delete_recorded(store, list(list_files(directory)))
        raise
    finally:
        for path in list(list_files(directory)):
            delete_file(path)
        delete_directory(directory)


def record_files(store: DatasetStore, writer_id: str, files: Sequence[str]) -> None:
    """Enter files that a task has written, by their paths below the root, into the journal of its job."""
    with open_output(f"{_directory(store, writer_id)}{uuid4().hex}") as out:
        out.write(json.dumps(files).encode())


def _directory(store: DatasetStore, writer_id: str) -> str:
    return f"{store.root}{_JOURNAL}{writer_id}/"


def _delete_recorded(store: DatasetStore, records: Sequence[str], keep: Container[str] = ()) -> None:
    for record in records:
        with open_file(record) as file:
            for name in json.loads(file.read()):
                if name not in keep:
                    delete_file(store.uri(name))
