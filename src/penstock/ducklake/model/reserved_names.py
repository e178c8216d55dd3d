"""Names the columns that no table may have, where its rows may be inlined."""

from __future__ import annotations

from penstock.schema.embedded_columns import EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID

INLINED_COLUMNS = ("row_id", "begin_snapshot", "end_snapshot")  # of the tables that hold inlined rows, before others
INLINED_DELETE_COLUMNS = ("file_id", "row_id", "begin_snapshot")  # of the tables that hold deletes from files
RESERVED_NAMES = frozenset({*INLINED_COLUMNS, EMBEDDED_ROW_ID, EMBEDDED_SNAPSHOT_ID})
