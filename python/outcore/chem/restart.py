"""Checkpoints of an SCF: orbitals from which another run continues, on any number of processes.

They lie in the directory that `--checkpoint` names, below ORBITALS, for every method. A run of the same problem
continues from them. `--restart` accepts those of a run of any method with the same functions, electrons, kind (RHF,
ROHF, UHF) and one-electron Hamiltonian.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outcore.base.errors import OutcoreError
from outcore.chem import mean_field, orbital_file, problem
from outcore.chem.reference import mark_canonical
from outcore.keep import stages
from outcore.keep.problem import Problem

if TYPE_CHECKING:
    from outcore.chem.problem import Settings
    from outcore.job.world import World
    from outcore.keep.checkpoint import Checkpoint as Saved

Array = np.ndarray[Any, np.dtype[Any]]

ORBITALS = "orbitals"  # name in the directory of a checkpoint
WHAT = "SCF orbitals"
FORMAT = 2
_NAMES = ("mo_coeff", "mo_energy", "mo_occ")
_OF_STATE = (
    "symmetry",
    "irrep_nelec",
    "swapped",
    "sigma",
)  # settings that may differ if the orbitals only start an SCF
_ORTHONORMAL = 1e-6
_HAMILTONIAN = 1e-9  # relative to its largest element: differences between processors


class Checkpoint:
    """Keeps the orbitals of the newest cycle under a name. Belongs to one process, the one that drives the SCF;
    not collective. Raises OutcoreError; a save that fails leaves the previous checkpoint.

    `more`: further settings that the orbitals depend on, such as those of a fitting."""

    def __init__(
        self, mf: Any, method: str, name: str | os.PathLike[str], more: Settings | None = None
    ) -> None:
        self._name = Path(name)
        self._record = _problem(mf, method, more).as_json()
        self._hamiltonian = _hamiltonian(mf)
        self._mf = mf
        self.nearly_degenerate = (
            False  # orbitals of a cycle, so that the least noise may have chosen the state
        )
        if not self._name.absolute().parent.is_dir():
            raise OutcoreError(errno.ENOENT, "write checkpoint", path=self._name, detail="no such directory")

    def cycle(self, state: dict[str, Any], number: int) -> None:
        """For mf.callback: saves in every cycle. number: of the cycle, from 1."""
        orbitals = {key: state[key] for key in _NAMES}
        self.save(orbitals, number, float(state["e_tot"]), converged=False)

    def finish(self, stability: dict[str, Any] | None = None) -> None:
        """Saves the final orbitals of the mean-field object, and the report on its stability."""
        orbitals = {key: getattr(self._mf, key) for key in _NAMES}
        energy, converged = float(self._mf.e_tot), bool(self._mf.converged)
        self.save(orbitals, int(self._mf.cycles), energy, converged=converged, stability=stability)

    def save(
        self,
        orbitals: dict[str, Array],
        cycle: int,
        energy: float,
        *,
        converged: bool,
        stability: dict[str, Any] | None = None,
    ) -> None:
        """orbitals: mo_coeff [n][orbitals] (UHF: [2][n][orbitals]), mo_energy (Hartree), mo_occ."""
        facts = {
            "cycle": cycle,
            "energy_hartree": energy,
            "converged": converged,
            "conv_tol": float(self._mf.conv_tol),
            "conv_tol_grad": mean_field.gradient(self._mf),
            "integrals": _integrals(self._mf),
            "nearly_degenerate": self.nearly_degenerate
            or bool(getattr(self._mf, "nearly_degenerate", False)),
            "stability": stability,
        }
        arrays = {key: np.asarray(each) for key, each in orbitals.items()}
        stages.save(self._name, self._record, {"hamiltonian": self._hamiltonian, **arrays}, facts)


@dataclass(frozen=True)
class FoundOrbitals:
    """Orbitals of a checkpoint or a file."""

    orbitals: dict[str, Array]
    meta: dict[str, Any]
    same: bool  # they are of the same problem, not only of the same functions

    @property
    def nearly_degenerate(self) -> bool:
        """Whether the least noise may have chosen their state."""
        return self.same and bool(self.meta.get("nearly_degenerate", False))

    @property
    def stability(self) -> dict[str, Any] | None:
        """The report on stability of the run that has kept the orbitals; None if it made none."""
        return self.meta.get("stability") if self.same else None

    def density(self, mf: Any) -> Array:
        """The density matrix from which an SCF starts."""
        return np.asarray(mf.make_rdm1(self.orbitals["mo_coeff"], self.orbitals["mo_occ"]))

    def finished(self, mf: Any) -> bool:
        """Whether they are converged as far as `mf` demands; if not, an SCF continues from them."""
        if not self.same:
            return False
        reached = self.meta.get("conv_tol_grad") or self.meta["conv_tol"] ** 0.5
        enough = self.meta["conv_tol"] <= mf.conv_tol and reached <= mean_field.gradient(mf)
        alike = self.meta.get("integrals", _integrals(mf)) == _integrals(mf)
        return bool(self.meta["converged"] and enough and alike)

    def exhausted(self, mf: Any) -> bool:
        """Whether they have not converged in as many cycles as `mf` may take. A command that accepts them as they
        are must not continue the SCF: it would get other orbitals than the same command got before."""
        return self.same and not self.meta["converged"] and self.meta["cycle"] >= mf.max_cycle

    def restore(self, mf: Any) -> None:
        """Restores a mean-field object to its state when its orbitals were kept."""
        for name in _NAMES:
            setattr(mf, name, self.orbitals[name])
        mf.e_tot, mf.cycles = self.meta["energy_hartree"], self.meta["cycle"]
        mf.converged = bool(self.meta["converged"])
        if mf.converged:
            mark_canonical(mf)


def begin(
    mf: Any,
    method: str,
    world: World,
    say: Callable[[str], None],
    *,
    checkpoint: Path | None,
    restart: Path | None,
    more: Callable[[], Settings] = dict,
) -> tuple[FoundOrbitals | None, Checkpoint | None]:
    """The orbitals that an SCF begins with, at all processes, and the checkpoint that keeps its orbitals, at the
    first. Collective.

    Orbitals in the directory `checkpoint`, of a run of the same problem, come before those of the directory or file
    `restart`. `more`: see Checkpoint; called at the first process.

    Raises OutcoreError, at all processes: ENOENT (none in `restart`), and as `load`."""
    if checkpoint is not None:
        stages.Stages(world, checkpoint)
    found, keeper = None, None
    with world.together("kept orbitals"):
        if world.rank == 0:
            if checkpoint is not None:
                settings = more()
                found = find(mf, method, checkpoint / ORBITALS, settings)
                keeper = Checkpoint(mf, method, checkpoint / ORBITALS, settings)
                if found is not None:
                    say(f"goes on from {_told(found)} of {checkpoint}")
            if restart is not None and found is None and orbital_file.is_one(restart):
                found = FoundOrbitals(orbital_file.start(mf, restart), {}, same=False)
                say(f"begins with the orbitals of {restart}")
            if restart is not None and found is None:
                orbitals, meta = load(mf, method, restart / ORBITALS, of_any_method=True)
                found = FoundOrbitals(orbitals, meta, same=False)
                say(f"restart from {_told(found)} of {restart}")
    return world.broadcast(found), keeper


def _integrals(mf: Any) -> list[float | None] | None:
    """The accuracy of stored two-electron integrals, which affects the energy a little; None if none are stored."""
    stored = getattr(mf, "settings", None)
    return None if stored is None else [stored.allowed_error, stored.screening]


def _told(found: FoundOrbitals) -> str:
    return f"cycle {found.meta['cycle']} (E = {found.meta['energy_hartree']:.10f})"


def find(
    mf: Any, method: str, name: str | os.PathLike[str], more: Settings | None = None
) -> FoundOrbitals | None:
    """As `load`; None if there is no checkpoint."""
    try:
        orbitals, meta = load(mf, method, name, more)
    except OutcoreError as error:
        if error.errno != errno.ENOENT:
            raise
        return None
    return FoundOrbitals(orbitals, meta, same=True)


def load(
    mf: Any,
    method: str,
    name: str | os.PathLike[str],
    more: Settings | None = None,
    *,
    of_any_method: bool = False,
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The orbitals in a checkpoint, by name, and its metadata. `of_any_method`: accept those of other methods,
    which may have `more` settings. Not collective.

    Raises OutcoreError: ENOENT, EIO (damaged), ENOTSUP (another format), EINVAL (another problem or method; the
    error names the settings that differ).
    """
    wanted = _problem(mf, method, more)
    if of_any_method:
        for setting in _OF_STATE:
            wanted.settings.pop(setting, None)
    with stages.opened(name, wanted, f"restart {method}", of_any_method=of_any_method) as saved:
        meta = saved.meta
        _check(saved, mf, name)
        present, found = _hamiltonian(mf), saved["hamiltonian"]
        if not abs(found - present).max() <= _HAMILTONIAN * max(1.0, abs(present).max()):
            raise OutcoreError(
                errno.EINVAL,
                f"restart {method}",
                path=name,
                detail="it is of another one-electron Hamiltonian (a field, an environment, relativity)",
            )
        orbitals = {each: saved[each] for each in _NAMES}
    _check_orbitals(mf, orbitals, name)
    return orbitals, meta


