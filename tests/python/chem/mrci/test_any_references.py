"""Energies of random references against a matrix over all determinants of the definition."""

from __future__ import annotations

import itertools

import mrci_dense
import numpy as np
import pytest
from ci_cases import integrals

from outcore.chem.mrci import MRCI

pytest.importorskip("pyscf")

ORBITALS, INACTIVE, ACTIVE = 7, 1, 3
INTERNAL = INACTIVE + ACTIVE
IRREPS = [0, 1, 0, 1, 0, 1, 1]


def strings(electrons):
    every = itertools.combinations(range(ORBITALS), electrons)
    return np.array([sum(1 << orbital for orbital in chosen) for chosen in every], np.uint64)


def occupations(alpha, beta):
    bits = np.arange(ORBITALS, dtype=np.uint64)
    return ((alpha[:, None] >> bits & np.uint64(1)) + (beta[:, None] >> bits & np.uint64(1))).astype(int)


def random_references(random, electrons, spin):
    """Occupations of active orbitals, all of one irrep, with the lowest one that has a state of this spin."""
    every = [o for o in itertools.product(range(3), repeat=ACTIVE) if sum(o) == electrons - 2 * INACTIVE]
    label = {o: sum(IRREPS[INACTIVE + k] * (n == 1) for k, n in enumerate(o)) % 2 for o in every}
    chosen = [every[k] for k in random.permutation(len(every))]
    first = min((o for o in every if o.count(1) >= spin), key=lambda o: o[1] + 2 * o[2])
    return [first, *(o for o in chosen[:3] if o != first and label[o] == label[first])], label[first]


def expected(one, two, references, electrons, irrep, spin, functional):
    """The energy of the state of this spin that follows the lowest state of the references, its weight in
    that state, and the number of determinants."""
    alpha, beta = (each.ravel() for each in np.meshgrid(*(strings(n) for n in electrons), indexing="ij"))
    found = occupations(alpha, beta)
    inside, outside = found[:, :INTERNAL], found[:, INTERNAL:].sum(1)
    whole = [np.array([2] * INACTIVE + list(each)) for each in references]
    distance = np.min([abs(inside - each).sum(1) for each in whole], axis=0) + outside
    near = (distance <= 4) & ((np.array(IRREPS) * (found == 1)).sum(1) % 2 == irrep)
    given = one, two, alpha[near], beta[near], spin, distance[near] == 0
    return *mrci_dense.followed(*given, functional=functional), int(near.sum())


@pytest.mark.parametrize("functional", ["ci", "aqcc"])
@pytest.mark.parametrize(("electrons", "spin"), [(4, 0), (4, 2), (5, 1), (6, 0), (5, 3)])
@pytest.mark.parametrize(
    "seed", [2, pytest.param(3, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
def test_energies(tmp_path, electrons, spin, seed, functional):
    from pyscf import ao2mo
    from pyscf.tools import fcidump

    random = np.random.default_rng(seed)
    one, two = integrals(ORBITALS, seed, IRREPS)
    references, irrep = random_references(random, electrons, spin)
    dump, listed = tmp_path / "FCIDUMP", tmp_path / "references"
    packed = ao2mo.restore(8, two, ORBITALS)
    symmetry = [each + 1 for each in IRREPS]
    fcidump.from_integrals(str(dump), one, packed, ORBITALS, electrons, ms=spin, orbsym=symmetry, tol=1e-16)
    listed.write_text("\n".join("".join(map(str, each)) for each in references))
    given = {"references": listed, "irrep": str(irrep + 1), "spin": spin, "max_cycle": 300, "comm": None}
    given |= {"functional": functional, "min_weight": 0}
    with MRCI.from_fcidump(dump, inactive=INACTIVE, active=ACTIVE, **given) as ci:
        electrons_of = (electrons + spin) // 2, (electrons - spin) // 2
        wanted, own, count = expected(one, two, references, electrons_of, irrep, spin, functional)
        assert ci.kernel() == pytest.approx(wanted, abs=1e-9)
        assert ci.own_weight() == pytest.approx(own, abs=1e-6)
        assert ci.converged
        assert ci.spin_square() == pytest.approx(spin / 2 * (spin / 2 + 1), abs=1e-6)
        if spin != 2:  # for which vectors have another number of electrons of each spin
            assert ci.records.determinants == count
