"""Configuration interaction: all determinants of some orbitals."""
