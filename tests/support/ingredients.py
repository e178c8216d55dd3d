"""What a table's DataFrame is made of, as one text: equal texts mean that Spark would do the same work on both.

Whatever can differ between two catalog databases is in it, with the Python type that the database's driver gave it:
columns and their history, partition specifications, groups, data files, delete files, inlined rows and deletes, name
mappings. Files are known by what is in them, since their names are random.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Table
from penstock.ducklake.model.files import DataFile, DeleteFile, FileGroup
from penstock.ducklake.reading.table_scan import TableContents, TableScan
from penstock.storage.paths import is_local

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def ingredients(table: Table, version: int, directory: Path, *, row_ids: bool) -> str:
    """Those of `table.read(version=version, row_ids=row_ids)`, of a lake that is in `directory`."""
    shown = table._attachment.shown(version)
    with shown.database.consistent():
        scan = table._scan(shown, row_ids=row_ids)
        contents = scan.contents()
        # In no order, as the rows: PostgreSQL sorts NULLs last.
        files = _sorted(_group(scan, contents, group, directory) for group in contents.groups)
    scope = scan.scope
    known = (scope.table_id, _place(scope.table_path, directory), scope.at, scope.seen_snapshot, scope.next_file_id,
             scope.eras, scope.inlined_deletes, scope.has_variants, scope.milliseconds)  # fmt: skip
    inlined = [(str(rows.schema), _sorted(rows.to_pylist())) for rows in contents.inlined]
    deletes = sorted(map(repr, contents.inlined_deletes))
    mappings = {mapping: sorted(map(repr, fields)) for mapping, fields in contents.mappings.items()}
    return repr((known, scan.layout, scan.specs, row_ids, files, deletes, inlined, mappings))


def _group(scan: TableScan, contents: TableContents, group: FileGroup, directory: Path) -> object:
    kinds = contents.delete_kinds.get(group, ())
    data = scan.scope.data_files(group)
    deletes = scan.scope.delete_files(group, kinds) if group.deleted else []
    data_files = _sorted(_data(file, directory) for file in data)
    return group, data_files, kinds, _sorted(_deletes(file, directory) for file in deletes)


def _data(file: DataFile, directory: Path) -> object:
    content = _content(file.path)
    return (file.id, _place(file.path, directory), file.size, file.row_id_start, file.begin_snapshot,
            file.encryption_key, file.changed_in, content)  # fmt: skip


def _deletes(file: DeleteFile, directory: Path) -> object:
    """The size is compared with the file's own: the paths that it repeats can be longer in another lake."""
    if not is_local(file.path):
        return file
    return (file.data_file_id, _place(file.path, directory), file.size == os.path.getsize(file.path), file.format,
            file.encryption_key, file.begin_snapshot, _deleted(file, directory))  # fmt: skip


def _deleted(file: DeleteFile, directory: Path) -> object:
    if file.format != "parquet" or file.encryption_key is not None:
        return _content(file.path)
    rows: pa.Table = pq.read_table(file.path)
    return str(rows.schema), [{**row, "file_path": _place(row["file_path"], directory)} for row in rows.to_pylist()]


def _place(path: str, directory: Path) -> str:
    return _UUID.sub("*", path.replace(str(directory), ""))


def _content(path: str) -> str:
    """What a file holds; one that is not on this machine is known by its name, which no other has."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if is_local(path) else path


def _sorted(values: Iterable[object]) -> list[str]:
    return sorted(map(repr, values))
