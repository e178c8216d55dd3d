"""Changes the catalog: what a transaction stages is checked against other writers, and committed as one snapshot."""
