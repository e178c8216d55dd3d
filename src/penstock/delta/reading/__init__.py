"""The rows of a Delta table as DataFrames, and which files a query needs."""
