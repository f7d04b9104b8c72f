"""Occupations of an SCF other than the lowest orbitals: electrons of each irrep, or the orbitals that overlap most
with given ones (Gilbert, Besley, Gill, J. Phys. Chem. A 112, 13164 (2008))."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError

if TYPE_CHECKING:
    from pyscf.gto import Mole

Electrons = dict[str, int | tuple[int, int]]
_IRREP = re.compile(r"([A-Za-z0-9'\"]+)=([0-9]+)(?:/([0-9]+))?")
_SWAP = re.compile(r"([ab]?)([0-9]+):([0-9]+)")


def irreps(text: str) -> Electrons:
    """Reads electrons of irreps for PySCF's `irrep_nelec`: "A1=6,B1=2", or "A1=3/3,B1=2/1" for each spin.

    Raises OutcoreError (EINVAL)."""
    found: Electrons = {}
    for word in text.split(","):
        match = _IRREP.fullmatch(word.strip())
        if match is None or match[1] in found:
            raise _wrong(
                f"--irrep-nelec {text}", "names and electrons are needed, such as A1=6,B1=2 or A1=3/3,B1=2/1"
            )
        found[match[1]] = int(match[2]) if match[3] is None else (int(match[2]), int(match[3]))
    return found


def check_irreps(mol: Mole, wanted: Electrons) -> None:
    """Raises OutcoreError (EINVAL) for irreps that the molecule lacks, or more electrons than it has."""
    names = list(mol.irrep_name)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise _wrong(
            f"--irrep-nelec {unknown[0]}", f"the point group {mol.groupname} has {', '.join(names)} here"
        )
    count = sum(each if isinstance(each, int) else sum(each) for each in wanted.values())
    if count > mol.nelectron:
        raise _wrong("--irrep-nelec", f"{count} electrons are more than the {mol.nelectron} of the molecule")


def swaps(text: str) -> list[tuple[str, int, int]]:
    """Reads pairs of orbitals, counted from 1, whose occupations are exchanged: "5:6", or "a5:6" and "b5:6" for one
    spin.

    Raises OutcoreError (EINVAL)."""
    found = [_SWAP.fullmatch(word.strip()) for word in text.split(",")]
    if not all(found):
        raise _wrong(f"--swap {text}", "pairs of orbitals are needed, such as 5:6, or a5:6 of spin alpha")
    return [(each[1], int(each[2]), int(each[3])) for each in found if each is not None]


def swapped(occupied: Any, pairs: list[tuple[str, int, int]]) -> Any:
    """Occupations with those of the pairs exchanged. Raises OutcoreError (EINVAL) if that changes nothing."""
    new = np.array(occupied, float)
    spins: dict[str, Any] = {"": [new] if new.ndim == 1 else list(new), "a": new[:1], "b": new[1:2]}
    for spin, i, j in pairs:
        if spin and new.ndim == 1:
            raise _wrong(f"--swap {spin}{i}:{j}", "orbitals of one spin are those of --uhf")
        if not 1 <= min(i, j) <= max(i, j) <= new.shape[-1]:
            raise _wrong(f"--swap {spin}{i}:{j}", f"there are {new.shape[-1]} orbitals")
        for each in spins[spin]:
            each[[i - 1, j - 1]] = each[[j - 1, i - 1]]
    if np.array_equal(new, occupied):
        raise _wrong("--swap", "the occupations stay as they are")
    return new


def hold(mf: Any, coefficients: Any, occupied: Any) -> None:
    """Makes an SCF occupy the orbitals that overlap most with the occupied ones among these, in every cycle."""
    c, o, overlap = np.asarray(coefficients), np.asarray(occupied), mf.get_ovlp()

    def chosen(present: Any, reference: Any) -> Any:
        """1 for the present orbitals that overlap most with the reference, as many as it has; 0 for the others."""
        weights = np.sum((reference.T @ overlap @ present) ** 2, axis=0)
        picked = np.zeros(present.shape[1])
        picked[np.argsort(-weights, kind="stable")[: reference.shape[1]]] = 1
        return picked

    def get_occ(mo_energy: Any = None, mo_coeff: Any = None) -> Any:
        present = np.asarray(mf.mo_coeff if mo_coeff is None else mo_coeff)
        if o.ndim == 2:
            return np.array([chosen(p, r[:, n > 0]) for p, r, n in zip(present, c, o, strict=True)])
        pairs = chosen(present, c[:, o > 1])
        if not (o == 1).any():
            return 2 * pairs
        rest = np.flatnonzero(pairs == 0)
        pairs[rest] = chosen(present[:, rest], c[:, o == 1]) / 2
        return 2 * pairs

    mf.get_occ = get_occ


def with_irreps(mol: Mole) -> Mole:
    """The molecule with its point group. Raises OutcoreError (EINVAL) if it has none."""
    from outcore.chem.symmetry import with_symmetry

    found = with_symmetry(mol, "auto")
    if found is None:
        raise _wrong("--irrep-nelec", "the molecule has no symmetry: its point group is C1")
    return found


def smear(mf: Any, width: float) -> Any:
    """The object with occupations of a Fermi distribution (Mermin, Phys. Rev. 137, A1441 (1965)) of this width
    (Hartree). With UHF each spin keeps its number of electrons."""
    from pyscf.scf import addons

    return addons.smearing(mf, sigma=width, method="fermi", fix_spin=bool(mf.istype("UHF")))


def smeared(mf: Any) -> list[str]:
    """Lines about the energies of a smeared SCF; an empty list for other SCFs."""
    if not mf.istype("_SmearingSCF"):
        return []
    return [
        f"free energy {mf.e_free:.10f} Eh at a width of {mf.sigma:g} Eh, entropy {mf.entropy:.6f}; "
        f"{mf.e_zero:.10f} Eh without smearing, about"
    ]


def smearing_as_json(mf: Any) -> dict[str, float] | None:
    if not mf.istype("_SmearingSCF"):
        return None
    return {
        "width_hartree": float(mf.sigma),
        "entropy": float(mf.entropy),
        "free_energy_hartree": float(mf.e_free),
        "energy_at_zero_hartree": float(mf.e_zero),
    }


def _wrong(attempted: str, detail: str) -> OutcoreError:
    return OutcoreError(errno.EINVAL, attempted, detail=detail)
