"""I/O studies of the literature, repeated on this machine: `outcore study NAME`."""
