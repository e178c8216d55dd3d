"""Statements that change a Delta table, and what keeps it tidy."""
