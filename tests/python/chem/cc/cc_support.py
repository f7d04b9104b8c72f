"""Molecules of the tests of coupled cluster, and their references."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outcore.chem.cc.plan.room import Room

Values = np.ndarray[Any, np.dtype[Any]]

WATER = "O 0 0 0; H 0 0 0.958; H 0 0.92747 -0.23986"
FLUORIDE = "F 0 0 0; H 0 0 0.917"
# with charge and unpaired electrons
AMINO = ("N; H 1 1.008; H 1 1.008 2 105.0", 0, 1)
IMIDOGEN = ("N; H 1 1.03", 0, 2)
BORANE = (
    "B 0.10369114 0 0; H -1.13269886 0 0; H 3.0 0.37149 0; H 3.0 -0.37149 0",
    1,
    1,
)


def mean_field(atoms: str, basis: str) -> Any:
    """A converged mean field of closed shells."""
    import pyscf
    from pyscf import scf

    mf = scf.RHF(pyscf.M(atom=atoms, basis=basis, verbose=0))
    mf.conv_tol = 1e-12
    mf.kernel()
    return mf


def molecule(atoms: str, spin: int = 0, basis: Any = "sto-3g") -> Any:
    import pyscf

    return pyscf.M(atom=atoms, spin=spin, basis=basis, verbose=0)


def open_mean_field(kind: str, molecule: tuple[str, int, int], basis: str) -> Any:
    """UHF or ROHF, converged."""
    import pyscf
    from pyscf import scf

    atoms, charge, spin = molecule
    mf = getattr(scf, kind)(pyscf.M(atom=atoms, charge=charge, spin=spin, basis=basis, verbose=0))
    mf.conv_tol = 1e-12
    mf.kernel()
    return mf


def fitted_mean_field(mol: Any, kind: str = "UHF", field: Values | None = None) -> Any:
    """A tightly converged mean field with fitted integrals. field: added to the one-electron Hamiltonian."""
    from outcore.chem import ri

    mf = getattr(ri, kind)(mol, "cc-pvdz-jkfit", comm=None, memory="1GB", threads=1)
    if field is not None:
        core = mf.get_hcore() + field
        mf.get_hcore = lambda *_: core
    mf.conv_tol, mf.conv_tol_grad = 1e-13, 1e-9
    mf.kernel()
    return mf


def of_whole_molecule(mol: Any, gradient: Values) -> Values:
    """Derivatives of the energy by translations and rotations of the whole molecule: 0, whatever the molecule."""
    sums: Values = np.concatenate([gradient.sum(0), np.cross(mol.atom_coords(), gradient).sum(0)])
    return sums


def with_signs(mf: Any) -> Any:
    """The mean field with signs of orbitals that do not depend on rounding, so that amplitudes of two SCFs
    can be compared."""
    weights = np.random.default_rng(5).random(mf.mol.nao)
    mf.mo_coeff = mf.mo_coeff * np.sign(weights @ np.asarray(mf.mo_coeff))[..., None, :]
    return mf


def fitted_peer(mf: Any, frozen: int = 0) -> Any:
    """PySCF's CCSD with integrals fitted in the auxiliary basis of MP2."""
    from pyscf import df
    from pyscf.cc import dfccsd

    peer = dfccsd.RCCSD(mf, frozen=frozen or None)
    peer.with_df = df.DF(mf.mol, auxbasis=df.make_auxbasis(mf.mol, mp2fit=True))
    peer.conv_tol, peer.conv_tol_normt, peer.max_cycle = 1e-11, 1e-9, 100
    return peer


def random_amplitudes(occupied: int, virtual: int, seed: int = 1) -> tuple[Values, Values]:
    """t1 [i,a] and t2 [i,j,a,b], of typical magnitude."""
    generator = np.random.default_rng(seed)
    t1 = 0.1 * generator.normal(size=(occupied, virtual))
    t2 = 0.1 * generator.normal(size=(occupied, occupied, virtual, virtual))
    return t1, t2 + t2.transpose(1, 0, 3, 2)


def files_of_arrays(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Path]]:
    """Open files of this process for each array on disk that is made from now on, by its name in the plan."""
    found: dict[str, list[Path]] = {}
    right = Room.array

    def array(room: Room, name: str) -> Any:
        before = set(_open_files())
        made = right(room, name)
        found[name] = [each for each in _open_files() if each not in before]
        return made

    monkeypatch.setattr(Room, "array", array)
    return found


def _open_files() -> list[Path]:
    # Files of scratch have no names any more.
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if "(deleted)" in str(each.readlink()):
                found.append(each)
    return found


def flip_a_bit(files: list[Path]) -> None:
    """Flips a bit in the middle of the data of the largest file."""
    file = max(files, key=lambda each: each.stat().st_size)
    data = np.fromfile(file, np.uint8)
    places = np.flatnonzero(data)
    place = int(places[len(places) // 2])
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(bytes([data[place] ^ 16]))
