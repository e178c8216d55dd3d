"""Reads a namespace: leaves pruned while Spark plans, read by its tasks, and checked."""
