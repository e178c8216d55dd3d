"""Streams out of tables and into them: offsets, batches, and the memory of what was written."""
