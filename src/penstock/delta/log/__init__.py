"""The transaction log of a Delta table: its actions, commits, features and properties."""
