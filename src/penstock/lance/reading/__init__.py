"""The rows of a namespace as DataFrames: which leaves a query needs, and what they hold."""
