"""Hartree-Fock whose two-electron integrals live on disk (or are recomputed), on one or several processes.

    mf = outcore.chem.scf.RHF(mol, scratch="/scratch/me")
    energy = mf.kernel()

The objects are PySCF mean-field objects: start guess, DIIS, convergence and all later methods are PySCF's;
J and K come from `outcore.chem.integrals`. On several processes (mpiexec) every process makes the same object
and calls the same methods; rank 0 drives the iterations, the others supply their part of J and K, and all end
with the same orbitals and energy.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pyscf.scf import hf, uhf

from outcore import launch
from outcore.chem.accuracy import EnergyError
from outcore.chem.driver import RootDriven
from outcore.chem.integrals import (
    Estimate,
    Matrices,
    Progress,
    Settings,
    Summary,
    TwoElectronIntegrals,
)
from outcore.chem.molecule import integrals_key
from outcore.errors import OutcoreError
from outcore.world import World, shared

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from pyscf.gto import Mole

_WORLD: Any = object()  # default of `comm`: the processes of this job


class _OutOfCore(RootDriven):
    """J and K from `TwoElectronIntegrals` for a PySCF mean-field class.

    Parameters (all by keyword; see `outcore.chem.integrals.Settings` for defaults): `integrals` ("disk",
    "semidirect", "direct" or "auto"), `disk_bytes` (that semidirect and auto may use), `keep` (directory
    in which the integrals stay after the run, and are looked for before they are computed), `error`
    (of the energy, that storing may cause) or `threshold` (of integrals), `placement` ("local": a process
    reads the records it wrote; "global": any of them), `scratch` (directory),
    `memory_bytes` (of all processes together), `threads` (of each process), `record_bytes`, `prefetch`,
    `cache`, `comm` (an mpi4py communicator, or an outcore.World; default all processes of the job, None for this
    process alone).

    `on_estimate(estimate)` is called at rank 0 before integrals are computed, `on_progress(fraction)` while they
    are stored; `stored_summary` says afterwards what was. `close` (or leaving a `with` block) drops the
    integrals and their file.
    Raises OutcoreError, the same on all processes.
    """

    mol: Mole
    _keys = {"settings", "comm", "on_estimate", "on_progress", "stored_summary"}  # noqa: RUF012  (PySCF's convention)

    def __init__(self, mol: Mole, *, comm: Intracomm | World | None = _WORLD, **settings: Any) -> None:
        super().__init__(mol)  # type: ignore[call-arg]
        if "integrals" in settings:
            settings["storage"] = settings.pop("integrals")
        self.settings = Settings(**settings)
        self.comm = launch.world() if comm is _WORLD else comm
        self.direct_scf_tol = self.settings.cutoff  # of integrals that PySCF itself computes
        # Recomputing pays for a small change of the density; stored integrals cost the same for any density,
        # and the full one has no accumulated rounding.
        self.direct_scf = self.settings.storage != "disk"
        self.on_progress: Progress | None = None
        self.on_estimate: Callable[[Estimate], None] | None = None
        self.stored_summary: Summary | None = None
        self._two_electron: TwoElectronIntegrals | None = None
        self._screens = True  # by the density, where the storage does

    @property
    def two_electron(self) -> TwoElectronIntegrals:
        """The integrals of the present molecule, stored if they are kept on disk. Collective when they have to
        be made: integrals of another geometry or basis are never reused."""
        settings = self.settings
        present = self._two_electron
        if present is None or present.key != integrals_key(self.mol) or present.settings != settings:
            self.close()
            present = TwoElectronIntegrals(self.mol, settings, world=self.world)
            with self.world.together("estimate of the integrals"):
                if self.on_estimate is not None and self._root:
                    self.on_estimate(present.estimate())
            if present.keeps:
                self.stored_summary = present.store(self.on_progress if self._root else None)
            self._two_electron = present
        return present

    @property
    def world(self) -> World:
        """The processes that work on it. Collective when asked for the first time."""
        return self.comm if isinstance(self.comm, World) else shared(self.comm)

    @property
    def _root(self) -> bool:
        return self.world.rank == 0

    def get_jk(
        self,
        mol: Mole | None = None,
        dm: Any = None,
        hermi: int = 1,
        with_j: bool = True,
        with_k: bool = True,
        omega: float | None = None,
    ) -> tuple[Any, Any]:
        """J and K of one density matrix [n][n] or many [...][n][n]; collective outside `kernel`.

        hermi: 1 symmetric, 2 antisymmetric, 0 neither. Range-separated integrals (omega) are recomputed by PySCF.
        """
        if omega or (mol is not None and integrals_key(mol) != integrals_key(self.mol)):
            return super().get_jk(mol, dm, hermi, with_j, with_k, omega)  # type: ignore[misc,no-any-return]
        if dm is None:
            dm = self.make_rdm1()  # type: ignore[attr-defined]
        dm = np.asarray(dm)
        if np.iscomplexobj(dm):
            raise OutcoreError(errno.EINVAL, "J and K", detail="complex density matrices are not supported")
        shape = dm.shape
        n = shape[-1]
        densities, symmetry = _by_symmetry(dm.reshape(-1, n, n), hermi)
        coulomb, exchange = self._jk(densities, symmetry)
        if hermi == 0:  # the symmetric parts come first, then the antisymmetric ones
            half = len(symmetry) // 2
            coulomb, exchange = coulomb[:half], exchange[:half] + exchange[half:]
        return (coulomb.reshape(shape) if with_j else None), (exchange.reshape(shape) if with_k else None)

    def _jk(self, densities: Matrices, symmetry: list[int]) -> tuple[Matrices, Matrices]:
        if self.driving:
            self.world.broadcast((symmetry, self._screens))
        return self.two_electron.jk(densities, symmetry, screened=self._screens)

    def prepare(self) -> None:
        _ = self.two_electron

    def answer(self, request: tuple[list[int], bool]) -> None:
        """J and K of densities of these symmetries, which rank 0 has."""
        n, (symmetry, screened) = self.mol.nao, request
        self.two_electron.jk(np.empty((len(symmetry), n, n)), symmetry, screened=screened)

    def _finalize(self) -> Any:
        """The energy of the orbitals found, from J and K of all of their density: those of the cycles have what
        screening by the change of the density left out in each, all of one sign in systems that are alike
        everywhere."""
        if self.settings.density_threshold > 0 and self.mo_coeff is not None:  # type: ignore[attr-defined]
            self._screens = False
            try:
                self.e_tot = self.energy_tot(self.make_rdm1())  # type: ignore[attr-defined]
            finally:
                self._screens = True
        return super()._finalize()  # type: ignore[misc]

    def energy_error(self) -> EnergyError:
        """What the rounding of the stored integrals does to the energy of the present orbitals: a pass over the
        integrals. Collective."""
        densities = np.asarray(self.make_rdm1())  # type: ignore[attr-defined]
        return self.two_electron.energy_error(densities.reshape(-1, *densities.shape[-2:]))

    def close(self) -> None:
        """Drops the integrals and their file. Collective; they are made again when needed."""
        if self._two_electron is not None:
            self._two_electron.close()
            self._two_electron = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self.close()
        elif (
            self._two_electron is not None
        ):  # perhaps at this process alone: the others must not be waited for
            self._two_electron.abandon()
            self._two_electron = None

    def reset(self, mol: Mole | None = None) -> Any:
        """Forgets the integrals and, with an argument, takes another molecule. Collective."""
        self.close()
        return super().reset(mol)  # type: ignore[misc]


class RHF(_OutOfCore, hf.RHF):  # type: ignore[misc]
    __doc__ = f"Restricted Hartree-Fock (closed shells).\n\n{_OutOfCore.__doc__}"


class UHF(_OutOfCore, uhf.UHF):  # type: ignore[misc]
    __doc__ = f"Unrestricted Hartree-Fock.\n\n{_OutOfCore.__doc__}"


def _by_symmetry(densities: Matrices, hermi: int) -> tuple[Matrices, list[int]]:
    """Density matrices as symmetric and antisymmetric ones, which is what the kernels take."""
    if hermi == 1:
        return densities, [1] * len(densities)
    if hermi == 2:
        return densities, [-1] * len(densities)
    transposed = densities.transpose(0, 2, 1)
    parts = np.concatenate([(densities + transposed) / 2, (densities - transposed) / 2])
    return parts, [1] * len(densities) + [-1] * len(densities)
