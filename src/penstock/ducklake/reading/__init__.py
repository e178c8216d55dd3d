"""Reads tables of a lake as DataFrames: scans, their pruning, deleted rows, the change feed."""
