"""Writes to a namespace: rows, deletes, compaction, schema changes, and what other programs wrote."""
