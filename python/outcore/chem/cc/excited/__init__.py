"""Excited, ionised and attached states by the equation-of-motion method: the search, its plan and its results."""
