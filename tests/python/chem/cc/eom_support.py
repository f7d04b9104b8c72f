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
    """A mean field with fitted integrals."""
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
    given: dict[str, Any] = {"memory": "2GB", "threads": 1, "auxbasis": AUXILIARY, **TIGHT, **settings}
    return CCSD(mf, frozen, comm=None, **given)


def dense(equations: Any) -> Values:
    """All eigenvalues of the dense matrix."""
    return np.linalg.eigvals(dense_matrix(equations)[0])


def dense_matrix(equations: Any) -> tuple[Values, list[list[tuple[int, ...]]]]:
    """The matrix, from its products with unit vectors; and the positions of doubles."""
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


class Determinants:
    """EOM-CCSD of closed shells in the space of all determinants of a small molecule, for given amplitudes
    [i,a] and [i,j,a,b]: eigenvectors of the matrix of exp(-T) H exp(T) over the reference, singles and
    doubles. energies: of singlets except the ground state, the lowest first."""

    def __init__(self, mf: Any, t1: Values, t2: Values) -> None:
        import scipy.linalg
        from pyscf import ao2mo, fci

        mol, n, (o, v) = mf.mol, mf.mo_coeff.shape[1], t1.shape
        size = fci.cistring.num_strings(n, o)
        whole = np.eye(size * size).reshape(-1, size, size)

        def matrix(apply: Any) -> Values:
            return np.array([np.asarray(apply(each)).ravel() for each in whole]).T

        links = [fci.cistring.gen_linkstr_index(range(n), o)] * 2

        def excites(p: int, q: int) -> Values:
            unit = np.zeros((n, n))
            unit[p, q] = 1.0
            return matrix(lambda c: fci.direct_nosym.contract_1e(unit, c, n, (o, o), links))

        self._e = np.array([[excites(p, q) for q in range(n)] for p in range(n)])
        core = mf.mo_coeff.T @ mf.get_hcore() @ mf.mo_coeff
        integrals = ao2mo.restore(1, ao2mo.kernel(mol, mf.mo_coeff), n)
        absorbed = fci.direct_spin1.absorb_h1e(core, integrals, n, (o, o), 0.5)
        h = matrix(lambda c: fci.direct_spin1.contract_2e(absorbed, c, n, (o, o)))
        up = [[self._e[o + a, i] for a in range(v)] for i in range(o)]
        t = np.einsum("ia,iaxy->xy", t1, np.array(up))
        for i, a, j, b in np.ndindex(o, v, o, v):
            t += 0.5 * t2[i, j, a, b] * up[i][a] @ up[j][b]
        self._right, self._left = scipy.linalg.expm(t), scipy.linalg.expm(-t)
        zero = np.zeros(size * size)
        zero[0] = 1.0
        ones = [up[i][a] @ zero for i, a in np.ndindex(o, v)]
        pairs = [(x, y) for x in range(o * v) for y in range(x + 1)]
        twos = [up[x // v][x % v] @ ones[y] for x, y in pairs]
        self._basis = np.array([zero, *ones, *twos]).T
        self._dual = np.linalg.pinv(self._basis)
        transformed = self._dual @ self._left @ h @ self._right @ self._basis
        values, vectors = np.linalg.eig(transformed)
        order = np.argsort(values.real)
        assert abs(values.imag).max() < 1e-10
        self._vectors = vectors[:, order].real
        self._inverse = np.linalg.inv(self._vectors)
        self.energies = values[order].real[1:] - values[order].real[0]

    def density(self, one: int, other: int) -> Values:
        """<one|E_pq|other>, [p,q]; 0 is the ground state."""
        left = self._inverse[one] @ self._dual @ self._left
        right = self._right @ self._basis @ self._vectors[:, other]
        found: Values = np.einsum("x,pqxy,y->pq", left, self._e, right, optimize=True)
        return found
