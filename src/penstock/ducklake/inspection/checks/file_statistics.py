"""Finds files without statistics: no filter leaves them out."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ducklake.inspection import remedies
from penstock.ducklake.inspection.findings import Examined, Finding, counted, finding, sized

CHECK = "files without statistics"


def check(lake: Examined) -> Iterator[Finding]:
    """Advice for each table with files of which the catalog knows nothing but their size."""
    tables = {table.id: table for table in lake.tables}
    sql = f"""SELECT table_id, count(*), sum(size) FROM (
                  SELECT max(table_id) AS table_id, max(size) AS size FROM (
                      SELECT data_file_id AS id, table_id, coalesce(file_size_bytes, 0) AS size, 1 AS shown, 0 AS told
                      FROM ducklake_data_file WHERE {lake.at.visible()} AND coalesce(record_count, 1) > 0
                      UNION ALL
                      SELECT data_file_id, table_id, 0, 0, 1 FROM ducklake_file_column_stats
                  ) every GROUP BY id HAVING max(shown) = 1 AND max(told) = 0
              ) untold GROUP BY table_id ORDER BY table_id"""
    found = [row for row in lake.database.query(sql) if row[0] in tables]
    for table_id, count, size in found:
        table = tables[table_id]
        yield finding(
            CHECK,
            "advice",
            f"{counted(int(count), 'file')} of {sized(float(size))} have no statistics: every query reads them",
            {"files": int(count), "bytes": int(size)},
            table=table,
            remedy=remedies.merge(table),
        )
    if not found:
        yield finding(CHECK, "fine", "every file has statistics")
