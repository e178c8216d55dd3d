"""What each page shows: a function a page, from what its address asks for to the values of its template."""
