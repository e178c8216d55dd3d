"""Lakes in plain Spark SQL: a catalog of Spark's whose every answer comes from Python."""
