"""The `outcore` command and the frame of its methods."""
