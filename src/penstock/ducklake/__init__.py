"""Reads and writes DuckLake 1.0: a lake whose metadata is a plain SQL database."""
