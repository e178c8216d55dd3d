"""Statements that change rows which are there: deletes, updates, merges."""
