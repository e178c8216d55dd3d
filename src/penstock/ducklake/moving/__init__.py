"""Brings tables of other systems into a lake: a DuckDB database, folders of Parquet files."""