def density(
    mf: Any, method: str, name: str | os.PathLike[str], more: Settings | None = None
) -> tuple[Array, dict[str, Any]]:
    """The density matrix of the orbitals in a checkpoint, and its metadata. As `load`."""
    orbitals, meta = load(mf, method, name, more)
    return np.asarray(mf.make_rdm1(orbitals["mo_coeff"], orbitals["mo_occ"])), meta


def _problem(mf: Any, method: str, more: Settings | None) -> Problem:
    settings = {"method": method, **problem.mean_field(mf), **(more or {})}
    return Problem(WHAT, FORMAT, settings, problem.ROUNDED)


def _hamiltonian(mf: Any) -> Array:
    """The one-electron Hamiltonian: it shows fields and environments that users have added, which no list of
    settings is sure to cover."""
    return np.asarray(mf.get_hcore())


def _check(saved: Saved, mf: Any, name: str | os.PathLike[str]) -> None:
    """Checks from the description of a checkpoint that it holds orbitals of these functions. Reads no arrays."""
    meta, functions = saved.meta, mf.mol.nao
    missing = [key for key in ("hamiltonian", *_NAMES) if key not in saved]
    if missing:
        raise _damaged(name, f"it lacks {', '.join(missing)}")
    (form, dtype), (shape, kind) = saved.form("mo_coeff"), saved.form("hamiltonian")
    if form[:-2] not in ((), (2,)) or len(form) < 2 or form[-2] != functions or form[-1] > functions:
        raise _damaged(name, f"orbitals of shape {form} for {functions} functions")
    if shape != (functions, functions) or {dtype, kind} - {"float64", "complex128"}:
        raise _damaged(name, f"a Hamiltonian of shape {shape}, orbitals of {dtype}, Hamiltonian of {kind}")
    for each in ("mo_occ", "mo_energy"):
        if saved.form(each) != ((*form[:-2], form[-1]), "float64"):
            raise _damaged(name, f"{each} of shape {saved.form(each)[0]} for orbitals {form}")
    cycle, energy, converged, tolerance = (
        meta.get(key) for key in ("cycle", "energy_hartree", "converged", "conv_tol")
    )
    near, stability = meta.get("nearly_degenerate", False), meta.get("stability")
    wrong = (
        (type(cycle) is not int or cycle < 0, f"cycle {cycle}"),
        (type(energy) is not float or not math.isfinite(energy), f"energy {energy}"),
        (type(converged) is not bool, f"converged is {converged}"),
        (type(tolerance) is not float or not tolerance > 0, f"conv_tol {tolerance}"),
        (type(near) is not bool, f"nearly_degenerate is {near}"),
        (stability is not None and not _is_report(stability), f"stability {stability}"),
    )
    for is_wrong, detail in wrong:
        if is_wrong:
            raise _damaged(name, detail[:99])


