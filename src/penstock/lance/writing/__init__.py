"""Statements that change a namespace."""
