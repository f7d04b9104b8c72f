"""Terms of nuclei, one-electron integrals and the overlap in a gradient, by PySCF's derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.gradients.densities import Densities, Matrix
    from outcore.job.world import World

MATRICES = 16  # matrices of n*n doubles that are held at a time


def nuclei(mol: Any) -> Matrix:
    """[atom][x] of the repulsion of nuclei (Hartree/Bohr)."""
    from pyscf.grad import rhf

    return np.asarray(rhf.grad_nuc(mol))


def one_electron(world: World, mol: Any, mf: Any, densities: Densities) -> Matrix:
    """[atom][x] of kinetic energy, attraction, potentials and overlap: this process's share, atoms dealt out in
    turn (Hartree/Bohr). mf: a mean-field object of the molecule. Not collective."""
    from pyscf.grad import rhf

    found = np.zeros((mol.natm, 3))
    total, weighted = densities.total, densities.weighted
    derivative = rhf.GradientsBase(mf).hcore_generator(mol)
    overlap = mol.intor("int1e_ipovlp", comp=3)  # nabla on the first function
    for atom in range(world.rank, mol.natm, world.size):
        begin, end = mol.aoslice_by_atom()[atom, 2:]
        found[atom] += np.einsum("xmn,mn->x", derivative(atom), total)
        found[atom] += np.einsum("xmn,mn->x", overlap[:, begin:end], weighted[begin:end])
    return found
