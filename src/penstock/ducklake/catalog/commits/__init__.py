"""Changes of the catalog: staged by a transaction, checked against other writers, committed as one snapshot."""
