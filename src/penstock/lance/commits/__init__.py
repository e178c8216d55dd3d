"""Commits writes to a namespace, one writer at a time, and undoes those that broke off."""
