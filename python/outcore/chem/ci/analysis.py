"""Analysis of states of a CI: largest determinants, weights by excitation, natural orbitals, moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.chem.ci import determinants

if TYPE_CHECKING:
    from pathlib import Path

    from outcore.chem.ci.densities import Densities
    from outcore.chem.ci.determinants import Masks
    from outcore.chem.ci.hamiltonian import Hamiltonian, Integers, Matrix
    from outcore.chem.ci.orbitals import ActiveSpace
    from outcore.chem.ci.vector import Vectors

DEBYE = 2.541746  # Debye in an atomic unit of the dipole moment
_WHOLE = 0.02  # tolerance for <L_z^2> of a state with a single |M_L|


@dataclass(frozen=True)
class Determinant:
    """alpha, beta: strings over the caller's orbitals, bit q = orbital q. The sign of the coefficient refers to
    these orbitals in ascending order, as in PySCF."""

    coefficient: float
    alpha: int
    beta: int

    def occupation(self, orbitals: int) -> str:
        """One character for each orbital in the caller's order: 2, a, b or 0."""
        return "".join("0ab2"[(self.alpha >> q & 1) + 2 * (self.beta >> q & 1)] for q in range(orbitals))


def to_callers(masks: Masks, permutation: Integers) -> tuple[list[int], Integers]:
    """Translates strings over sorted orbitals into strings over the caller's orbitals. Returns also the signs."""
    strings, signs = [], np.ones(len(masks), np.int64)
    for k, mask in enumerate(masks):
        occupied = [int(permutation[q]) for q in determinants.listed(int(mask))]
        strings.append(determinants.mask(occupied))
        crossed = sum(p > q for i, p in enumerate(occupied) for q in occupied[i + 1 :])
        signs[k] = -1 if crossed & 1 else 1
    return strings, signs


def largest(states: Vectors, root: int, hamiltonian: Hamiltonian, count: int) -> list[Determinant]:
    """The determinants with the largest coefficients, the largest first. Collective; all processes get them.

    The first coefficient is positive: the sign of a state has no meaning."""
    space, best = states.tiling.space, largest_elements(states, root, count)
    a, a_signs = to_callers(space.alpha.strings[[each[1] for each in best]], hamiltonian.permutation)
    b, b_signs = to_callers(space.beta.strings[[each[2] for each in best]], hamiltonian.permutation)
    values = np.array([each[0] for each in best]) * a_signs * b_signs
    if len(values) and values[0] < 0:
        values = -values
    return [Determinant(float(c), i, j) for c, i, j in zip(values, a, b, strict=True)]


def largest_elements(states: Vectors, root: int, count: int) -> list[tuple[float, int, int]]:
    """The largest elements with their indices [alpha string][beta string], the largest first. Collective; all
    processes get them."""
    parity = states.tiling.space.parity
    found: list[tuple[float, int, int]] = []
    least = 0.0
    with states.world.together("largest determinants of a CI", root, count):
        for tile in states.tiles():
            block = np.asarray(states.get(root, tile))
            flat = np.flatnonzero(abs(block) > least)
            if len(flat) > count:
                flat = flat[np.argpartition(abs(block.flat[flat]), len(flat) - count)[-count:]]
            rows, columns = np.unravel_index(flat, block.shape)
            for row, column in zip(rows, columns, strict=True):
                i, j = tile.first[0] + int(row), tile.first[1] + int(column)
                found.append((float(block[row, column]), i, j))
                if parity and not tile.on_diagonal:
                    found.append((parity * float(block[row, column]), j, i))
            found = sorted(found, key=_by_size)[:count]
            if len(found) == count:
                least = abs(found[-1][0])
    gathered = [each for part in states.world.gather(found) for each in part]
    return sorted(gathered, key=_by_size)[:count]


def _by_size(entry: tuple[float, int, int]) -> tuple[float, int, int]:
    return -round(abs(entry[0]), 12), entry[1], entry[2]  # a fixed order of equal sizes


