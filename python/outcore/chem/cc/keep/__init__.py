"""Checkpoints of coupled cluster: a stopped run leaves one, and another run goes on from it."""
