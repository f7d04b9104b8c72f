"""Arrays of all processes: in memory, on a node, on disk."""
