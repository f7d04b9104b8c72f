"""Hartree-Fock whose two-electron integrals live on disk (or are recomputed), on one or several processes.

    mf = outcore.chem.hf.scf.RHF(mol, scratch="/scratch/me")
    energy = mf.kernel()
    mf = outcore.chem.hf.scf.out_of_core(pyscf.dft.RKS(mol, xc="camb3lyp"), scratch="/scratch/me")

The objects are PySCF mean-field objects: start guess, DIIS, convergence and all later methods are PySCF's;
J and K come from `outcore.chem.hf.integrals`. On several processes (mpiexec) every process makes the same object
and calls the same methods. Rank 0 drives the iterations, the others compute their part of J and K, and all end
with the same orbitals and energy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pyscf import lib
from pyscf.scf import dhf, ghf, hf

from outcore.base import keywords
from outcore.chem import mean_field
from outcore.chem.driver import RootDriven, own_gradients
from outcore.chem.hf import accuracy
from outcore.chem.hf.accuracy import EnergyError
from outcore.chem.hf.integrals import Estimate, Matrices, Progress, Summary, TwoElectronIntegrals
from outcore.chem.hf.settings import Settings
from outcore.chem.hf.stores import Stores
from outcore.chem.logs import INFO, tell
from outcore.chem.method import Means
from outcore.chem.molecule import integrals_key
from outcore.job import launch
from outcore.job.world import World, shared

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from pyscf.gto import Mole

_WORLD: Any = object()  # default of `comm`: the processes of this job

_SETTINGS = """
    Parameters (all by keyword; see `outcore.chem.hf.settings.Settings` for defaults): `storage` ("disk", "mixed",
    "direct" or "auto"), `disk_bytes` (most bytes for mixed and auto), `keep` (directory in which the integrals stay
    after the run, and are looked for before they are computed), `error` (allowed error of the energy by stored
    integrals) or `screening` (of integrals), `records` ("own": a process reads the records it wrote; "any": any of
    them), `scratch` (directory), `memory` (of all processes together, in bytes or as "400MB"), `threads` (of each
    process), `record_bytes`, `prefetch`, `page_cache`, `group` (point group by which integrals stand for others;
    default the largest that the molecule has), `comm` (an mpi4py communicator, or an outcore.World; default all
    processes of the job, None for this process alone).

    Rank 0 calls `on_estimate(estimate)` before integrals are computed, and `on_progress(fraction)` while they are
    stored. Afterwards `stored_summary` describes the stored integrals. `close` (or leaving a `with` block) drops
    the integrals and their file.
    Raises OutcoreError, the same on all processes.
    """


@dataclass(frozen=True)
class JKRequest:
    """A request for J and K of densities at rank 0. symmetry: 1 for each symmetric, -1 for each antisymmetric
    one."""

    symmetry: list[int]
    screened: bool  # whether small densities may screen integrals, if the storage does that
    omega: float  # of the Coulomb operator, 0: 1/r
    own: bool  # whether the operator is that of the molecule


class OutOfCore(RootDriven):
    """J and K from `TwoElectronIntegrals`, before a PySCF mean-field class; see `out_of_core`."""

    __name_mixin__ = "OutOfCore"

    mol: Mole
    verbose: int
    stdout: Any
    settings: Settings
    comm: Intracomm | World | None
    on_progress: Progress | None
    on_estimate: Callable[[Estimate], None] | None
    stored_summary: Summary | None
    _stores: Stores  # shared by all objects that are made of each other
    _keys = {"settings", "comm", "on_estimate", "on_progress", "stored_summary"}  # noqa: RUF012  (PySCF's convention)
    _screens = True  # whether small densities may screen integrals, if the storage does that

    def set_up(self, settings: Settings, comm: Intracomm | World | None) -> None:
        """Sets the attributes, in place of a constructor: PySCF's class has its own."""
        self.settings, self.comm = settings, comm
        self.direct_scf_tol = settings.cutoff  # for integrals that PySCF itself computes
        # To recompute integrals is cheaper for a small change of the density. Stored integrals cost the same for
        # any density, and the full density has no accumulated rounding.
        self.direct_scf = settings.storage != "disk"
        self.on_progress = self.on_estimate = self.stored_summary = None
        self._eri: Any = None
        self._stores = Stores()

    @property
    def two_electron(self) -> TwoElectronIntegrals:
        """The integrals of the present molecule, already stored if the settings store any. Collective if they have
        to be made: integrals of another geometry or basis are never reused."""
        return self._integrals(float(self.mol.omega or 0.0), own=True)

    def _integrals(self, omega: float, *, own: bool) -> TwoElectronIntegrals:
        return self._stores.get(self.mol, omega, self.settings, self.world, own=own, store=self._store)

    def _store(self, integrals: TwoElectronIntegrals) -> None:
        with self.world.together("estimate of the integrals"):
            if self.on_estimate is not None and self._root:
                self.on_estimate(integrals.estimate())
        if integrals.keeps:
            stored = self.stored_summary = integrals.store(self.on_progress if self._root else None)
            tell(
                self,
                INFO,
                "two-electron integrals: %d of %d quartets computed, %.0f MB in memory, %.0f MB on disk, %.1f s",
                *(
                    stored.computed,
                    stored.quartets,
                    stored.memory_bytes / 1e6,
                    stored.disk_bytes / 1e6,
                    stored.seconds,
                ),
            )

    @property
    def world(self) -> World:
        """The processes of this object. The first call is collective."""
        return self.comm if isinstance(self.comm, World) else shared(self.comm)

    def means(self) -> Means:
        """Resources of this object, for other steps that use the same."""
        settings = self.settings
        threads = settings.threads or launch.threads_per_rank()
        return Means(self.world, settings.memory_bytes, threads)

    @property
    def _root(self) -> bool:
        return self.world.rank == 0

    # ---- J and K ----

    def get_jk(
        self,
        mol: Mole | None = None,
        dm: Any = None,
        hermi: int | None = None,
        with_j: bool = True,
        with_k: bool = True,
        omega: float | None = None,
    ) -> tuple[Any, Any]:
        """J and K of one density matrix `[n][n]` or many `[..][n][n]`; collective outside `kernel`.

        hermi: 1 Hermitian, 2 anti-Hermitian, 0 neither; None: 0 for generalized orbitals, else 1.
        omega: of the range-separated Coulomb operator, erf(omega r) / r, or erfc if negative; 0: 1/r; None: that of
        the molecule.
        Integrals of another operator than that of the molecule are recomputed. Integrals of another molecule are
        computed by PySCF at each process. Integrals that were set as `_eri` are used instead of all others, as in
        PySCF.
        """
        if dm is None:
            dm = self.make_rdm1()  # type: ignore[attr-defined]
        generalized = isinstance(self, ghf.GHF)
        hermi = int(not generalized) if hermi is None else hermi
        build: Any = self._spatial_jk
        if mol is not None and mol is not self.mol and integrals_key(mol) != integrals_key(self.mol):
            build = _pyscfs_jk
        elif self._eri is not None and not omega:
            build = self._given_jk
        mol = self.mol if mol is None else mol
        if generalized:
            return ghf.get_jk(mol, dm, hermi, with_j, with_k, build, omega)  # type: ignore[no-any-return]
        return build(mol, dm, hermi, with_j, with_k, omega)  # type: ignore[no-any-return]

    def _given_jk(
        self, _mol: Mole, dm: Any, hermi: int, with_j: bool, with_k: bool, _omega: float | None
    ) -> tuple[Any, Any]:
        return hf.dot_eri_dm(self._eri, dm, hermi, with_j, with_k)  # type: ignore[no-any-return]

    def _spatial_jk(
        self, mol: Mole, dm: Any, hermi: int, with_j: bool, with_k: bool, omega: float | None
    ) -> tuple[Any, Any]:
        dm = np.asarray(dm)
        if np.iscomplexobj(dm):  # the imaginary part of a Hermitian matrix is antisymmetric, and the reverse
            real, imaginary = (
                self._spatial_jk(mol, part, part_hermi, with_j, with_k, omega)
                for part, part_hermi in ((dm.real, hermi), (dm.imag, (0, 2, 1)[hermi]))
            )
            return (
                real[0] + 1j * imaginary[0] if with_j else None,
                real[1] + 1j * imaginary[1] if with_k else None,
            )
        shape = dm.shape
        n = shape[-1]
        matrices = dm.reshape(-1, n, n)
        if not with_k and hermi != 1:  # an antisymmetric part has no J
            matrices, hermi = (matrices + matrices.transpose(0, 2, 1)) / 2, 1
        densities, symmetry = _by_symmetry(matrices, hermi)
        coulomb, exchange = self._jk(densities, symmetry, omega)
        if hermi == 0:  # the symmetric parts come first, then the antisymmetric ones
            half = len(symmetry) // 2
            coulomb, exchange = coulomb[:half], exchange[:half] + exchange[half:]
        return (coulomb.reshape(shape) if with_j else None), (exchange.reshape(shape) if with_k else None)

    def _jk(self, densities: Matrices, symmetry: list[int], omega: float | None) -> tuple[Matrices, Matrices]:
        own = float(self.mol.omega or 0.0)
        wanted = own if omega is None else float(omega)
        request = JKRequest(symmetry, self._screens, wanted, wanted == own)
        request = self.world.broadcast(request)
        integrals = self._integrals(request.omega, own=request.own)
        return integrals.jk(densities, request.symmetry, screened=request.screened)

    def prepare(self) -> None:
        if self._eri is None:
            _ = self.two_electron

    def answer(self, request: JKRequest) -> None:
        """Takes part in J and K of densities that rank 0 has."""
        n = self.mol.nao
        integrals = self._integrals(request.omega, own=request.own)
        integrals.jk(np.empty((len(request.symmetry), n, n)), request.symmetry, screened=request.screened)

    # ---- energies ----

    def _finalize(self) -> Any:
        """Computes the final energy from J and K of the whole density. J and K of the cycles lack contributions
        that screening by the change of the density has left out in each cycle, and in homogeneous systems these
        all have one sign."""
        exact = vars(self).get("_scf", self)  # a solver's own J and K may be approximate
        if self.settings.density_cutoff > 0 and self.mo_coeff is not None:  # type: ignore[attr-defined]
            exact._screens = False
            try:
                self.e_tot = exact.energy_tot(self.make_rdm1())  # type: ignore[attr-defined]
            finally:
                del exact._screens
        return super()._finalize()  # type: ignore[misc]

    def energy_error(self) -> EnergyError:
        """The error of the energy of the present orbitals because integrals are stored with rounding, and some are
        left out. It takes a pass over the integrals. Collective. Only for Hartree-Fock (RHF, ROHF, UHF)."""
        if isinstance(self, ghf.GHF | hf.KohnShamDFT):
            raise mean_field.refused(
                f"the error of stored integrals is known of RHF, ROHF and UHF, not of {type(self).__name__}"
            )
        densities = np.asarray(self.make_rdm1())  # type: ignore[attr-defined]
        densities = densities.reshape(-1, *densities.shape[-2:])
        error = self.two_electron.energy_error(densities)
        one_electron = float(np.sum(densities * self.get_hcore()))  # type: ignore[attr-defined]
        return replace(error, arithmetic=accuracy.arithmetic(one_electron))

    def store_finer(self, error: EnergyError) -> str:
        """Stores the integrals again with smaller steps, chosen for the density of the present orbitals, because
        the `error` of their energy exceeds the allowed one. `kernel(mf.make_rdm1())` continues from there. Returns
        "", or the reason why there is no room for them: then integrals are stored as before. Collective."""
        densities = np.asarray(self.make_rdm1())  # type: ignore[attr-defined]
        densities = self.world.broadcast(densities.reshape(-1, *densities.shape[-2:]))
        finer = accuracy.finer(self.two_electron.finer, densities, error)
        return self._stores.replace(self.mol, self.settings, self.world, finer, self._store)

    # ---- life ----

    def close(self) -> None:
        """Drops the integrals and their file. Collective; they are recomputed when needed."""
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self.close()
        else:  # perhaps at this process alone: it must not wait for the others
            self._stores.abandon()

    def reset(self, mol: Mole | None = None) -> Any:
        """Forgets the integrals and, with an argument, takes another molecule. Collective."""
        self.close()
        return super().reset(mol)  # type: ignore[misc]

    # ---- objects that PySCF makes of this one ----

    def nuc_grad_method(self) -> Any:
        """Nuclear gradients, on the same processes; for Kohn-Sham and generalized orbitals those of PySCF."""
        return own_gradients(self) or super().nuc_grad_method()  # type: ignore[misc]

    Gradients = nuc_grad_method

    def density_fit(self, auxbasis: Any = None, with_df: Any = None, only_dfj: bool = False) -> Any:
        """Fits J and K out of core, on the same processes, with the same scratch directory and memory. `undo_df`
        returns to this object. With only_dfj only J is fitted, and K comes from the integrals of this object."""
        from outcore.chem.ri.fitting import DensityFitting
        from outcore.chem.ri.scf import fit

        fitted = lib.view(self, self.__class__)
        if with_df is None:
            settings = self.settings
            with_df = DensityFitting(
                self.mol,
                auxbasis,
                memory=settings.memory_bytes,
                scratch=settings.scratch,
                threads=settings.threads,
                comm=self.comm,
            )
        if isinstance(with_df, DensityFitting):
            fitted._comm_before, fitted.comm = self.comm, with_df.world
        return fit(fitted, with_df, only_dfj=only_dfj)

    def fit_hessian(self, solver: Any, auxbasis: Any, with_df: Any, only_dfj: bool) -> Any:
        """A second-order solver of this object, with a fitted Hessian."""
        from outcore.chem.ri.fitting import DensityFitting
        from outcore.chem.ri.scf import fit

        if with_df is None:
            settings = self.settings
            with_df = DensityFitting(
                self.mol,
                auxbasis,
                memory=settings.memory_bytes,
                threads=settings.threads,
                comm=self.world,
            )
        return fit(solver, with_df, only_dfj=only_dfj)

    def after_fitting(self) -> None:
        """Restores attributes that density fitting has changed."""
        if "_comm_before" in vars(self):
            self.comm = vars(self).pop("_comm_before")
        self.direct_scf = self.settings.storage != "disk"

    def to_ks(self, xc: str = "HF") -> Any:
        """As PySCF's, with the same integrals."""
        return self._carry(super().to_ks(xc))  # type: ignore[misc]

    def to_hf(self) -> Any:
        """As PySCF's, with the same integrals."""
        return self._carry(super().to_hf())  # type: ignore[misc]

    def _carry(self, made: Any) -> Any:
        """Turns an object that PySCF has made into one of Outcore."""
        made = lib.set_class(made, (OutOfCore, made.__class__))
        made.set_up(self.settings, self.comm)
        made._stores, made.stored_summary = self._stores, self.stored_summary
        made.on_progress, made.on_estimate = self.on_progress, self.on_estimate
        return made

    # ---- copies ----

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        for key in ("comm", "on_progress", "on_estimate", "_stores", "_screens"):
            state.pop(key, None)
        return state | {"alone": self.comm is None}

    def __setstate__(self, state: Any) -> None:
        alone = state.pop("alone")
        super().__setstate__(state)
        self.comm = None if alone else launch.world()
        self.on_progress = self.on_estimate = None
        self._stores = Stores()

    def unshare(self, other: Any) -> None:
        vars(self).pop("alone", None)
        self.comm, self._stores = other.comm, Stores()
        self.on_progress, self.on_estimate = other.on_progress, other.on_estimate


