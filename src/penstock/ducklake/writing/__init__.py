"""Rows added to a lake: inserts, files of other programs, and the definitions of schemas, tables, views and macros."""
