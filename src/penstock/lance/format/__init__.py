"""What a partitioned namespace is on disk: the manifest, its leaves, their columns and their names."""
