"""Reads and changes the metadata database: its tables, what a snapshot shows, which files a query needs."""
