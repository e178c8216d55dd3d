"""Removes the rows that a predicate is true for: files that hold other rows too are written anew without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn

from penstock.delta.format.actions import AddFile
from penstock.delta.log.conflicts import ReadSet, everything_read
from penstock.delta.reading.file_scan import FILE, FileScan
from penstock.delta.writing.file_writer import FileWriter
from penstock.spark.expressions import has_subquery


@dataclass(frozen=True)
class RowRemoval:
    """Files to remove, new files with those of their rows that stay, and the files that the predicate was asked of."""

    removed: list[AddFile]
    rewritten: list[AddFile]
    read_set: ReadSet


def remove_rows(scan: FileScan, writer: FileWriter, predicate: SparkColumn) -> RowRemoval:
    """Writes the rows that stay of files that hold rows of both kinds. Nothing is committed."""
    others = _not_true(predicate)
    subquery = has_subquery(scan.frame().where(predicate))
    read_set = everything_read if subquery else scan.file_test(predicate)
    possible = [file for file in scan.files if read_set(file)]
    whole = [] if subquery else files_that_go_whole(scan, possible, predicate)
    gone = {file.key for file in whole}
    partly = scan.only(file for file in possible if file.key not in gone)
    matched = partly.frame(with_file=True).where(predicate).select(FILE).distinct() if partly.files else None
    read = partly.only(partly.files[row[0]] for row in (matched.collect() if matched else ()))
    rewritten = writer.write(read.frame().where(others)) if read.files else []
    return RowRemoval([*whole, *read.files], rewritten, read_set)


def files_that_go_whole(scan: FileScan, files: Sequence[AddFile], predicate: SparkColumn) -> list[AddFile]:
    """Returns the files that hold only rows that a predicate is true for: the log says so, and none is read."""
    can_remain = scan.file_test(_not_true(predicate))
    return [file for file in files if not can_remain(file)]


def _not_true(predicate: SparkColumn) -> SparkColumn:
    return ~predicate | predicate.isNull()
