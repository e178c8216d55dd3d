"""Changes rows which are there: deletes, updates, merges."""
