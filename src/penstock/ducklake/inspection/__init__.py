"""What people are shown of a lake, from the catalog alone: without Spark, and without opening a file."""
