"""Paths, URIs and the files behind them."""
