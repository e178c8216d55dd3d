"""Defines data files and delete files, as a scan sees them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FileGroup:
    """Data files of a table that are read alike, and how many there are.

    `era` counts the changes of the table's shape that came before them, of those that Spark cannot bridge by itself.
    """

    mapping_id: int | None
    foreign: bool  # encrypted, or with values that Spark's reader does not know
    partial: bool  # holds rows of several snapshots that must be told apart
    deleted: bool  # some rows are deleted
    era: int
    file_count: int
    size_in_bytes: int
    unknown: bool = False  # neither mapped nor named as DuckLake's writers name files: they may lack field ids

    @property
    def is_of_others(self) -> bool:
        """Whether the files were added, under names of their writers'."""
        return self.unknown or self.mapping_id is not None


@dataclass(frozen=True)
class DataFile:
    """A data file that a scan reads."""

    id: int
    path: str  # absolute
    size: int
    row_id_start: int | None
    begin_snapshot: int
    encryption_key: str | None = field(repr=False)
    changed_in: int | None = None  # the snapshot that a change feed gives its rows


@dataclass(frozen=True)
class DeleteFile:
    """A delete file that a scan applies to a data file."""

    data_file_id: int
    path: str  # absolute
    size: int
    format: str
    encryption_key: str | None = field(repr=False)
    begin_snapshot: int
    last_snapshot: int  # that is looked at, of those whose deletes it tells


@dataclass(frozen=True)
class DeleteKind:
    """Delete files that are read alike, and how many positions they hold."""

    format: str
    encrypted: bool
    delete_count: int

    def is_of(self, file: DeleteFile) -> bool:
        """Whether a delete file is of this kind."""
        return (file.format, file.encryption_key is not None) == (self.format, self.encrypted)


@dataclass(frozen=True)
class MappedField:
    """A field of a file without field ids: the name it has there, and the column it stands for."""

    id: int
    source_name: str
    column_id: int
    parent_id: int | None
    is_partition: bool