def _is_report(stability: Any) -> bool:
    """Whether it is a `Search.report`."""
    kinds = {"stable": bool, "lowest_eigenvalue_hartree": float, "followed": int}
    return isinstance(stability, dict) and all(
        type(stability.get(key)) is kind for key, kind in kinds.items()
    )


def _check_orbitals(mf: Any, orbitals: dict[str, Array], name: str | os.PathLike[str]) -> None:
    """Checks that the orbitals are orthonormal and hold the electrons of the molecule."""
    for each, values in orbitals.items():
        if not np.isfinite(values).all():
            raise _damaged(name, f"{each} has values that are no numbers")
    overlap, occupations = mf.get_ovlp(), orbitals["mo_occ"]
    coefficients = orbitals["mo_coeff"].reshape(-1, *orbitals["mo_coeff"].shape[-2:])
    with np.errstate(all="ignore"):  # orbitals that overflow are not orthonormal
        for c in coefficients:
            if not abs(c.conj().T @ overlap @ c - np.eye(c.shape[1])).max(initial=0.0) <= _ORTHONORMAL:
                raise _damaged(name, "the orbitals are not orthonormal")
    if occupations.min() < 0 or not abs(occupations.sum() - mf.mol.nelectron) <= _ORTHONORMAL:
        raise _damaged(name, f"occupations of {occupations.sum():g} electrons, not {mf.mol.nelectron}")


def _damaged(name: str | os.PathLike[str], detail: str) -> OutcoreError:
    return stages.damaged("restart", name, detail)
