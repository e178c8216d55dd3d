"""Maintenance of lakes: expiring snapshots and deleting the files that nothing needs any more."""
