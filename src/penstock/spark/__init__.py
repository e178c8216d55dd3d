"""Connects Penstock to Spark: sessions, types, scans and jobs that all formats share."""