@keywords.checked(Settings)
def out_of_core(mf: Any, *, comm: Intracomm | World | None = _WORLD, **settings: Any) -> Any:
    """A PySCF mean-field object (restricted, unrestricted, restricted open-shell, generalized, Kohn-Sham) with J
    and K of `outcore.chem.hf.integrals`: a new object that shares the attributes of the given one."""
    if not isinstance(mf, hf.SCF) or isinstance(mf, dhf.DHF) or "cell" in vars(mf):
        raise mean_field.refused(
            f"{type(mf).__name__} is no molecular mean-field method of one or two components"
        )
    if isinstance(mf, OutOfCore) or "with_df" in vars(mf):
        raise mean_field.refused(
            f"{type(mf).__name__} has J and K of another kind; give the object before that"
        )
    if mf.mol.incore_anyway and mf._eri is not None:
        raise mean_field.refused("the integrals were given as `_eri`; nothing is left to be stored")
    made = lib.view(mf, mf.__class__)
    made = lib.set_class(made, (OutOfCore, made.__class__))
    made.set_up(Settings(**settings), launch.world() if comm is _WORLD else comm)
    return made


def RHF(mol: Mole, **settings: Any) -> Any:
    """Restricted Hartree-Fock; with unpaired electrons ROHF, as PySCF's function RHF."""
    return out_of_core(mean_field.make(mol, "RHF"), **settings)