def weights(states: Vectors, root: int, reference: tuple[int, int]) -> Matrix:
    """Weights [a][b]: sums of squared coefficients of the determinants that are a alpha and b beta excitations away
    from a reference (strings over sorted orbitals). Collective; all processes get them."""
    space = states.tiling.space
    excited = [
        (count - determinants.count(strings & np.uint64(mask))).astype(np.int64)
        for count, strings, mask in zip(
            space.electrons, (space.alpha.strings, space.beta.strings), reference, strict=True
        )
    ]
    found = np.zeros((space.electrons[0] + 1, space.electrons[1] + 1))
    with states.world.together("weights of a CI", root, reference):
        for tile in states.tiles():
            block = np.asarray(states.get(root, tile), np.float64) ** 2
            (r, c), (height, width) = tile.first, tile.shape
            found += _by_levels(block, excited[0][r : r + height], excited[1][c : c + width], found.shape)
            if space.parity and not tile.on_diagonal:
                found += _by_levels(
                    block.T, excited[0][c : c + width], excited[1][r : r + height], found.shape
                )
    return np.asarray(states.world.all_reduce(found))


def _by_levels(squares: Matrix, rows: Integers, columns: Integers, shape: tuple[int, ...]) -> Matrix:
    left = (rows[:, None] == np.arange(shape[0])).astype(np.float64)
    right = (columns[:, None] == np.arange(shape[1])).astype(np.float64)
    return np.asarray(left.T @ squares @ right)


def by_excitation(levels: Matrix) -> Matrix:
    """Weights by the total number of excitations, from those by excitations of each spin."""
    found = np.zeros(sum(levels.shape) - 1)
    for (a, b), weight in np.ndenumerate(levels):
        found[a + b] += weight
    return found


# ---- one-particle densities ----


@dataclass(frozen=True)
class NaturalOrbitals:
    """occupations: of natural orbitals, descending. rotation: (sorted orbital, natural orbital). irreps: of each
    natural orbital."""

    occupations: Matrix
    rotation: Matrix
    irreps: Integers


def natural(density: Matrix, hamiltonian: Hamiltonian) -> NaturalOrbitals:
    """Natural orbitals of a density matrix over sorted orbitals, of both spins together. Each irrep is diagonalized
    by itself."""
    n = hamiltonian.orbitals
    occupations, rotation = np.zeros(n), np.zeros((n, n))
    for irrep in range(hamiltonian.groups):
        which = np.flatnonzero(hamiltonian.irreps == irrep)
        if not len(which):
            continue
        values, vectors = np.linalg.eigh((density + density.T)[np.ix_(which, which)] / 2)
        largest_part = vectors[abs(vectors).argmax(0), np.arange(len(which))]
        occupations[which] = values
        rotation[np.ix_(which, which)] = vectors * np.where(largest_part < 0, -1.0, 1.0)
    order = np.argsort(-occupations, kind="stable")
    return NaturalOrbitals(occupations[order], rotation[:, order], hamiltonian.irreps[order])


def spin_square(electrons: tuple[int, int], found: Densities) -> float:
    """<S^2>, if both spins have the same orbitals."""
    excess = (electrons[0] - electrons[1]) / 2
    return float(excess * (excess + 1) + electrons[1] - np.einsum("pqqp", found.mixed))


def spin_square_of(space: ActiveSpace, electrons: tuple[int, int], found: Densities) -> float:
    """<S^2>, also if the spins have different orbitals, with the core electrons."""
    overlap = space.overlap
    (a, b), (core_a, core_b) = space.coefficients, space.core
    excess = (electrons[0] - electrons[1]) / 2
    both = core_a.T @ overlap @ core_b
    of_a, of_b = a.T @ overlap @ core_b, core_a.T @ overlap @ b
    total = excess * (excess + 1) + electrons[1] + space.frozen - np.sum(both**2)
    total -= np.einsum("pj,qj,pq->", of_a, of_a, found.alpha) + np.einsum(
        "ir,is,rs->", of_b, of_b, found.beta
    )
    active = a.T @ overlap @ b
    return float(total - np.einsum("ps,qr,pqrs->", active, active, found.mixed, optimize=True))


def densities_in_functions(space: ActiveSpace, alpha: Matrix, beta: Matrix) -> tuple[Matrix, Matrix]:
    """One-particle densities of both spins over basis functions, from those over sorted active orbitals, with the
    core."""
    found = [
        coefficients @ density @ coefficients.T + core @ core.T
        for coefficients, core, density in zip(space.coefficients, space.core, (alpha, beta), strict=True)
    ]
    return found[0], found[1]


def density_in_functions(space: ActiveSpace, alpha: Matrix, beta: Matrix) -> Matrix:
    """The sum of `densities_in_functions` over the spins."""
    return np.sum(densities_in_functions(space, alpha, beta), axis=0)  # type: ignore[no-any-return]


