"""The numbers from which on a check advises something."""

from __future__ import annotations

from datetime import timedelta

FILES_SAVED = 10  # by merging the small files of a table
DELETED_SHARE = 0.2  # of a table's rows, from which on reading them takes notably longer
DELETED_ROWS = 10_000  # below which no share matters
INLINED_ROWS = 10_000  # of a table, or as many inlined deletes: every query reads all of them
SNAPSHOTS = 1_000
SNAPSHOT_AGE = timedelta(days=90)
CATALOG_ROWS = 1_000_000  # in a table of the catalog
ENDED_SHARE = 0.5  # of them, that only old snapshots need
INDEXED_FILES = 1_000  # from which on indexes make a difference
LEAST_TARGET = 1_000_000  # bytes; merging to less leaves small files
FILES_LOOKED_AT = 1_000  # one by one, of those that a listing did not show
