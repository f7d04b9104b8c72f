"""Products of the transformed Hamiltonian of converged CCSD amplitudes with excited, ionised and attached states.

transformed: intermediates that are made once.
vectors: what a search has to know of a kind of state.
guess: what it begins with.
singlets, ionized, attached: one kind each.
left_singlets, one_particle: left vectors, and densities between states.
"""
