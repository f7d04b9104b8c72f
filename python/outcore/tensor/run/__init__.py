"""Runs planned products: panels, threads, progress."""
