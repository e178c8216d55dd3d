"""Names the columns that DuckLake embeds in data files, besides those of their table, with their field ids."""

from __future__ import annotations

EMBEDDED_PREFIX = "_ducklake_internal_"
EMBEDDED_ROW_ID, EMBEDDED_ROW_ID_FIELD = EMBEDDED_PREFIX + "row_id", 2147483540
EMBEDDED_SNAPSHOT_ID, EMBEDDED_SNAPSHOT_ID_FIELD = EMBEDDED_PREFIX + "snapshot_id", 2147483539
