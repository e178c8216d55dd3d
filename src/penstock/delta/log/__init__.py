"""The transaction log of a Delta table: its versions, and commits of new ones."""
