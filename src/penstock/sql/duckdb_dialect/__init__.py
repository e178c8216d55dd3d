"""Runs DuckDB's SQL in Spark: DuckDB binds a query to a lake's tables, and its bound plan is written as Spark SQL.

A bound plan leaves nothing to guess: names are resolved, macros and stars expanded, types known, casts explicit and
subqueries flattened. What is left is to say each operator, function and cast in Spark's words, or to refuse it.
"""
