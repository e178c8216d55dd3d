"""Pure values: types, columns, snapshots, options. No I/O, no Spark."""
