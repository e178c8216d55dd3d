"""Reads and writes files: paths and URIs, file systems, Parquet, deletion vectors."""
