"""Defines DuckLake's own concepts as pure values: snapshots, tables, options, schema evolution. No I/O, no Spark."""
