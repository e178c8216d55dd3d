"""Defines columns, their types and their statistics: pure values that every format and every package shares."""
