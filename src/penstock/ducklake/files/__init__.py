"""Reads and writes delete files, and reads the data files that other programs wrote."""