def UHF(mol: Mole, **settings: Any) -> Any:
    """Unrestricted Hartree-Fock."""
    return out_of_core(mean_field.make(mol, "UHF"), **settings)


def ROHF(mol: Mole, **settings: Any) -> Any:
    """Restricted open-shell Hartree-Fock."""
    return out_of_core(mean_field.make(mol, "ROHF"), **settings)


for _each in (out_of_core, RHF, UHF, ROHF):
    _each.__doc__ = f"{_each.__doc__}\n{_SETTINGS}"


def _pyscfs_jk(
    mol: Mole, dm: Any, hermi: int, with_j: bool, with_k: bool, omega: float | None
) -> tuple[Any, Any]:
    return hf.get_jk(mol, dm, hermi, None, with_j, with_k, omega)  # type: ignore[no-any-return]


def _by_symmetry(densities: Matrices, hermi: int) -> tuple[Matrices, list[int]]:
    """Splits density matrices into symmetric and antisymmetric ones, as the kernels need."""
    if hermi == 1:
        return densities, [1] * len(densities)
    if hermi == 2:
        return densities, [-1] * len(densities)
    transposed = densities.transpose(0, 2, 1)
    parts = np.concatenate([(densities + transposed) / 2, (densities - transposed) / 2])
    return parts, [1] * len(densities) + [-1] * len(densities)
