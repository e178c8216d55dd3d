"""Java sources, compiled when a lake is registered: see `penstock.spark.java_classes`."""
