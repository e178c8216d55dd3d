"""The files of a lake besides its data files of its own: delete files, and files that other programs wrote."""
