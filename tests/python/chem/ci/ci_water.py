"""Water in a small space, and a program that solves it and may be killed."""

from __future__ import annotations

import dataclasses

import numpy as np
from pyscf import ao2mo, fci, gto, lib, scf

from outcore.chem.ci import hamiltonian as hamiltonians
from outcore.chem.ci import plan, solver
from outcore.chem.ci.space import Space
from outcore.chem.ci.tiles import VectorTiling

ORBITALS = 9
_SEARCHED = 12  # states, among which there are some of every spin


def integrals():
    """Orbitals of RHF/6-31G, the lowest frozen: one- and two-electron integrals, core energy, irreps of C2v."""
    mol = gto.M(atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587", basis="6-31g", symmetry=True, verbose=0)
    mf = scf.RHF(mol)
    mf.conv_tol = 1e-12
    with lib.with_omp_threads(1):
        mf.kernel()
    c, core = mf.mo_coeff[:, 1 : 1 + ORBITALS], mf.mo_coeff[:, :1]
    density = 2 * core @ core.T
    j, k = mf.get_jk(mol, density)
    field = mf.get_hcore() + j - k / 2
    energy = mol.energy_nuc() + 0.5 * np.einsum("ij,ij", density, mf.get_hcore() + field)
    one, two = c.T @ field @ c, ao2mo.restore(1, ao2mo.kernel(mol, c), ORBITALS)
    return one, two, float(energy), np.array(mf.mo_coeff.orbsym[1 : 1 + ORBITALS]) % 10


def save(given, directory):
    """Saves the integrals for `ci_run.py`."""
    one, two, energy, irreps = given
    np.savez(directory / "integrals.npz", one=one, two=two, energy=energy, irreps=irreps)
    return directory


def hamiltonian(given):
    one, two, energy, irreps = given
    order = np.argsort(irreps, kind="stable")
    return hamiltonians.Hamiltonian(
        one=np.ascontiguousarray(one[np.ix_(order, order)]),
        two=np.ascontiguousarray(two[np.ix_(order, order, order, order)]),
        core_energy=energy,
        irreps=irreps[order],
        groups=4,
        group="C2v",
        names=("A1", "A2", "B1", "B2"),
        permutation=order,
    )


def expected(given, roots=1, spin=0):
    """PySCF's energies of the first irrep."""
    one, two, energy, irreps = given
    solve = fci.direct_spin1_symm.FCI()
    solve.orbsym, solve.wfnsym, solve.conv_tol = irreps, 0, 1e-13
    with lib.with_omp_threads(1):
        energies, vectors = solve.kernel(one, two, ORBITALS, (4, 4), nroots=_SEARCHED)
    spins = [fci.spin_op.spin_square0(each, ORBITALS, (4, 4))[1] - 1 for each in vectors]
    return np.array([each + energy for each, s in zip(energies, spins, strict=True) if abs(s - spin) < 1e-3])[
        :roots
    ]


def space(found, parity=1):
    return Space(found, 4, 4, 0, parity)


def small_plan(
    problem, kind, elements, *, slots=1, processes=1, kept=False, roots=1, side=24, nodes=None, **options
):
    """Tasks with at most so many elements of x in their panels. Kind "strips": on disk, with products through
    strips, whose rows take 576 elements of a panel and more. Kind "rows": in the memory of all processes, each of
    which is a node unless `nodes` are given, with products through rows; with two slots nodes have copies."""
    made = plan.make_plan(
        problem,
        VectorTiling(problem, side),
        solver.SearchOptions(**options),
        1 << 30,
        roots=roots,
        processes=processes,
        states_on_disk=kept,
        nodes=nodes or tuple(range(processes)),
    )
    through, kind = kind, {"strips": "disk", "rows": "global"}.get(kind, kind)
    panels = slots * (2 * (2 << 20) + 2 * 8 * elements) + (1 << 20 if through == "rows" else 0)
    packed = options.get("error_bound", 0.0) > 0 and (kind == "disk" or kept)
    made = dataclasses.replace(
        made, kind=kind, packed=packed, overlaps=slots == 2, panel_bytes=panels, cache_bytes=1 << 20
    )
    for dtype in ("float64", "float32"):
        if through == "strips":
            made._made[dtype] = made.products.by_strips(dtype)
            assert made.bands(dtype)
        if through == "rows":
            every = (made.products.by_rows(dtype, count, copied=slots == 2) for count in range(1, 200))
            made._made[dtype] = next(each for each in every if each.deal.work.largest <= elements)
    return made
