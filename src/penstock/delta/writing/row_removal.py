"""Removes the rows that a predicate is true for: files that hold other rows too are written anew without them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn

from penstock.delta.format.actions import AddFile, FileKey
from penstock.delta.log.conflicts import ReadSet, everything_read
from penstock.delta.reading.deleted_positions import FILE_NUMBER
from penstock.delta.reading.file_scan import FileScan
from penstock.delta.writing.file_writer import FileWriter
from penstock.spark.expressions import has_subquery
from penstock.spark.pushdown import covered_whole


@dataclass(frozen=True)
class RowRemoval:
    """Files to remove, new files with those of their rows that stay, and the files that the predicate was asked of."""

    removed: list[AddFile]
    rewritten: list[AddFile]
    read_set: ReadSet


def remove_rows(scan: FileScan, writer: FileWriter, predicate: SparkColumn) -> RowRemoval:
    """Writes the rows that stay of files that hold rows of both kinds. Nothing is committed."""
    subquery = has_subquery(scan.frame().where(predicate))
    read_set = everything_read if subquery else scan.file_test(predicate)
    whole = frozenset() if subquery else files_that_go_whole(scan, predicate)
    removed = [file for file in scan.files if file.key in whole]
    partly = scan.only(file for file in scan.files if file.key not in whole and read_set(file))
    matched = partly.frame(with_file=True).where(predicate).select(FILE_NUMBER).distinct() if partly.files else None
    read = partly.only(partly.files[row[0]] for row in (matched.collect() if matched else ()))
    rewritten = writer.write(read.frame().where(~predicate | predicate.isNull())) if read.files else []
    return RowRemoval([*removed, *read.files], rewritten, read_set)


def files_that_go_whole(scan: FileScan, predicate: SparkColumn) -> frozenset[FileKey]:
    """Returns the keys of the files that hold only rows that a predicate is true for: the log says so, unread."""

    def possible(condition: SparkColumn) -> list[FileKey]:
        test = scan.file_test(condition)
        return [file.key for file in scan.files if test(file)]

    return frozenset(covered_whole(predicate, possible))
