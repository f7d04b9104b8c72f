"""Frozen natural orbitals: virtual orbitals with little second-order density are left out.

Taube, Bartlett, Collect. Czech. Chem. Commun. 70, 837 (2005); J. Chem. Phys. 128, 164101 (2008).
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem.cc.equations.doubles import exchanged
from outcore.chem.cc.equations.integrals import Integrals
from outcore.chem.cc.equations.orbitals import CorrelatedOrbitals, eigenvectors

if TYPE_CHECKING:
    from outcore.chem.cc.equations.spaces import Spaces
    from outcore.chem.cc.plan.room import Room
    from outcore.chem.ri.source import Source
    from outcore.tensor.layout.layout import Tile

Values = np.ndarray[Any, np.dtype[Any]]

ERROR, TRIPLES_ERROR = 0.3, 0.6
"""Errors of the energies of CCSD and of CCSD(T) after the second-order correction, as shares of that correction.
For H2O, HF, N2, C2H4, NH3, CH4, CO, HCN, H2CO, F2 and O3 in double-zeta bases, with thresholds of 1e-2 to 1e-4,
they were at most 0.27 and 0.55 (both for F2; for the others 0.23 and 0.45), compared with PySCF's energies of all
orbitals."""


@dataclass(frozen=True)
class TruncatedOrbitals:
    """active: correlated orbitals; the virtual natural orbitals that stay diagonalize their block of the Fock
    matrix. occupations: of all virtual natural orbitals, falling. energy: second-order energy with all virtual
    orbitals (Hartree)."""

    active: CorrelatedOrbitals
    occupations: Values
    energy: float


def truncate(
    room: Room, spaces: Spaces, source: Source, spin: CorrelatedOrbitals, threshold: float
) -> TruncatedOrbitals:
    """Natural orbitals of closed shells with occupations above a threshold. Collective.

    Raises OutcoreError (EINVAL) if none has."""
    integrals = Integrals.build(room, spaces, source, spin.coefficients)
    found, energy = density(room, integrals, spin)
    occupations, vectors = np.linalg.eigh(-(found + found.T) / 2)
    occupations, vectors = room.world.broadcast((-occupations, vectors))
    kept = int(np.count_nonzero(occupations > threshold))
    with room.world.together("frozen natural orbitals"):
        if not kept:
            raise OutcoreError(
                errno.EINVAL,
                "frozen natural orbitals",
                detail=f"no virtual orbital has an occupation above {threshold:g}; the largest is "
                f"{occupations[0]:.1e}",
            )
    return TruncatedOrbitals(_turned(spin, vectors[:, :kept]), occupations, energy)


def density(room: Room, integrals: Integrals, spin: CorrelatedOrbitals) -> tuple[Values, float]:
    """The second-order density of virtual orbitals, and the second-order energy (Hartree). Collective."""
    t, u = room.array("T"), room.array("U")
    room.contract("Qai,Qbj->aibj", integrals.bvo, integrals.bvo, out=t)
    gaps, cuts = spin.gaps().T, integrals.spaces.v.cuts
    energies = [0.0]

    def divide(tile: Tile) -> None:
        a, b = (slice(cuts[n], cuts[n + 1]) for n in (tile[0], tile[2]))
        values = t.get_tile(tile)
        amplitudes = values / (gaps[a][:, :, None, None] + gaps[b])
        weight = 1.0 if tile[0] == tile[2] else 2.0
        energies.append(weight * float(np.vdot(values, 2.0 * amplitudes - exchanged(amplitudes))))
        t.put_tile(tile, amplitudes)
        u.put_tile(tile, amplitudes - 0.5 * exchanged(amplitudes))

    room.each_tile(t, divide, "amplitudes of second order")
    u.sync()
    energy = float(room.world.all_reduce(sum(energies)))
    found: Values = room.contract("aicj,bicj->ab", u, t, scale=4.0)
    return found, energy


def _turned(spin: CorrelatedOrbitals, vectors: Values) -> CorrelatedOrbitals:
    o = spin.occupied
    turned = eigenvectors(vectors.T @ spin.fock[o:, o:] @ vectors)
    rotation = np.zeros((len(spin.fock), o + vectors.shape[1]))
    rotation[:o, :o] = np.eye(o)
    rotation[o:, o:] = vectors @ turned
    return CorrelatedOrbitals(
        np.ascontiguousarray(spin.coefficients @ rotation), rotation.T @ spin.fock @ rotation, o
    )
