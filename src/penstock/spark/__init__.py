"""The engine: Spark sessions, scans and their types."""
