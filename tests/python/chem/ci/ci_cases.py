"""Hamiltonians and lists of strings for tests of configuration interaction."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from outcore.chem.ci import hamiltonian as hamiltonians


@dataclass
class Strings:
    strings: np.ndarray
    offsets: np.ndarray


def strings(irreps, groups: int, electrons: int) -> Strings:
    """Strings, sorted by irrep and value."""
    irreps = [int(each) for each in irreps]
    by_irrep: list[list[int]] = [[] for _ in range(groups)]
    for chosen in itertools.combinations(range(len(irreps)), electrons):
        irrep = 0
        for orbital in chosen:
            irrep ^= irreps[orbital]
        by_irrep[irrep].append(sum(1 << orbital for orbital in chosen))
    listed = [sorted(each) for each in by_irrep]
    return Strings(
        np.array(list(itertools.chain(*listed)), np.uint64),
        np.cumsum([0, *(len(each) for each in listed)]).astype(np.int64),
    )


def integrals(n: int, seed: int = 0, irreps=None):
    """Random, symmetric integrals; those that the irreps forbid are zero."""
    rng = np.random.default_rng(seed)
    irreps = np.zeros(n, int) if irreps is None else np.asarray(irreps)
    one = rng.standard_normal((n, n))
    two = rng.standard_normal((n, n, n, n)) * 0.2
    pairs = irreps[:, None] ^ irreps
    one = (one + one.T) / 2 * (pairs == 0) + np.diag(np.arange(n) * 1.0)
    two = two + two.transpose(1, 0, 2, 3)
    two = two + two.transpose(0, 1, 3, 2)
    two = (two + two.transpose(2, 3, 0, 1)) / 8
    return one, two * (pairs[:, :, None, None] == pairs)


def random_hamiltonian(n: int, seed: int = 0, irreps=None, core_energy: float = 0.0):
    one, two = integrals(n, seed, irreps)
    names = None if irreps is None else [str(each) for each in range(8)]
    return hamiltonians.make(one, two, irreps=irreps, core_energy=core_energy, names=names or ())


def all_determinants(hamiltonian, electrons, irrep: int = 0):
    """Alpha and beta strings of all determinants of an irrep."""
    irreps, groups = hamiltonian.irreps, hamiltonian.groups
    alpha, beta = (strings(irreps, groups, each) for each in electrons)
    found = [
        (a, b)
        for g in range(groups)
        for a in alpha.strings[alpha.offsets[g] : alpha.offsets[g + 1]]
        for b in beta.strings[beta.offsets[g ^ irrep] : beta.offsets[(g ^ irrep) + 1]]
    ]
    return np.array([a for a, _ in found], np.uint64), np.array([b for _, b in found], np.uint64)


def reference_matrix(hamiltonian, electrons, alpha, beta):
    """The Hamiltonian between determinants, from PySCF."""
    from pyscf import fci
    from pyscf.fci import cistring

    n = hamiltonian.orbitals
    na, nb = (cistring.num_strings(n, each) for each in electrons)
    module = fci.direct_uhf if hamiltonian.unrestricted else fci.direct_spin1
    one = hamiltonian.one if not hamiltonian.unrestricted else np.array(hamiltonian.one)
    two = hamiltonian.two if not hamiltonian.unrestricted else np.array(hamiltonian.two)
    two = module.absorb_h1e(one, two, n, electrons, 0.5)
    rows = cistring.strs2addr(n, electrons[0], alpha.astype(np.int64))
    columns = cistring.strs2addr(n, electrons[1], beta.astype(np.int64))
    found = np.empty((len(alpha), len(alpha)))
    for k, (row, column) in enumerate(zip(rows, columns, strict=True)):
        vector = np.zeros((na, nb))
        vector[row, column] = 1.0
        found[k] = module.contract_2e(two, vector, n, electrons)[rows, columns]
    return found + hamiltonian.core_energy * np.eye(len(alpha))
