"""Files of all processes."""
