"""Equations of coupled cluster on extended arrays, which may lie anywhere.

restricted, unrestricted, methods: residuals of closed and open shells, and those of other methods.
transposed, multipliers, densities: products from the left, the Lambda equations and the densities.
ladder, opposite_ladder, holes, stream: the particle-particle and hole-hole ladders.
triples, open_triples, triple_tasks: (T).
integrals, orbitals, spaces, pairs, doubles, steps: integrals, orbitals and amplitudes as extended arrays.
"""
