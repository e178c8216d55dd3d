"""Adds to a lake: rows, files of other programs, and the definitions of schemas, tables, views and macros."""
