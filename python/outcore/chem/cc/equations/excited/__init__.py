"""Products of the transformed Hamiltonian of converged CCSD amplitudes with excited, ionised and attached states.

transformed: intermediates that are made once.
vectors: products and facts that a search needs of a kind of state.
guess: start vectors.
singlets, ionized, attached: one kind each.
left_singlets, one_particle: left vectors, and densities between states.
"""
