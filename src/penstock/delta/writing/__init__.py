"""Statements that change a Delta table, checkpoints and vacuum."""
