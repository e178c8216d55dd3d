"""How changes of a namespace become visible, and how those that broke off are undone."""