def dipole(space: ActiveSpace, alpha: Matrix, beta: Matrix) -> Matrix:
    """The dipole moment in atomic units. That of a charged molecule refers to the origin."""
    mol = space.mol
    with mol.with_common_origin((0.0, 0.0, 0.0)):
        operator = mol.intor_symmetric("int1e_r", comp=3)
    nuclear = mol.atom_charges() @ mol.atom_coords()
    density = density_in_functions(space, alpha, beta)
    return np.asarray(nuclear - np.einsum("xpq,qp->x", operator, density))


def transition_dipole(space: ActiveSpace, alpha: Matrix, beta: Matrix) -> Matrix:
    """The transition dipole in atomic units, from transition densities over sorted active orbitals."""
    mol = space.mol
    with mol.with_common_origin((0.0, 0.0, 0.0)):
        operator = mol.intor_symmetric("int1e_r", comp=3)
    total = np.zeros((mol.nao, mol.nao))
    for coefficients, density in zip(space.coefficients, (alpha, beta), strict=True):
        total += coefficients @ density @ coefficients.T
    return np.asarray(-np.einsum("xpq,qp->x", operator, total))


# ---- linear molecules ----


def axial_momentum(space: ActiveSpace, one: tuple[Matrix, Matrix], two: tuple[Matrix, ...]) -> float:
    """<L_z^2> of the active electrons around the axis of a linear molecule. one, two: as in Densities."""
    mol = space.mol
    axis = _axis(mol)
    with mol.with_common_origin(mol.atom_coords()[0]):
        components = mol.intor("int1e_cg_irxp", comp=3)  # i (r x p)
    operator = np.einsum("x,xpq->pq", axis, components)
    a, b = (c.T @ operator @ c for c in space.coefficients)
    # L = -i sum_pq l_pq p+ q with l real and antisymmetric, so that L^2 = - (sum l_pq p+ q)^2.
    total = float(np.einsum("pq,qs,ps->", a, a, one[0]) + np.einsum("pq,qs,ps->", b, b, one[1]))
    aa, ab, bb = two
    total += float(np.einsum("pq,rs,pqrs->", a, a, aa) + np.einsum("pq,rs,pqrs->", b, b, bb))
    total += 2 * float(np.einsum("pq,rs,pqrs->", a, b, ab))
    return -total


def _axis(mol: Any) -> Matrix:
    coordinates = mol.atom_coords()
    along = coordinates - coordinates[0]
    far = along[np.argmax(np.linalg.norm(along, axis=1))]
    length = float(np.linalg.norm(far))
    return np.asarray(far / length) if length else np.array([0.0, 0.0, 1.0])


def linear_label(space: ActiveSpace, irrep: int, momentum: float) -> str:
    """A term such as Sigma_g+ or Pi_u. "" if <L_z^2> belongs to no single |M_L|: the state is a mixture, or the
    active orbitals are not complete shells."""
    size = np.sqrt(max(momentum, 0.0))
    number = round(float(size))
    if abs(momentum - number**2) > _WHOLE * max(1, number):
        return ""
    name = space.hamiltonian.names[irrep]
    word = (
        ("Sigma", "Pi", "Delta", "Phi", "Gamma", "Eta", "Theta", "Iota")[number]
        if number < 8
        else f"{number}"
    )
    parity = name[-1] if name[-1] in "gu" else ""
    sign = ""
    if number == 0:
        even = {"Ag": "+", "B1u": "+", "A1": "+", "B1g": "-", "Au": "-", "A2": "-"}
        if name not in even:
            return ""
        sign = even[name]
    return word + (f"_{parity}" if parity else "") + sign


# ---- files ----


def write_molden(path: Path, space: ActiveSpace, orbitals: NaturalOrbitals) -> None:
    """Core orbitals (occupation 2) and natural orbitals, in Molden's format. Raises OutcoreError."""
    from pyscf.tools import molden

    from outcore.base.errors import as_outcore_error

    coefficients = np.hstack([space.core[0], space.coefficients[0] @ orbitals.rotation])
    occupations = np.concatenate([np.full(space.frozen, 2.0), orbitals.occupations])
    names = space.hamiltonian.names
    labels = ["core"] * space.frozen + [names[each] for each in orbitals.irreps]
    try:
        molden.from_mo(space.mol, str(path), coefficients, symm=labels, occ=occupations)
    except OSError as error:
        raise as_outcore_error(error, f"write {path}") from error
