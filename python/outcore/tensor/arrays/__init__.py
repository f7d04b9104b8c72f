"""Extended arrays, the places their tiles lie in, and their files."""
