"""Holds the Java sources that `penstock.spark.jvm` compiles."""
