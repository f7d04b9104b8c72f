"""Atomic units in others (CODATA 2018)."""

HARTREE = 27.211386245988  # eV
