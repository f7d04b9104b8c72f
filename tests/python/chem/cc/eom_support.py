"""References of the tests of EOM-CCSD."""

from __future__ import annotations

from typing import Any

import numpy as np
from cc_support import mean_field

from outcore.chem.cc import CCSD
from outcore.chem.cc.equations.excited.vectors import StateVector

Values = np.ndarray[Any, np.dtype[Any]]

AUXILIARY = "cc-pvdz-ri"
TIGHT = {"conv_tol": 1e-11, "conv_tol_normt": 1e-9}


def fitted(atoms: str, basis: str) -> Any:
    """A mean field of fitted integrals."""
    from pyscf import scf

    found = scf.RHF(mean_field(atoms, basis).mol).density_fit(auxbasis=AUXILIARY)
    found.conv_tol, found.conv_tol_grad = 1e-13, 1e-9
    found.kernel()
    return found


def peer_of(mf: Any, frozen: int = 1) -> Any:
    """PySCF's CCSD of a fitted mean field, with the same fitted integrals as if they were exact."""
    from pyscf import cc, df, lib, scf

    reference = scf.RHF(mf.mol)
    reference.mo_coeff, reference.mo_energy, reference.mo_occ = mf.mo_coeff, mf.mo_energy, mf.mo_occ
    reference.e_tot, reference.converged = mf.e_tot, True
    integrals = df.DF(mf.mol, auxbasis=AUXILIARY).build()._cderi
    reference._eri = lib.dot(integrals.T, integrals)
    found = cc.RCCSD(reference, frozen=frozen)
    found.conv_tol, found.conv_tol_normt, found.max_cycle = 1e-12, 1e-10, 100
    found.kernel()
    return found


def made(mf: Any, frozen: Any = 1, **settings: Any) -> CCSD:
    given: dict[str, Any] = {"memory": "1GB", "threads": 1, "auxbasis": AUXILIARY, **TIGHT, **settings}
    return CCSD(mf, frozen, comm=None, **given)


def dense(equations: Any) -> Values:
    """All eigenvalues."""
    return np.linalg.eigvals(dense_matrix(equations)[0])


def dense_matrix(equations: Any) -> tuple[Values, list[list[tuple[int, ...]]]]:
    """Products with each element of a vector; places of those of doubles."""
    room, (name,) = equations.room, equations.names
    shape = equations.diagonal().shape
    arrays = [room._made(f"{name}{n}") for n in range(2)]
    x, y = (StateVector(np.zeros(shape), (each,)) for each in arrays)
    of_x, of_y = arrays
    layout = of_x.layout
    singles = int(np.prod(shape))
    places = []
    for index in np.ndindex(*of_x.shape):
        images = {index}
        if layout.symmetry.order > 1:
            images.add((index[2], index[3], index[0], index[1]))
        if index == min(images):
            places.append(sorted(images))
    size = singles + len(places)
    matrix = np.zeros((size, size))
    for column in range(size):
        x.singles = np.zeros(shape)
        whole = np.zeros(of_x.shape)
        if column < singles:
            x.singles.flat[column] = 1.0
        else:
            for place in places[column - singles]:
                whole[place] = 1.0
        for tile in layout.stored:
            of_x.put_tile(tile, np.ascontiguousarray(whole[layout.box(tile)]))
        y.singles = equations.multiply(x, y.doubles)
        found = of_y.to_numpy()
        matrix[:singles, column] = y.singles.ravel()
        matrix[singles:, column] = [found[each[0]] for each in places]
    for array in arrays:
        room.release(array)
    return matrix, places
